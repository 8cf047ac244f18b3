/* MXoE frames as they travel (EtherType 0x86DF): packed, network byte order.
 *
 * Sizes and fields are those of Open-MX's native wire format. A frame is an
 * Ethernet header and a peer index (together the 16-byte head), one of the headers
 * below, and its data; it is padded to 60 bytes. Multi-byte fields are
 * big-endian: read and write them with be16()/be32() and their to_ forms.
 *
 * `dst_src_peer_index` in the head is the index under which the *receiver* knows
 * the sender.
 */
#ifndef SHRIMPMX_WIRE_WIRE_H
#define SHRIMPMX_WIRE_WIRE_H

#include <stdint.h>

#define WIRE_ETHERTYPE 0x86DF
#define WIRE_HEAD_BYTES 16
#define WIRE_FRAME_MIN_BYTES 60 /* ETH_ZLEN; also the head and the largest header */
#define WIRE_MARK 0x80          /* ptype bit: latency-sensitive (coalescing paper, III-B) */
#define WIRE_TRUC_ACK 0x55      /* `type` of a library acknowledgement inside a truc packet */
#define WIRE_NO_PEER 0xFFFF     /* head's peer index while the receiver is not known yet */

enum wire_ptype {
    PTYPE_NONE = 0,
    PTYPE_RAW = 1,
    PTYPE_HOST_QUERY = 3,
    PTYPE_HOST_REPLY = 4,
    PTYPE_TRUC = 35, /* library acknowledgements */
    PTYPE_CONNECT = 36,
    PTYPE_TINY = 37,
    PTYPE_SMALL = 38,
    PTYPE_MEDIUM_FRAG = 39,
    PTYPE_RNDV = 40,
    PTYPE_PULL_REQUEST = 41,
    PTYPE_PULL_REPLY = 42,
    PTYPE_NOTIFY = 43,
    PTYPE_NACK_LIB = 44,
    PTYPE_NACK_MCP = 45,
    PTYPE_COUNT = 46,
};

enum wire_nack {
    NACK_NONE = 0,
    NACK_BAD_ENDPOINT = 1,
    NACK_ENDPOINT_CLOSED = 2,
    NACK_BAD_SESSION = 3,
    NACK_BAD_REGION = 4,
};

enum wire_connect_status { CONNECT_OK = 0, CONNECT_BAD_KEY = 11 };

#define WIRE_PACKED __attribute__((packed))

struct WIRE_PACKED wire_head { /* 16 bytes, before every header below */
    uint8_t destination[6];
    uint8_t source[6];
    uint16_t ethertype;
    uint16_t dst_src_peer_index;
};

struct WIRE_PACKED wire_truc {
    uint8_t ptype, dst_endpoint, src_endpoint, src_generation;
    uint8_t length, unused0[3];
    uint32_t session;
    uint8_t type, unused1;
    uint16_t lib_seqnum;
    uint32_t session_id;
    uint32_t acknum;
    uint16_t send_seq;
    uint8_t resent, unused2;
};

struct WIRE_PACKED wire_connect {
    uint8_t ptype, dst_endpoint, src_endpoint, src_generation;
    uint8_t length, unused0[3];
    uint16_t lib_seqnum;
    uint16_t src_dst_peer_index;
    uint8_t unused1[4];
    uint32_t src_session_id;
    uint32_t key_or_session; /* request: application key; reply: the target's session */
    uint16_t target_recv_seqnum_start;
    uint8_t is_reply, connect_seqnum;
    uint8_t status; /* reply only; enum wire_connect_status */
    uint8_t unused2[3];
};

struct WIRE_PACKED wire_message { /* tiny and small; first part of rndv (length: what follows) */
    uint8_t ptype, dst_endpoint, src_endpoint, src_generation;
    uint16_t length, checksum;
    uint16_t lib_seqnum, lib_piggyack;
    uint32_t match_a, match_b;
    uint32_t session;
};

struct WIRE_PACKED wire_medium {
    uint8_t ptype, dst_endpoint, src_endpoint, src_generation;
    uint32_t length; /* of the whole message: see wire_medium_length() */
    uint16_t lib_seqnum, lib_piggyack;
    uint32_t match_a, match_b;
    uint32_t session;
    uint16_t frag_length;
    uint8_t frag_seqnum, pipeline; /* compatible: log2 of a fragment; native: padding */
    uint16_t checksum, unused1;
};

struct WIRE_PACKED wire_rndv {
    struct wire_message message;
    uint32_t message_length;
    uint8_t rdma_id, rdma_seqnum;
    uint16_t rdma_offset;
};

struct WIRE_PACKED wire_pull_request {
    uint8_t ptype, dst_endpoint, src_endpoint, src_generation;
    uint32_t session;
    uint32_t total_length;
    uint32_t rdma_id;
    uint8_t rdma_seqnum, unused0[3];
    uint32_t rdma_offset;
    uint32_t src_pull_handle, src_magic;
    uint32_t first_frame_offset, block_length, frame_index;
};

/* The same in the MX firmware's own format: frames of 4096 bytes, 8 to a block. */
struct WIRE_PACKED wire_pull_request_compatible {
    uint8_t ptype, dst_endpoint, src_endpoint, src_generation;
    uint32_t session;
    uint32_t total_length;
    uint8_t rdma_id, rdma_seqnum;
    uint16_t rdma_offset;
    uint32_t src_pull_handle, src_magic;
    uint16_t first_frame_offset, block_length;
    uint32_t frame_index;
};

struct WIRE_PACKED wire_pull_reply {
    uint8_t ptype, frame_seqnum;
    uint16_t frame_length;
    uint32_t message_offset;
    uint32_t dst_pull_handle, dst_magic;
};

struct WIRE_PACKED wire_notify {
    uint8_t ptype, dst_endpoint, src_endpoint, src_generation;
    uint32_t session;
    uint32_t total_length;
    uint8_t rdma_id, rdma_seqnum, unused0[2], unused1[2];
    uint16_t lib_seqnum, lib_piggyack;
    uint8_t unused2[2];
};

struct WIRE_PACKED wire_nack_lib {
    uint8_t ptype, src_endpoint, src_generation, nack_type;
    uint8_t unused0[4];
    uint8_t unused1, dst_endpoint;
    uint16_t dst_src_peer_index, lib_seqnum;
    uint8_t unused2[2];
};

struct WIRE_PACKED wire_nack_mcp {
    uint8_t ptype, src_endpoint, src_generation, nack_type;
    uint8_t unused0[4];
    uint32_t src_pull_handle, src_magic;
};

struct WIRE_PACKED wire_host_query {
    uint8_t ptype, unused0;
    uint16_t src_dst_peer_index;
    uint8_t unused1[4];
    uint32_t magic;
    uint8_t unused2[4];
};

struct WIRE_PACKED wire_host_reply {
    uint8_t ptype, length;
    uint16_t src_dst_peer_index;
    uint8_t unused0[4];
    uint32_t magic;
    uint8_t unused1[4];
};

/* What privileged programs send each other. Ours: of Open-MX's only the type is known. */
struct WIRE_PACKED wire_raw {
    uint8_t ptype, unused0;
    uint16_t length; /* of the data behind */
};

#define WIRE_HOST_MAGIC 0x13052008
#define WIRE_HOST_NAME_MAX_BYTES 80

_Static_assert(sizeof(struct wire_head) == WIRE_HEAD_BYTES, "head");
_Static_assert(sizeof(struct wire_truc) == 28, "truc");
_Static_assert(sizeof(struct wire_connect) == 32, "connect");
_Static_assert(sizeof(struct wire_message) == 24, "tiny, small");
_Static_assert(sizeof(struct wire_medium) == 32, "medium fragment");
_Static_assert(sizeof(struct wire_rndv) == 32, "rndv");
_Static_assert(sizeof(struct wire_pull_request) == 44, "pull request");
_Static_assert(sizeof(struct wire_pull_request_compatible) == 32, "pull request, compatible");
_Static_assert(sizeof(struct wire_pull_reply) == 16, "pull reply");
_Static_assert(sizeof(struct wire_notify) == 24, "notify");
_Static_assert(sizeof(struct wire_nack_lib) == 16, "nack-lib");
_Static_assert(sizeof(struct wire_nack_mcp) == 16, "nack-mcp");
_Static_assert(sizeof(struct wire_host_query) == 16, "host query");
_Static_assert(sizeof(struct wire_host_reply) == 16, "host reply");
_Static_assert(sizeof(struct wire_raw) == 4, "raw");

/* Magic of a pull: the puller's endpoint under this mask (Open-MX). A NIC can so tell the
 * endpoint of a pull reply, which names none, by its last byte. */
#define WIRE_PULL_MAGIC 0x21071980u

/* How messages are cut into frames: by the MTU and the format that a cluster speaks. The
 * numbers are those of tables.py; every check and every sender takes them from here. */
struct wire_geometry {
    uint32_t mtu_bytes;         /* longest frame, head and data */
    uint32_t medium_frag_bytes; /* data of a full medium fragment */
    uint32_t medium_frags_max;  /* fragments of a medium message */
    uint32_t pull_frame_bytes;  /* data of a full pull reply */
    uint32_t pull_block_frames; /* replies that one pull request asks for */
    uint32_t compatible;        /* 1: the MX firmware's format, 0: Open-MX's native one */
};

#define WIRE_COMPATIBLE_PIPELINE 12 /* the MX firmware's fragments: 1 << 12 bytes */

static inline uint16_t be16(uint16_t value) { return __builtin_bswap16(value); }
static inline uint32_t be32(uint32_t value) { return __builtin_bswap32(value); }

/* wire_medium.length of a message of `length` bytes: 4 bytes natively, in the MX firmware's
 * format 2 bytes and 2 of padding. */
static inline uint32_t wire_medium_length_field(uint32_t length,
                                                const struct wire_geometry *geometry) {
    return be32(geometry->compatible ? length << 16 : length);
}

/* The length of the message that a medium fragment belongs to. */
static inline uint32_t wire_medium_length(const struct wire_medium *medium,
                                          const struct wire_geometry *geometry) {
    return geometry->compatible ? be32(medium->length) >> 16 : be32(medium->length);
}

#endif
