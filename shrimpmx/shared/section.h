/* The parts of an MPI program that count: a rank's section begins by MPI_Pcontrol(1) and ends by
 * MPI_Pcontrol(0), that of the run lasts while at least one rank is in its own. Every figure is its
 * sum over all ends less that over all beginnings. The first rank that begins and the last that
 * ends read the counters, with the lock held: ranks that begin meanwhile wait for it, so that none
 * of what they do is in the counters read. A rank killed with the lock held keeps no other waiting.
 * Behind the shown waits of the control segment: of the run, of each process, then counters. */
#ifndef SHRIMPMX_SHARED_SECTION_H
#define SHRIMPMX_SHARED_SECTION_H

#include "native/lock.h"
#include "shared/shown.h"

struct run_section {               /* offset; writer: the rank that holds the lock */
    pthread_mutex_t lock;          /*  0  see lock.h; guards the counters in sections, too */
    volatile uint32_t ranks;       /* 40  those in their sections now */
    volatile uint32_t begun;       /* 44  sections so far, of all ranks */
    uint8_t unused[16];            /* 48 */
};
_Static_assert(sizeof(struct run_section) == 64, "section of a run");

struct rank_section {              /* offset; writer: the rank */
    volatile uint32_t within;      /*  0  1: it is in a section */
    uint32_t unused;               /*  4 */
    int64_t elapsed_ns;            /*  8  by the run's clock */
    int64_t user_ns;               /* 16  from here on by getrusage of the process */
    int64_t system_ns;             /* 24 */
    int64_t voluntary_switches;    /* 32 */
    int64_t involuntary_switches;  /* 40 */
    int64_t minor_faults;          /* 48 */
    int64_t major_faults;          /* 56 */
};
_Static_assert(sizeof(struct rank_section) == 64, "section of a rank");

static inline struct run_section *control_run_section(struct control_header *control) {
    return (struct run_section *)control_shown(control, control->runners_count);
}
static inline struct rank_section *control_rank_section(struct control_header *control,
                                                        uint32_t runner) {
    return (struct rank_section *)(control_run_section(control) + 1) + runner;
}
/* Those of an agent in the sections of the run, modulo 2^64. */
static inline uint64_t *control_section_counters(struct control_header *control,
                                                 uint32_t agent) {
    struct rank_section *behind = control_rank_section(control, control->runners_count);
    return (uint64_t *)behind + (size_t)agent * COUNTERS_MAX;
}

#endif
