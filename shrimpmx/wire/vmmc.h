/* Frames of SHRIMP's NIC as they travel: packed, network byte order.
 *
 * A frame is the 16-byte head of wire.h with an EtherType of its own, the header below and
 * `length` bytes of data; it is padded to 60 bytes. SHRIMP's network neither loses nor
 * reorders packets, so nothing here is numbered. The EtherType is IEEE's for local experiments.
 */
#ifndef SHRIMPMX_WIRE_VMMC_H
#define SHRIMPMX_WIRE_VMMC_H

#include <stdint.h>

#include "wire/wire.h"

#define VMMC_ETHERTYPE 0x88B5
#define VMMC_HEADER_BYTES 20
#define VMMC_FLAG_INTERRUPT 1 /* the sender asks for an interrupt after this packet */

enum vmmc_packet {
    VMMC_UPDATE = 1,      /* data for an export, at `offset` */
    VMMC_MAP_REQUEST = 2, /* is there export `export_index`? `offset` is the asker's tag */
    VMMC_LETTER = 3,      /* data: a letter's `data`; for the mailbox of `dst_endpoint`, or if
                           * that is VMMC_NO_ENDPOINT, of the owner of port `export_index` */
};

struct WIRE_PACKED wire_vmmc {  /* offset, behind the head */
    uint8_t packet;             /*  0  enum vmmc_packet */
    uint8_t dst_endpoint;       /*  1 */
    uint8_t src_endpoint;       /*  2 */
    uint8_t flags;              /*  3 */
    uint16_t length;            /*  4  data that follows */
    uint16_t export_index;      /*  6  UPDATE, MAP_REQUEST: the export; LETTER: the port */
    uint32_t generation;        /*  8  UPDATE: the export's; LETTER: status << 8 | kind */
    uint64_t offset;            /* 12  UPDATE: where in the export; else the tag */
};
_Static_assert(sizeof(struct wire_vmmc) == VMMC_HEADER_BYTES, "vmmc header");

static inline uint64_t be64(uint64_t value) { return __builtin_bswap64(value); }

#endif
