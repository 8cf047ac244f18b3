/* Links that clog: for a drawn time nothing arrives; then all goes on, in another order. */
#ifndef SHRIMPMX_SCHEDULED_CLOGS_H
#define SHRIMPMX_SCHEDULED_CLOGS_H

#include <stdint.h>

struct node_header;

/* Have the links between these nodes clog, each by itself, for at most `longest_ns` at a time and
 * after gaps of that length; `shuffles`: frames that have waited come in a drawn order. */
void clogs_watch(struct node_header *const *nodes, uint32_t count, uint64_t seed,
                 int64_t longest_ns, int shuffles);
/* By an agent that is in the middle of nothing: holds back, and lets go, what is its to receive. */
void clogs_pass(int self, int64_t now_ns);

#endif
