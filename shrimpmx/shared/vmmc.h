/* What a process of SHRIMP shares with its node's NIC and interrupt handler (virtual
 * memory-mapped communication, VMMC): exports, imports, pages and mailbox, in the node segment.
 *
 * Data goes straight into the process's part of the node's heap segment. A *page* is one of
 * that part's pages; its word says whether a write to it interrupts. Places are byte offsets,
 * as in layout.h.
 *
 * A waiter and the NIC, each with a full fence between its two steps, so that no wake-up is lost:
 *
 *   NIC:     deposit data      ; full fence (V1) ; page enabled? -> raise an interrupt
 *   waiter:  enable its pages  ; full fence (V2) ; data there?   -> disable them, else sleep
 *
 * The handler disables all pages of the waiter, then wakes it (waiting paper, section 4).
 */
#ifndef SHRIMPMX_SHARED_VMMC_H
#define SHRIMPMX_SHARED_VMMC_H

#include <stdint.h>

#include "native/ring.h"
#include "shared/layout.h"

#define VMMC_PAGE_SHIFT 12
#define VMMC_PAGE_BYTES (1u << VMMC_PAGE_SHIFT)
#define VMMC_EXPORTS 4096       /* of a process */
#define VMMC_IMPORTS 4096
#define VMMC_WATCHED_MAX 60     /* pages that one wait can watch, the mailbox's included */
#define VMMC_MAILBOX_ENTRIES 4096
#define VMMC_PORTS 65536        /* of a node */
#define VMMC_ANY_NODE 0xFFFFFFFFu
#define VMMC_LETTER_BYTES 48
#define VMMC_NO_ENDPOINT 0xFFu  /* in a letter: the owner of its port */

/* A page's word. */
enum vmmc_page {
    VMMC_PAGE_OFF = 0,     /* a write does not interrupt */
    VMMC_PAGE_BLOCK = 1,   /* it does, once: a waiter sleeps or is about to; set by the owner */
    VMMC_PAGE_FIRED = 2,   /* BLOCK, and the NIC has raised the interrupt */
    VMMC_PAGE_NOTIFY = 3,  /* each write interrupts and is a notification; set by the owner */
    VMMC_PAGE_WATCHDOG = 4,/* a write interrupts after nic.watchdog_ns, unless polled before */
};

enum vmmc_process_state {
    VMMC_CLOSED = 0,
    VMMC_OPEN = 1,
    VMMC_CLOSING = 2,      /* closed or dead: the NIC tells its peers, then makes it CLOSED */
    VMMC_OPENING = 3,      /* its owner prepares the tables; no other process reads them */
};

struct vmmc_export {                /* offset; writer: the owner */
    volatile uint32_t generation;   /*  0  stored last; 0: there is no such export */
    uint32_t allowed_node;          /*  4  may map it: a node, or VMMC_ANY_NODE */
    uint64_t offset;                /*  8  in the process's part of the heap; page-aligned */
    uint64_t length;                /* 16  bytes */
    uint32_t interrupts;            /* 24  1: the owner agrees to be interrupted by its writes */
    uint32_t unused;                /* 28 */
};
_Static_assert(sizeof(struct vmmc_export) == 32, "vmmc export");

struct vmmc_import {                /* offset; writer: the owner, before it sends */
    volatile uint32_t generation;   /*  0  of the remote export; 0: no such import */
    uint16_t node;                  /*  4 */
    uint16_t export_index;          /*  6 */
    uint64_t length;                /*  8  bytes of the remote export */
    uint8_t endpoint;               /* 16 */
    uint8_t unused[15];             /* 17 */
};
_Static_assert(sizeof(struct vmmc_import) == 32, "vmmc import");

/* What letters are about. Those below 16 are the NIC's own; others are the library's, whose
 * content the NIC does not know. */
enum vmmc_letter_kind {
    VMMC_LETTER_MAPPED = 1,  /* answer to a map request: tag, status, generation, length */
    VMMC_LETTER_BOUNCED = 2, /* a letter could not be delivered: its tag, status */
    VMMC_LETTER_GONE = 3,    /* the process that sent this mapped one of ours, and has closed */
    VMMC_LETTER_LIBRARY = 16,
};

/* Why a map or a letter failed. */
enum vmmc_status {
    VMMC_OK = 0,
    VMMC_NOT_EXPORTED = 1,
    VMMC_NOT_ALLOWED = 2,
    VMMC_NO_PROCESS = 3,     /* no open process at that endpoint */
    VMMC_NO_PORT = 4,        /* that port is free */
    VMMC_MAILBOX_FULL = 5,
};

struct vmmc_letter {            /* as it lies in a mailbox slot; host byte order */
    uint16_t node;              /*  0  the sender */
    uint8_t endpoint;           /*  2 */
    uint8_t kind;               /*  3  enum vmmc_letter_kind */
    uint32_t tag;               /*  4  the sender's, for answers */
    uint32_t status;            /*  8  enum vmmc_status */
    uint32_t generation;        /* 12  MAPPED: of the export */
    uint8_t data[VMMC_LETTER_BYTES]; /* 16  MAPPED: its length, uint64_t; library: as sent */
};
_Static_assert(sizeof(struct vmmc_letter) == 64, "a letter is one cache line");

struct vmmc_process {               /* of one endpoint; offset; writer */
    volatile uint32_t state;        /*   0  enum vmmc_process_state */
    uint32_t session;               /*   4  owner, at open */
    uint32_t runner;                /*   8  owner, at open: whose wait slot to wake */
    uint32_t core;                  /*  12  owner, at open: the core that its interrupts go to */
    uint64_t heap_offset;           /*  16  owner, at open: its part, in the heap segment */
    uint64_t heap_bytes;            /*  24  owner, at open */
    uint64_t pages_offset;          /*  32  supervisor: uint32_t[pages_count], enum vmmc_page */
    uint64_t exports_offset;        /*  40  supervisor: struct vmmc_export[VMMC_EXPORTS] */
    uint64_t imports_offset;        /*  48  supervisor: struct vmmc_import[VMMC_IMPORTS] */
    uint64_t mailbox_offset;        /*  56  supervisor: struct ring of vmmc_letter */
    uint32_t pages_count;           /*  64  supervisor; the last one is the mailbox's own word */
    uint32_t unused0[15];           /*  68 */
    volatile uint32_t fired;        /* 128  NIC: 1 when it raised for a BLOCK page; handler: 0 */
    volatile uint32_t notifications;/* 132  NIC: adds one for each; handler: takes all */
    volatile uint32_t polled;       /* 136  owner: counts looks that found something (watchdog) */
    uint32_t unused1[13];           /* 140 */
    volatile uint32_t watched_count;/* 192  owner, before it enables */
    volatile uint32_t watched[VMMC_WATCHED_MAX]; /* 196  pages that the owner waits for */
    uint8_t unused2[12];            /* 436 */
};
_Static_assert(sizeof(struct vmmc_process) == 448, "vmmc process");

/* A core's share of SHRIMP's interrupts. */
struct vmmc_core {                  /* offset; writer */
    volatile uint64_t pending[4];   /*  0  NIC sets bits, the handler takes all: endpoints */
    volatile int64_t raised_ns;     /* 32  NIC: time of the last interrupt */
    uint8_t unused[24];             /* 40 */
};
_Static_assert(sizeof(struct vmmc_core) == 64, "vmmc core");

struct vmmc_node {                  /* offset; writer */
    volatile uint32_t depositing;   /*  0  the acting NIC: odd while it writes into
                                     *     processes' memory */
    uint32_t unused0[15];           /*  4 */
    uint64_t processes_offset;      /* 64  supervisor: struct vmmc_process[endpoints_count] */
    uint64_t cores_offset;          /* 72  supervisor: struct vmmc_core[cores_count] */
    uint64_t ports_offset;          /* 80  supervisor: uint8_t[VMMC_PORTS], processes by compare
                                     *     and exchange: the endpoint that has the port, + 1 */
    volatile uint32_t closing;      /* 88  added to after a process was made CLOSING, by the closer,
                                     *     which then rings the NIC's doorbell */
    uint8_t unused1[36];            /* 92 */
    /* Of node 0: held by the process that acts as the NICs, where senders lend them their CPU. */
    pthread_mutex_t lock;           /* 128  robust, priority-inheriting */
    uint8_t unused2[64 - sizeof(pthread_mutex_t) % 64];
};
_Static_assert(sizeof(struct vmmc_node) == 192, "vmmc node");

/* Call these only for a node whose vmmc_offset is not 0. */
static inline struct vmmc_node *node_vmmc(struct node_header *node) {
    return NODE_PART(node, struct vmmc_node, node->vmmc_offset);
}
static inline struct vmmc_process *vmmc_process_of(struct node_header *node, uint32_t endpoint) {
    return NODE_PART(node, struct vmmc_process, node_vmmc(node)->processes_offset) + endpoint;
}
static inline struct vmmc_core *vmmc_core_of(struct node_header *node, uint32_t core) {
    return NODE_PART(node, struct vmmc_core, node_vmmc(node)->cores_offset) + core;
}
static inline volatile uint8_t *vmmc_ports_of(struct node_header *node) {
    return NODE_PART(node, volatile uint8_t, node_vmmc(node)->ports_offset);
}
static inline volatile uint32_t *vmmc_pages_of(struct node_header *node,
                                               const struct vmmc_process *process) {
    return NODE_PART(node, volatile uint32_t, process->pages_offset);
}
static inline struct vmmc_export *vmmc_exports_of(struct node_header *node,
                                                  const struct vmmc_process *process) {
    return NODE_PART(node, struct vmmc_export, process->exports_offset);
}
static inline struct vmmc_import *vmmc_imports_of(struct node_header *node,
                                                  const struct vmmc_process *process) {
    return NODE_PART(node, struct vmmc_import, process->imports_offset);
}
static inline struct ring *vmmc_mailbox_of(struct node_header *node,
                                           const struct vmmc_process *process) {
    return NODE_PART(node, struct ring, process->mailbox_offset);
}

#endif
