/* What an MPI rank shows of its waits, above all of one that is long: behind the agents of the
 * control segment, one per process. Others read it while the version is even and stays the same. */
#ifndef SHRIMPMX_SHARED_SHOWN_H
#define SHRIMPMX_SHARED_SHOWN_H

#include "shared/layout.h"

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
    uint32_t length;               /* 16  bytes of a message that is there */
    uint32_t unused;               /* 20 */
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

#endif
