/* Every counter, by the kind of agent that keeps it: where, what, why.
 *
 * An agent's counters lie in its record in the control segment; one writer, many
 * readers. X(name) makes the index COUNTER_<name>; the names themselves are
 * handed to Python by counter_name(), so that each is written once.
 */
#ifndef SHRIMPMX_SHARED_COUNTERS_H
#define SHRIMPMX_SHARED_COUNTERS_H

#include <stdint.h>

#define COUNTERS_MAX 80

enum agent_kind { AGENT_NIC = 0, AGENT_IRQ = 1, AGENT_RANK = 2, AGENT_HOG = 3, AGENT_KINDS = 4 };

#define NIC_COUNTERS(X)                                                                     \
    X(tx_packets) X(tx_bytes) X(tx_doorbells) X(tx_bad_frame) X(tx_no_route)                \
    X(link_lost) X(link_duplicated) X(link_reordered) X(link_corrupted)                     \
    X(rx_packets) X(rx_bytes) X(rx_marked) X(rx_drop_ring_full) X(rx_bad_frame)             \
    X(rx_bad_fcs)                                                                           \
    X(irq_raised) X(irq_raised_packet) X(irq_raised_marked) X(irq_raised_deferred)          \
    X(irq_raised_timeout) X(irq_raised_frames) X(irq_wished) X(irq_held_back)               \
    X(irq_absorbed) X(irq_deferred) X(generated_packets) X(generated_resent)                \
    X(sunk_packets) X(sunk_acks) X(steps)

#define IRQ_COUNTERS(X)                                                                     \
    X(interrupts) X(polls) X(budget_exhausted) X(demotions) X(reclaims)                     \
    X(recv_packets) X(recv_connect) X(recv_tiny) X(recv_small) X(recv_medium_frag)          \
    X(recv_liback) X(recv_nack_lib) X(send_nack_lib) X(send_nomem_nack)                     \
    X(unexp_eventq_full) X(rank_wakes) X(rank_notifications)                                \
    X(drop_bad_header_datalen) X(drop_bad_datalen) X(drop_bad_skblen) X(drop_bad_ethertype) \
    X(drop_bad_peer_addr) X(drop_bad_peer_index) X(drop_bad_endpoint) X(drop_bad_session)   \
    X(drop_invalid_type) X(drop_unknown_type) X(drop_nosys_type) X(drop_bad_magic)

#define RANK_COUNTERS(X)                                                                    \
    X(send_connect) X(send_tiny) X(send_small) X(send_medium_frag) X(send_liback)           \
    X(send_no_tx_slot) X(resent_messages) X(recv_events) X(recv_messages)                   \
    X(recv_unexpected) X(recv_early) X(recv_duplicate) X(recv_bad_session) X(recv_stale_ack)\
    X(acks_piggybacked) X(acks_delayed) X(acks_immediate) X(zombies) X(truncated)           \
    X(cancelled) X(partners_dead) X(pool_grown) X(progress_calls) X(unexpected_no_buffer)   \
    X(medium_no_assembly) X(nacks_received) X(recv_bad_fragment) X(recv_out_of_window)

#define HOG_COUNTERS(X) X(loops)

#define COUNTER_ENUM(name) COUNTER_##name,
enum nic_counter { NIC_COUNTERS(COUNTER_ENUM) NIC_COUNTERS_COUNT };
enum irq_counter { IRQ_COUNTERS(COUNTER_ENUM) IRQ_COUNTERS_COUNT };
enum rank_counter { RANK_COUNTERS(COUNTER_ENUM) RANK_COUNTERS_COUNT };
enum hog_counter { HOG_COUNTERS(COUNTER_ENUM) HOG_COUNTERS_COUNT };
_Static_assert(NIC_COUNTERS_COUNT <= COUNTERS_MAX, "raise COUNTERS_MAX");
_Static_assert(IRQ_COUNTERS_COUNT <= COUNTERS_MAX, "raise COUNTERS_MAX");
_Static_assert(RANK_COUNTERS_COUNT <= COUNTERS_MAX, "raise COUNTERS_MAX");

/* The name of a counter, or NULL past the last one of that kind. */
static inline const char *counter_name(uint32_t kind, uint32_t index) {
#define COUNTER_NAME(name) #name,
    static const char *const nic[] = {NIC_COUNTERS(COUNTER_NAME) 0};
    static const char *const irq[] = {IRQ_COUNTERS(COUNTER_NAME) 0};
    static const char *const rank[] = {RANK_COUNTERS(COUNTER_NAME) 0};
    static const char *const hog[] = {HOG_COUNTERS(COUNTER_NAME) 0};
#undef COUNTER_NAME
    static const char *const *const names[AGENT_KINDS] = {nic, irq, rank, hog};
    static const uint32_t counts[AGENT_KINDS] = {NIC_COUNTERS_COUNT, IRQ_COUNTERS_COUNT,
                                                 RANK_COUNTERS_COUNT, HOG_COUNTERS_COUNT};
    return kind < AGENT_KINDS && index < counts[kind] ? names[kind][index] : 0;
}

#endif
