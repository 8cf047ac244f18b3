/* Prints the atomic operations of rings, wait slots and traces, a line for each function: see
 * tests/unit/test_native_orderings.py. Compiled with recorded/ before shrimpmx/ on the include path. */
#include <stdio.h>

#include "native/futex.h"
#include "native/ring.h"
#include "native/trace.h"

static struct wait_slot slot;
static struct {
    struct ring ring;
    uint8_t slots[2 * 64];
} memory;
static struct {
    struct trace_ring ring;
    struct trace_entry slots[2];
} trace = {.ring = {.entries = 2}};

void note(const char *operation, const volatile void *address) {
    const char *name = address == &slot.armed          ? " armed"
                       : address == &slot.word         ? " word"
                       : address == &memory.ring.head  ? " head"
                       : address == &memory.ring.tail  ? " tail"
                       : address == &trace.ring.next   ? " next"
                                                       : "";
    printf(", %s%s", operation, name);
}

int main(void) {
    struct ring *ring = &memory.ring;
    ring_initialise(ring, 2, 64, RING_HEADER_BYTES);
    ring->tail_seen = (uint32_t)-2; /* it knows of no free slot */
    printf("ring_free");
    ring_free(ring, 1);
    ring_fill(ring);
    printf("\nring_publish");
    ring_publish(ring);
    printf("\nring_available");
    ring_available(ring, 1);
    printf("\nring_consume");
    ring_consume(ring, 1);
    printf("\nwait_slot_arm");
    wait_slot_arm(&slot);
    printf("\nwait_slot_wake");
    wait_slot_wake(&slot);
    printf("\ntrace_write");
    trace_write(&trace.ring, 0, 0, 0, 0);
    printf("\ntrace_whole_from");
    trace_whole_from(&trace.ring);
    printf("\n");
    return 0;
}
