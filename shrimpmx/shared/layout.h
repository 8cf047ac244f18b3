/* What agents share: the control segment (one per run) and the node segments.
 *
 * Places inside a segment are byte offsets from its start, never pointers, since
 * every process maps it elsewhere. Each field names its writer.
 */
#ifndef SHRIMPMX_SHARED_LAYOUT_H
#define SHRIMPMX_SHARED_LAYOUT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "native/clock.h"
#include "native/futex.h"
#include "native/ring.h"
#include "shared/counters.h"
#include "wire/wire.h"

#define SEGMENT_MAGIC 0x584d504d49524853ull /* "SHRIMPMX" in memory */

enum segment_kind {
    SEGMENT_CONTROL = 1,
    SEGMENT_NODE = 2,
    SEGMENT_TRACE = 3,
    SEGMENT_HEAP = 4, /* the memory of a node's ranks: one heap per endpoint */
    SEGMENT_PLAN = 5, /* text behind the header: the plan that ranks read when they join */
    SEGMENT_CAPTURE = 6,
};

struct segment_header {      /* offset; writer: the creator, once */
    uint64_t magic;          /*  0 */
    uint32_t build;          /*  8  of which sources its compiled code is: native/stamp.pyx */
    uint32_t kind;           /* 12  enum segment_kind */
    uint64_t size_bytes;     /* 16 */
    uint32_t owner_pid;      /* 24  the supervisor */
    uint32_t pid_namespace;  /* 28  in which `owner_pid` is a process; an inode's number */
    uint64_t owner_start;    /* 32  its start time, clock ticks since boot */
    char run_id[24];         /* 40  zero-terminated */
};
_Static_assert(sizeof(struct segment_header) == 64, "segment header");

/* -- control segment --------------------------------------------------- */

enum stop_state { STOP_NO = 0, STOP_FINISH = 1, STOP_ABORT = 2 };

enum runner_state {
    RUNNER_STARTING = 0,
    RUNNER_READY = 1,
    RUNNER_RUNNING = 2,
    RUNNER_DONE = 3,
    RUNNER_FAILED = 4,
};

/* What waiting cost one process; kept by its strategy (waiting paper, 3.2). */
struct wait_account {          /* writer: the process */
    uint64_t waits;            /* calls of wait */
    uint64_t at_once;          /* ... that found the data before any waiting */
    uint64_t while_spinning;   /* ... that found it in a spin phase */
    uint64_t timeouts;         /* ... that ended at their deadline */
    uint64_t spin_ns;          /* time in spin phases */
    uint64_t yields;           /* sched_yield calls */
    uint64_t blocks;           /* sleeps entered (futex or signal wait) */
    uint64_t races;            /* data found between arming and sleeping */
    uint64_t system_calls;     /* all system calls made to wait */
    uint64_t interrupts_enabled; /* times the slot was armed */
    uint64_t notifications;    /* signal handler runs */
    uint64_t limits_ns;        /* spin limits that `adaptive` and `conditional` chose, added up */
    uint64_t unused[4];
};
_Static_assert(sizeof(struct wait_account) == 128, "wait account");

struct runner_record {              /* one process; offset; writer */
    struct wait_slot slot;          /*   0  see futex.h */
    volatile uint32_t state;        /*  64  the process; enum runner_state */
    volatile uint32_t pid;          /*  68  the process */
    volatile uint32_t cpu;          /*  72  the process: CPU it is pinned to */
    volatile uint32_t realtime;     /*  76  the process: FIFO priority it got, 0 if none */
    char name[48];                  /*  80  supervisor */
    struct wait_account account;    /* 128  the process */
};
_Static_assert(sizeof(struct runner_record) == 256, "runner record");

struct agent_record {               /* one agent; offset; writer */
    char name[32];                  /*   0  supervisor: "node0.nic", "node1.irq3", "rank0" */
    uint32_t kind;                  /*  32  supervisor; enum agent_kind */
    uint32_t runner;                /*  36  supervisor: index of its process */
    uint8_t unused[24];             /*  40 */
    volatile uint64_t counters[RECORD_COUNTERS]; /* 64  the agent; see counters.h */
};
_Static_assert(sizeof(struct agent_record) == 64 + 8 * RECORD_COUNTERS, "agent record");

struct control_header {             /* offset; writer */
    struct segment_header segment;  /*   0 */
    struct clock clock;             /*  64  supervisor, before any agent starts */
    volatile uint32_t stop;         /* 128  supervisor; enum stop_state */
    volatile uint32_t started;      /* 132  supervisor: futex word, 1 when ranks may begin */
    uint32_t runners_count;         /* 136  supervisor */
    uint32_t agents_count;          /* 140  supervisor */
    uint32_t nodes_count;           /* 144  supervisor */
    volatile uint32_t contexts;     /* 148  ranks: MPI contexts given out so far */
    uint64_t runners_offset;        /* 152  supervisor */
    uint64_t agents_offset;         /* 160  supervisor */
    uint8_t unused1[24];            /* 168 */
};
_Static_assert(sizeof(struct control_header) == 192, "control header");

static inline struct runner_record *control_runner(struct control_header *control,
                                                   uint32_t index) {
    return (struct runner_record *)((char *)control + control->runners_offset) + index;
}
/* By cost: how often an agent has paid for it, and ns in all. */
static inline uint64_t *agent_paid(struct agent_record *agent) {
    return (uint64_t *)agent->counters + COUNTERS_MAX;
}
static inline struct agent_record *control_agent(struct control_header *control, uint32_t index) {
    return (struct agent_record *)((char *)control + control->agents_offset) + index;
}

/* -- node segment ------------------------------------------------------ */

/* A frame in a tx, link or rx ring slot. */
struct frame_slot {      /* offset; writer: the ring's producer */
    uint16_t length;     /*  0  bytes of `frame` */
    uint8_t bad_fcs;     /*  2  link: 1 if the frame check sequence does not fit the frame */
    uint8_t unused;      /*  3 */
    uint32_t captured;   /*  4  rx: its number in a capture; anything without one */
    int64_t time_ns;     /*  8  tx: handed over; link: arrival at the far NIC; rx: DMA complete */
    uint8_t frame[];     /* 16 */
};
_Static_assert(sizeof(struct frame_slot) == 16, "frame slot header");

#define NODE_CORES_MAX 64
#define NODE_VECTORS_MAX 32
#define NODE_ENDPOINTS_MAX 255
#define NODE_PEERS_MAX 4096
#define NODE_FLOWS 256 /* one per endpoint number that a frame can name */

/* A core's interrupt context: what its irq agent serves. */
struct core_interrupts {              /* offset; writer */
    volatile uint64_t pending;        /*   0  NICs set bits, the irq agent takes all: vectors, and
                                       *      CORE_PENDING_SENT; CORE_PENDING_BACKLOG by other
                                       *      irq agents */
    uint32_t runner;                  /*   8  supervisor: the irq agent's process */
    uint32_t agent;                   /*  12  supervisor: its agent record */
    uint8_t unused[48];               /*  16 */
    volatile uint64_t taken[NODE_VECTORS_MAX]; /* 64  NIC: interrupts delivered, by vector */
};
_Static_assert(sizeof(struct core_interrupts) == 320, "core interrupts");

/* Another core has put frames into this core's backlog (software steering, RPS). */
#define CORE_PENDING_BACKLOG ((uint64_t)1 << 63)
/* An interrupt for completed sends alone, without the claim token of a vector. */
#define CORE_PENDING_SENT ((uint64_t)1 << 62)

/* A vector's claim token: the right to handle its frames. One word names its holder, so that the
 * token of a rank that was killed can be taken from it. Transitions: host/token.pxd. */
enum vector_token {
    TOKEN_TAKEN = 0,       /* an irq agent has it, from the NIC's interrupt on */
    TOKEN_FREE = 1,        /* interrupts are on: the NIC takes it to raise one */
    /* Interrupts are off and it is not held: any irq agent or rank as told may take it. */
    TOKEN_SUSPENDED = 2,   /* a rank polls; the irq agent of `timer_core` has a timer */
    TOKEN_RESUMED = 3,     /* no rank polls any more; the irq agent of `timer_core` is awake */
    TOKEN_DEFERRED = 256,  /* + core: the irq agent of that core has a timer */
    TOKEN_RANK = 65536,    /* + runner: a rank has it, in the middle of a poll */
};

struct interrupt_vector {             /* offset; writer */
    volatile uint32_t token;          /*   0  enum vector_token; by compare and exchange */
    uint32_t timer_core;              /*   4  supervisor: whose irq agent has its timers; the first
                                       *      core of its affinity, as that was at the start */
    volatile uint64_t affinity;       /*   8  supervisor, and tools while the run goes on:
                                       *      bit n: interrupts may go to core n; never 0 */
    uint64_t rx_ring_offset;          /*  16  supervisor: struct ring of frame_slot */
    volatile uint32_t wish;           /*  24  NIC: 1 while it waits for the token */
    uint32_t handled;                 /*  28  handler, with the token: frames handled so far,
                                       *      free-running; ahead of the rx ring's tail while
                                       *      the dma agent copies from its slots */
    uint64_t copy_ring_offset;        /*  32  supervisor: struct ring of copy_descriptor, 0: none */
    volatile uint64_t suspended_until_ns; /* 40  ranks: when the irq agent polls, if suspended */
    volatile uint32_t watched;        /*  48  irq agent of timer_core: 1 while its timer runs */
    uint16_t next_core;               /*  52  NIC: from here on it looks for the next core */
    uint16_t polled_by;               /*  54  irq agents that pay for packets, with the token: the
                                       *      core that polled the ring last, + 1; 0: none */
    int64_t raised_ns;                /*  56  NIC, with the token: time of the last interrupt */
};
_Static_assert(sizeof(struct interrupt_vector) == 64, "interrupt vector");

/* What the NIC has sent from all tx rings, and how far the host knows it. Its interrupts are those
 * of vector 0, which report sends as well. The host gives this token back as soon as its handler
 * has begun, whatever it polls then: one interrupt is outstanding, and sends completed during a
 * poll interrupt that. */
struct sent_frames {                  /* offset; writer */
    uint32_t interrupts;              /*   0  supervisor: 1 if completed sends interrupt */
    volatile uint32_t token;          /*   4  TOKEN_FREE or TOKEN_TAKEN: the NIC takes it to raise,
                                       *      the irq agent gives it back */
    volatile uint32_t wish;           /*   8  NIC: 1 while it waits for the token */
    volatile uint32_t count;          /*  12  NIC: frames sent so far, free-running */
    volatile uint32_t reaped;         /*  16  irq agent, with the token: those that it knows of */
    uint32_t used_by;                 /*  20  ranks and irq agents that pay for packets: the core
                                       *      that sent or reaped last, + 1; 0: none */
    int64_t raised_ns;                /*  24  NIC, with the token: time of the last interrupt */
    uint8_t unused[32];               /*  32 */
};
_Static_assert(sizeof(struct sent_frames) == 64, "sent frames");

/* A copy handed to the dma agent (copy offload). The rx ring's slots up to `release_to` are
 * the NIC's again when it is done. `length` 0: nothing to copy, only slots to release. */
struct copy_descriptor {              /* offset; writer: the handler that has the token */
    uint64_t source_offset;           /*   0  in the node segment */
    uint64_t region_offset;           /*   8  where in the region the data goes */
    uint32_t endpoint;                /*  16 */
    uint32_t pull_handle;             /*  20  the pull that it belongs to */
    uint32_t length;                  /*  24 */
    uint32_t release_to;              /*  28  free-running index into the rx ring */
    uint32_t region;                  /*  32  where the data goes; the copy is counted there */
    uint8_t unused[28];               /*  36 */
};
_Static_assert(sizeof(struct copy_descriptor) == 64, "copy descriptor");

enum endpoint_state { ENDPOINT_CLOSED = 0, ENDPOINT_OPEN = 1 };

/* Which event ring an endpoint uses. */
enum event_ring_kind {
    EVENT_RING_LOCK_FREE = 0, /* Open-MX 1.3.901 on: the consumer never writes it */
    EVENT_RING_RESET = 1,     /* the papers' ring: the consumer resets the slot's type */
};

struct endpoint_descriptor {          /* offset; writer */
    /* Its identity: the owning rank, at open and close. */
    volatile uint32_t state;          /*   0  enum endpoint_state */
    uint32_t session_id;              /*   4 */
    uint32_t runner;                  /*   8  the rank's process: whose wait slot to wake */
    uint32_t ring_kind;               /*  12  enum event_ring_kind */
    uint32_t entries;                 /*  16  supervisor: events in each ring, recvq slots */
    uint32_t recvq_slot_bytes;        /*  20  supervisor */
    uint64_t unexpected_offset;       /*  24  supervisor: struct event[entries] */
    uint64_t expected_offset;         /*  32  supervisor: struct event[entries] */
    uint64_t recvq_offset;            /*  40  supervisor */
    uint64_t tx_ring_offset;          /*  48  supervisor: the rank's own tx ring */
    uint64_t regions_offset;          /*  56  supervisor: struct memory_region[ENDPOINT_REGIONS] */
    /* Handlers' side, under `lock`. */
    pthread_mutex_t lock;             /*  64  handlers: robust, priority-inheriting */
    uint32_t unexpected_next;         /* 104  next unexpected event, free-running */
    uint32_t expected_next;           /* 108  next expected event, free-running */
    uint32_t last_core;               /* 112  core that touched it last, + 1 */
    volatile uint32_t process_core;   /* 116  the rank: core that it runs on, + 1; 0: not known */
    volatile uint64_t handovers;      /* 120  times another core than the last took it */
    /* Consumer's side: the owning rank. On a line of its own, however large the lock is. */
    _Alignas(64)
    volatile uint32_t unexpected_released; /* 128  free-running; in batches of entries / 4 */
    volatile uint32_t expected_released;   /* 132 */
    uint64_t pulls_offset;            /* 136  supervisor: struct pull_handle[ENDPOINT_PULLS] */
    uint32_t pid;                     /* 144  the rank, at open: whose memory its regions lie in */
    volatile uint32_t pulls_active;   /* 148  under `lock` */
    uint32_t reuses_slots;            /* 152  supervisor: of the recvq, as a ring (native/ring.h) */
    uint32_t recvq_first;             /* 156  under `lock`: the event that has the first slot */
    uint32_t recvq_read;              /* 160  where it reuses slots: unexpected events read */
    /* Handlers that pay for completed sends, with the token of the sends. */
    uint32_t sends_freed;             /* 164  frames of its tx ring whose buffers are free again */
    uint32_t freed_by;                /* 168  core that freed the last one, + 1; 0: none */
    uint32_t sends_left;              /* 172  NIC whose sends interrupt: frames of its tx ring that
                                       *      have left */
    uint8_t unused2[16];              /* 176 */
};
_Static_assert(sizeof(pthread_mutex_t) <= 48, "the lock fits its line");
_Static_assert(sizeof(struct endpoint_descriptor) == 192 + (sizeof(pthread_mutex_t) > 40 ? 64 : 0),
               "endpoint descriptor");

/* Cache lines that go with a structure from core to core: of an endpoint those that handlers write,
 * of an rx ring the consumer's two and its vector's, of the send side its own and the line in which
 * a sender is told of freed buffers. */
#define CACHE_LINE_BYTES 64
#define ENDPOINT_LINES                                                                             \
    (offsetof(struct endpoint_descriptor, handovers) / CACHE_LINE_BYTES -                          \
     offsetof(struct endpoint_descriptor, lock) / CACHE_LINE_BYTES + 1)
#define RX_RING_LINES (2 + sizeof(struct interrupt_vector) / CACHE_LINE_BYTES)
#define TX_RING_LINES (1 + sizeof(struct sent_frames) / CACHE_LINE_BYTES)

/* What an endpoint has room for (Open-MX). The structures are those of host/regions.h and
 * host/pull.h; their sizes are fixed here since they lie in the node segment. */
#define ENDPOINT_REGIONS 256
#define ENDPOINT_PULLS 1024
#define MEMORY_REGION_BYTES 64
#define PULL_HANDLE_BYTES 320
/* Those of host/raw.h: the queue, with room to grow, and a name. */
#define RAW_QUEUE_BYTES 65536
#define PEER_NAME_BYTES 96
/* Heaps begin one page into their segment. */
#define HEAP_START_BYTES 4096
#define NO_RUNNER 0xFFFFFFFFu

/* Which rx queue a frame goes to. */
enum steering_kind {
    STEERING_ENDPOINT = 0, /* Open-MX by destination endpoint, others by hash (multiqueue) */
    STEERING_RSS = 1,      /* by hash; what is not IP, Open-MX's too, to queue 0 */
    STEERING_RPS = 2,      /* one queue; its handler hands frames on to other cores, by endpoint */
    STEERING_ARFS = 3,     /* by a table that follows the processes */
};

/* Where the frames of an endpoint go (aRFS). */
struct steering_flow {     /* offset; writer */
    volatile uint32_t wanted; /* 0  handlers, under the endpoint's lock: queue + 1; 0: as it is */
    volatile uint32_t queue;  /* 4  NIC; at the start endpoint modulo queues */
};
_Static_assert(sizeof(struct steering_flow) == 8, "steering flow");

/* Which ranks take frames from the rx rings beside the interrupt handler. */
enum busy_poll {
    BUSY_POLL_NONE = 0,                   /* none */
    BUSY_POLL_RANKS = 1,                  /* a rank that looks for messages */
    BUSY_POLL_SUSPEND = 2,                /* the same, and interrupts stay off while it finds any */
};

struct node_header {                  /* offset; writer: supervisor, before any agent starts */
    struct segment_header segment;    /*   0 */
    uint32_t index;                   /*  64  this node; also its peer index */
    uint32_t nodes_count;             /*  68 */
    uint32_t cores_count;             /*  72 */
    uint32_t vectors_count;           /*  76 */
    uint32_t endpoints_count;         /*  80 */
    uint32_t mark_early;              /*  84  fragments by which a medium message's mark is early */
    uint32_t frame_slot_bytes;        /*  88 */
    uint32_t nic_runner;              /*  92  the NIC's process: whose wait slot is its doorbell */
    uint32_t nic_agent;               /*  96 */
    uint32_t busy_poll;               /* 100  enum busy_poll: whether ranks poll rx rings */
    uint64_t cores_offset;            /* 104  struct core_interrupts[cores_count] */
    uint64_t vectors_offset;          /* 112  struct interrupt_vector[vectors_count] */
    uint64_t endpoints_offset;        /* 120  struct endpoint_descriptor[endpoints_count] */
    uint64_t core_tx_rings_offset;    /* 128  struct ring, one per core, core_tx_stride apart */
    uint64_t core_tx_stride;          /* 136 */
    uint64_t endpoint_tx_rings_offset;/* 144  struct ring, one per endpoint */
    uint64_t endpoint_tx_stride;      /* 152 */
    uint64_t link_rings_offset;       /* 160  struct ring, incoming, links_count of them */
    uint64_t link_stride;             /* 168 */
    uint64_t heap_bytes;              /* 176  of each endpoint's heap; 0: there are none */
    uint64_t raw_offset;              /* 184  struct raw_queue of host/raw.h */
    struct wire_geometry geometry;    /* 192  how messages are cut into frames */
    uint64_t marked_types;            /* 216  bit n: packets of ptype n that the coalescing
                                       *      paper marks are marked */
    int64_t pull_resend_delay_ns;     /* 224  of a pull without progress (Open-MX: 1000 ms) */
    uint32_t pull_resends_max;        /* 232  times that delay, then a pull is given up */
    uint32_t dma_runner;              /* 236  the dma agent's process, or NO_RUNNER */
    uint32_t dma_agent;               /* 240 */
    uint32_t copy_message_bytes;      /* 244  shortest message whose copies are offloaded */
    uint32_t copy_frame_bytes;        /* 248  shortest copy that is */
    uint32_t links_count;             /* 252  incoming links: of each node, or of a switch */
    uint64_t vmmc_offset;             /* 256  struct vmmc_node of shared/vmmc.h; 0: another NIC */
    uint32_t steering;                /* 264  enum steering_kind */
    uint32_t copies_are_timed;        /* 268  the dma agent's copies end at times of a virtual
                                       *      clock: none while a process waits without it */
    uint64_t flows_offset;            /* 272  struct steering_flow[NODE_FLOWS] */
    uint64_t backlogs_offset;         /* 280  struct ring of frame_slot, one per core; 0: no RPS */
    uint64_t backlog_stride;          /* 288 */
    uint64_t rps_cores;               /* 296  bit n: RPS may hand frames to core n */
    uint32_t affinity_changes;        /* 304  onlookers: times that they steered interrupts */
    uint8_t unused4[12];              /* 308 */
    struct sent_frames sent;          /* 320 */
};
_Static_assert(sizeof(struct node_header) == 384, "node header");

#define NODE_PART(node, type, offset) ((type *)((char *)(node) + (offset)))

static inline struct core_interrupts *node_core(struct node_header *node, uint32_t core) {
    return NODE_PART(node, struct core_interrupts, node->cores_offset) + core;
}
static inline struct interrupt_vector *node_vector(struct node_header *node, uint32_t vector) {
    return NODE_PART(node, struct interrupt_vector, node->vectors_offset) + vector;
}
static inline struct endpoint_descriptor *node_endpoint(struct node_header *node, uint32_t index) {
    return NODE_PART(node, struct endpoint_descriptor, node->endpoints_offset) + index;
}
/* WIRE_MARK if packets of `ptype` are to be marked on this node, else 0. */
static inline uint8_t node_mark(const struct node_header *node, uint32_t ptype) {
    return (uint8_t)((node->marked_types >> ptype & 1) * WIRE_MARK);
}
static inline struct ring *node_rx_ring(struct node_header *node, uint32_t vector) {
    return NODE_PART(node, struct ring, node_vector(node, vector)->rx_ring_offset);
}
/* How far the handlers of a vector have come in its rx ring; for atomic loads. */
static inline const uint32_t *node_handled(struct node_header *node, uint32_t vector) {
    return node->dma_runner == NO_RUNNER ? (const uint32_t *)&node_rx_ring(node, vector)->tail
                                         : &node_vector(node, vector)->handled;
}
/* The dma agent's work from a vector. Call only if the node has a dma agent. */
static inline struct ring *node_copy_ring(struct node_header *node, uint32_t vector) {
    return NODE_PART(node, struct ring, node_vector(node, vector)->copy_ring_offset);
}
static inline struct ring *node_core_tx_ring(struct node_header *node, uint32_t core) {
    return NODE_PART(node, struct ring, node->core_tx_rings_offset + core * node->core_tx_stride);
}
static inline struct ring *node_endpoint_tx_ring(struct node_header *node, uint32_t endpoint) {
    return NODE_PART(node, struct ring,
                     node->endpoint_tx_rings_offset + endpoint * node->endpoint_tx_stride);
}
static inline struct ring *node_link_ring(struct node_header *node, uint32_t source) {
    return NODE_PART(node, struct ring, node->link_rings_offset + source * node->link_stride);
}

static inline struct steering_flow *node_flow(struct node_header *node, uint32_t endpoint) {
    return NODE_PART(node, struct steering_flow, node->flows_offset) + endpoint;
}
/* Frames that other cores have handed to this one. Call only with STEERING_RPS. */
static inline struct ring *node_backlog(struct node_header *node, uint32_t core) {
    return NODE_PART(node, struct ring, node->backlogs_offset + core * node->backlog_stride);
}

/* A node's hardware address: locally administered, the node's index in its last bytes. */
static inline void node_address(uint32_t index, uint8_t address[6]) {
    address[0] = 0x02;
    address[1] = 0x5a;
    address[2] = 0;
    address[3] = 0;
    address[4] = (uint8_t)(index >> 8);
    address[5] = (uint8_t)index;
}

/* -- events ------------------------------------------------------------ */

enum event_type {
    EVENT_NONE = 0x00,
    EVENT_IGNORE = 0x01,
    EVENT_CONNECT_REQUEST = 0x11,
    EVENT_CONNECT_REPLY = 0x12,
    EVENT_TINY = 0x13,
    EVENT_SMALL = 0x14,
    EVENT_MEDIUM_FRAG = 0x15,
    EVENT_RNDV = 0x16,
    EVENT_NOTIFY = 0x17,
    EVENT_LIBACK = 0x18,
    EVENT_NACK_LIB = 0x19,
    EVENT_MEDIUM_SENDQ_DONE = 0x20,
    EVENT_PULL_DONE = 0x21,
    EVENT_UNREADABLE = 0x22,
};

#define TINY_MAX_BYTES 32
#define SMALL_MAX_BYTES 128

struct event_tiny { uint16_t checksum; uint8_t length; uint8_t unused[5]; uint8_t data[32]; };
struct event_small { uint32_t recvq_offset; uint16_t length, checksum; };
struct event_medium {
    uint32_t recvq_offset, message_length;
    uint16_t frag_length;
    uint8_t frag_seqnum, pipeline;
    uint16_t checksum;
};
struct event_connect {
    uint32_t src_session_id, key_or_session;
    uint16_t target_recv_seqnum_start;
    uint8_t connect_seqnum, status;
};
struct event_liback { uint32_t session_id, acknum; uint16_t lib_seqnum, send_seq; uint8_t resent; };
struct event_nack { uint16_t lib_seqnum; uint8_t nack_type; };
struct event_rndv { uint32_t message_length; uint8_t rdma_id, rdma_seqnum; uint16_t rdma_offset; };
struct event_notify { uint32_t transferred; uint8_t rdma_id, rdma_seqnum; };
/* How a pull ended: 0, an enum wire_nack, or one of these. */
enum pull_status { PULL_OK = 0, PULL_ABORTED = 5, PULL_TIMED_OUT = 6, PULL_UNWRITABLE = 7 };
struct event_pull_done { uint64_t cookie; uint32_t transferred; uint8_t status; };
/* A region of the rank's whose memory could not be read for a puller. */
struct event_unreadable { uint8_t rdma_id, rdma_seqnum; };

struct event {                 /* host byte order; offset */
    uint16_t peer_index;       /*  0 */
    uint8_t src_endpoint;      /*  2 */
    uint8_t unused0;           /*  3 */
    uint16_t seqnum, piggyack; /*  4 */
    uint64_t match_info;       /*  8 */
    union {                    /* 16 */
        struct event_tiny tiny;
        struct event_small small;
        struct event_medium medium;
        struct event_connect connect;
        struct event_liback liback;
        struct event_nack nack;
        struct event_rndv rndv;
        struct event_notify notify;
        struct event_pull_done pull_done;
        struct event_unreadable unreadable;
        uint8_t bytes[40];
    };
    uint8_t unused1[6];        /* 56 */
    uint8_t type;              /* 62  enum event_type */
    volatile uint8_t id;       /* 63  lock-free ring: 1 + index % 255, stored last */
};
_Static_assert(sizeof(struct event) == 64, "an event is one cache line");

static inline uint8_t event_id(uint32_t index) { return (uint8_t)(1 + index % 255); }

#endif
