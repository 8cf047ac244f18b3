/* What must hold in shared memory after every step of a scheduled world.
 *
 * The running agent looks before each of its points, so that all that has changed since the last
 * look is its own doing. Counts that are added up behind what they count make inequalities.
 *
 * - Rings: never more slots in use than there are; counts never go back; each has its writer.
 * - Packets: handled <= came; came + dropped <= sent by the other nodes, and not lost.
 * - Interrupts: the token changes hands as host/token.pxd says; one interrupt is outstanding at
 *   most; wished = raised + absorbed + at most one that is remembered.
 * - Events: never more than the ring has room for; posted by the holder of the lock.
 * - Sleepers: none sleeps over work that nobody will wake it for.
 */
#ifndef SHRIMPMX_SCHEDULED_INVARIANTS_H
#define SHRIMPMX_SCHEDULED_INVARIANTS_H

#include <stdint.h>

struct control_header;
struct node_header;

/* From now on these are looked at. Agent n of the scheduler is process n of the run. */
void invariants_watch(struct control_header *control, struct node_header *const *nodes,
                      uint32_t nodes_count);
/* By `self` before each of its points: a sentence if something is not as it must be, else NULL. */
const char *invariants_look(int self, int64_t now_ns);
/* `self` is about to look at the first byte of an event that it may find. */
void invariants_peek(int self, const volatile uint8_t *address);
/* `self` has woken all that slept on this word. */
void invariants_woken(int self, const volatile uint32_t *word);
/* What a dead agent left has been seen to: nothing is to be expected of it any more. */
void invariants_buried(int agent);

#endif
