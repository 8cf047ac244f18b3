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
#include "shared/layout.h"

/* What an MPI rank shows of its waits, above all of one that is long: behind the agents of the
 * control segment, one per process. Others read it while the version is even and stays the same. */

#define SHOWN_CALL_BYTES 32
#define SHOWN_COMM_BYTES 40
#define SHOWN_MESSAGES 4

enum shown_kind {
    SHOWN_NOTHING = 0,
    SHOWN_SEND = 1,        /* to `peer` */
    SHOWN_RECEIVE = 2,     /* from `peer` */
    SHOWN_COLLECTIVE = 3,  /* one of a collective call's: with `peer` */
};

struct shown_message {             /* offset; writer: the rank */
    uint32_t kind;                 /*  0  enum shown_kind */
    int32_t peer;                  /*  4  its rank in the communicator, or MPI_ANY_SOURCE */
    int32_t world_peer;            /*  8  its rank in the world; -1: not known */
    int32_t tag;                   /* 12  or MPI_ANY_TAG */
    uint64_t length;               /* 16  bytes of a message that is there */
    char comm[SHOWN_COMM_BYTES];   /* 24  the communicator's name, or its handle */
};
_Static_assert(sizeof(struct shown_message) == 64, "shown message");

struct shown_wait {                /* offset; writer: the rank */
    volatile uint32_t version;     /*  0  odd while it is written */
    uint32_t unexpected;           /*  4  messages that no receive was posted for */
    int64_t since_ns;              /*  8  0: it is in no call, or not for long */
    char call[SHOWN_CALL_BYTES];   /* 16  "MPI_Recv" */
    uint32_t unacked;              /* 48  messages that were sent and are not acknowledged */
    uint32_t resends;              /* 52  how often these were sent again */
    int64_t waited_ns;             /* 56  in all calls so far, of all threads */
    struct shown_message awaited;  /* 64  the first that the call waits for */
    struct shown_message oldest[SHOWN_MESSAGES]; /* 128  of the unexpected ones */
    uint32_t thread;               /* 384  of those that wait: the main one, if that waits */
    uint32_t unused[15];           /* 388 */
};
_Static_assert(sizeof(struct shown_wait) == 448, "shown wait");

static inline struct shown_wait *control_shown(struct control_header *control, uint32_t runner) {
    struct agent_record *behind = control_agent(control, control->agents_count);
    return (struct shown_wait *)behind + runner;
}

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
    int64_t waited_ns;             /*  80  in calls */
    int64_t used_ns;               /*  88  simulation: CPU time so far of a simulated process */
    int64_t agents_ns;             /*  96  the rank that holds the lock: CPU time of a process of
                                    *      agents in the run's sections */
    volatile uint32_t communicators; /* 104  ranks: those that it has, or is about to get */
    uint32_t spawned;              /* 108  1: it came when others were at work */
    volatile uint32_t answers;     /* 112  the supervisor: to its requests for more ranks */
    uint8_t unused1[12];           /* 116 */
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

/* For each set of contexts of MPI's communicators, behind the sections of the control segment: the
 * shared pointer of the file that has it, and how many processes use it. The rank that takes a set
 * enters a share for each process that may use it; each of them gives its own share back. */

#define CONTEXT_SETS 131072

static inline uint64_t *control_file_pointers(struct control_header *control) {
    return control_section_counters(control, control->agents_count);
}
static inline volatile uint32_t *control_context_uses(struct control_header *control) {
    return (volatile uint32_t *)(control_file_pointers(control) + CONTEXT_SETS);
}

#endif
