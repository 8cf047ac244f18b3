/* What code compiled with -fsanitize-coverage=trace-pc calls at each branch target.
 *
 * Counts, for one input, how often each edge (from one target to the next) was taken, and
 * keeps what all inputs took. As in AFL, an input is new if it takes an edge that none took,
 * or takes it in another order of magnitude. Beside edges it keeps the targets themselves, each
 * once, by which a module's share can be told.
 */
#include <stdint.h>

#define EDGES (1u << 18)
#define TARGETS (1u << 18) /* more than there are */

static uint8_t hits[EDGES];       /* of this input */
static uint32_t touched[EDGES];   /* edges with hits */
static uint32_t touched_count;
static uint8_t seen[EDGES];       /* of all inputs: a bit for each magnitude */
static uint32_t edges;
static uint32_t previous;
static uint64_t targets[TARGETS]; /* addresses, by their hash and then in the next free place */

static void note_target(uint64_t here, uint32_t place) {
    while (targets[place] != here) {
        if (targets[place] == 0) {
            targets[place] = here;
            return;
        }
        place = (place + 1) & (TARGETS - 1);
    }
}

void __sanitizer_cov_trace_pc(void) {
    uint64_t here = (uint64_t)__builtin_return_address(0);
    uint32_t place = (uint32_t)((here * 0x9E3779B97F4A7C15u) >> 46);
    uint32_t edge = (place ^ previous) & (EDGES - 1);
    previous = place >> 1;
    note_target(here, place & (TARGETS - 1));
    if (hits[edge] == 0)
        touched[touched_count++] = edge;
    if (hits[edge] < 255)
        hits[edge]++;
}

/* Bits 0 to 7: once, twice, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more. */
static uint8_t magnitude(uint8_t count) {
    static const uint8_t limits[] = {1, 2, 3, 7, 15, 31, 127};
    uint8_t bit = 0;
    while (bit < 7 && count > limits[bit])
        bit++;
    return (uint8_t)(1u << bit);
}

/* Ends an input; returns 1 if it was new. */
uint32_t end_input(void) {
    uint32_t is_new = 0;
    for (uint32_t i = 0; i < touched_count; i++) {
        uint32_t edge = touched[i];
        uint8_t bit = magnitude(hits[edge]);
        edges += seen[edge] == 0;
        is_new |= (seen[edge] & bit) == 0;
        seen[edge] |= bit;
        hits[edge] = 0;
    }
    touched_count = 0;
    previous = 0;
    return is_new;
}

uint32_t edges_taken(void) { return edges; }

/* Targets taken whose addresses lie from `start` to `end`. */
uint32_t targets_taken(uint64_t start, uint64_t end) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < TARGETS; i++)
        count += targets[i] >= start && targets[i] < end;
    return count;
}
