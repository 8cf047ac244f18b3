/* What an MPI program took, and what agents did meanwhile: in its work, from the moment when the
 * last rank has left MPI_Init until each one ends; or, once a rank has marked one by
 * MPI_Pcontrol, in its sections only. A section begins by MPI_Pcontrol(1) and ends by
 * MPI_Pcontrol(0); that of the run lasts while at least one rank is in its own. Every figure is
 * its sum over all ends less that over all beginnings. The rank that begins or ends the run's
 * reads the counters and CPU times of agents with the lock held: ranks that begin meanwhile wait
 * for it, so that none of what they do is in what it reads. Of the work each rank adds its own
 * counters when it ends: what it does in MPI_Finalize counts nowhere. A rank killed with the lock
 * held keeps no other waiting. Behind the shown waits of the control segment: of the run, of each
 * process, then counters. */
#ifndef SHRIMPMX_SHARED_SECTION_H
#define SHRIMPMX_SHARED_SECTION_H

#include "native/lock.h"
#include "shared/shown.h"

struct run_section {               /* offset; writer: the rank that holds the lock */
    pthread_mutex_t lock;          /*  0  see lock.h; guards all that is of no rank, too */
    volatile uint32_t ranks;       /* 40  those in their sections, or at work, now */
    volatile uint32_t begun;       /* 44  ranks that have begun to work */
    volatile uint32_t met;         /* 48  ranks that are through with MPI_Init */
    volatile uint32_t marked;      /* 52  1: a rank has begun a section */
    uint8_t unused[8];             /* 56 */
};
_Static_assert(sizeof(struct run_section) == 64, "section of a run");

struct process_section {           /* offset; writer: the rank, but for the agents' CPU time */
    volatile uint32_t working;     /*   0  1: between MPI_Init and the end of its work */
    volatile uint32_t within;      /*   4  1: it is in a section */
    uint32_t marked;               /*   8  1: it has begun one: what follows is of its sections */
    uint32_t silent;               /*  12  1: no message until its work ended, or MPI_Abort */
    int64_t began_ns;              /*  16  its work, by the run's clock */
    int64_t elapsed_ns;            /*  24 */
    int64_t user_ns;               /*  32  from here on by getrusage of the process */
    int64_t system_ns;             /*  40 */
    int64_t voluntary_switches;    /*  48 */
    int64_t involuntary_switches;  /*  56 */
    int64_t minor_faults;          /*  64 */
    int64_t major_faults;          /*  72 */
    int64_t waited_ns;             /*  80  in calls; see shown.h */
    int64_t used_ns;               /*  88  simulation: CPU time so far of a simulated process */
    int64_t agents_ns;             /*  96  the rank that holds the lock: CPU time of a process of
                                    *      agents in the run's sections */
    uint8_t unused1[24];           /* 104 */
    struct wait_account account;   /* 128 */
};
_Static_assert(sizeof(struct process_section) == 256, "section of a process");

static inline struct run_section *control_run_section(struct control_header *control) {
    return (struct run_section *)control_shown(control, control->runners_count);
}
static inline struct process_section *control_process_section(struct control_header *control,
                                                              uint32_t runner) {
    return (struct process_section *)(control_run_section(control) + 1) + runner;
}
/* Those of an agent in the sections of the run, modulo 2^64. */
static inline uint64_t *control_section_counters(struct control_header *control,
                                                 uint32_t agent) {
    struct process_section *behind = control_process_section(control, control->runners_count);
    return (uint64_t *)behind + (size_t)agent * RECORD_COUNTERS;
}

#endif
