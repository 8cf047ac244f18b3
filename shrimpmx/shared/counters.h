/* Every counter, by the kind of agent that keeps it: where, what, why.
 *
 * An agent's counters lie in its record in the control segment; one writer, many
 * readers. X(name) makes the index COUNTER_<name>; the names themselves are
 * handed to Python by counter_name(), so that each is written once.
 */
#ifndef SHRIMPMX_SHARED_COUNTERS_H
#define SHRIMPMX_SHARED_COUNTERS_H

#include <stdint.h>

#include "costs/rows.h"

#define COUNTERS_MAX 144

/* Behind an agent's own counters: by cost, how often it has paid for that, and ns in all; whole
 * cache lines of them. */
#define RECORD_COUNTERS ((COUNTERS_MAX + 2 * COSTS_COUNT + 7) / 8 * 8)

enum agent_kind {
    AGENT_NIC = 0,
    AGENT_IRQ = 1,
    AGENT_RANK = 2,
    AGENT_HOG = 3,
    AGENT_DMA = 4,
    AGENT_SWITCH = 5,
    AGENT_KINDS = 6,
};

#define NIC_COUNTERS(X)                                                                     \
    X(tx_packets) X(tx_bytes) X(tx_bad_frame) X(tx_no_route) X(tx_completed)                \
    X(link_lost) X(link_duplicated) X(link_reordered) X(link_corrupted)                     \
    X(rx_packets) X(rx_bytes) X(rx_marked) X(rx_drop_ring_full) X(rx_bad_frame)             \
    X(rx_bad_fcs)                                                                           \
    X(irq_raised) X(irq_raised_packet) X(irq_raised_marked) X(irq_raised_deferred)          \
    X(irq_raised_timeout) X(irq_raised_frames) X(irq_raised_sent) X(irq_wished)             \
    X(irq_held_back) X(irq_absorbed) X(irq_deferred) X(irq_deferred_longest_ns)             \
    X(generated_packets) X(generated_resent) X(generated_invalid) X(generated_other)        \
    X(sunk_packets) X(sunk_acks) X(steps) X(irq_deferred_packets)                           \
    X(vmmc_updates) X(vmmc_update_bytes) X(vmmc_map_requests) X(vmmc_letters)               \
    X(vmmc_letters_bounced) X(vmmc_gone_letters) X(vmmc_page_interrupts)                    \
    X(vmmc_page_disabled) X(vmmc_watchdog_polled) X(drop_vmmc_bad_frame)                    \
    X(drop_vmmc_no_process) X(drop_vmmc_not_exported) X(drop_vmmc_out_of_range)             \
    X(drop_vmmc_mailbox_full) X(rx_queue_changes) X(flow_moves) X(mx_handled)

/* The driver's own, by Open-MX's names where it has one. Its code runs in the rank (send
 * side), in the irq agent (receive handler) and in the dma agent: these come first in all
 * three kinds, at the same index. */
#define DRIVER_COUNTERS(X)                                                                  \
    X(send_tiny) X(send_small) X(send_mediumsq_frag) X(send_mediumva_frag) X(send_rndv)     \
    X(send_notify) X(send_connect_request) X(send_connect_reply) X(send_liback)             \
    X(send_nack_lib) X(send_nack_mcp) X(send_pull_request) X(send_pull_reply) X(send_raw)   \
    X(send_host_query) X(send_host_reply) X(send_no_tx_slot)                                \
    X(send_nomem_nack_lib) X(send_nomem_nack_mcp) X(send_nomem_pull_request)                \
    X(send_nomem_pull_reply) X(send_nomem_host_reply)                                       \
    X(pull_reply_fill_failed) X(pull_nonfirst_block_done_early)                             \
    X(pull_request_notonlyfirst_blocks) X(pull_timeout_handler_first_block)                 \
    X(pull_timeout_handler_nonfirst_block) X(pull_timeout_abort) X(pull_done)               \
    X(exp_eventq_full) X(unexp_eventq_full) X(rank_wakes) X(rank_notifications)             \
    X(shared_tiny) X(shared_small) X(shared_medium_frag) X(shared_rndv) X(shared_notify)    \
    X(shared_connect_request) X(shared_connect_reply) X(shared_liback) X(shared_nack_lib)   \
    X(shared_pull) X(shared_eventq_full)                                                    \
    X(dmarecv_pull_reply) X(dmarecv_bytes) X(dma_ring_full)

#define IRQ_COUNTERS(X)                                                                     \
    X(interrupts) X(polls) X(budget_exhausted) X(demotions) X(reclaims) X(timer_ticks)      \
    X(poll_timers) X(suspensions) X(busy_polls) X(sends_reaped)                             \
    X(recv_other) X(recv_other_bytes) X(recv_other_delay_ns)                                \
    X(recv_packets) X(recv_tiny) X(recv_small) X(recv_medium_frag) X(recv_rndv)             \
    X(recv_notify) X(recv_connect_request) X(recv_connect_reply) X(recv_liback)             \
    X(recv_nack_lib) X(recv_nack_mcp) X(recv_pull_request) X(recv_pull_reply) X(recv_raw)   \
    X(recv_host_query) X(recv_host_reply)                                                   \
    X(drop_bad_header_datalen) X(drop_bad_datalen) X(drop_bad_skblen) X(drop_bad_ethertype) \
    X(drop_bad_peer_addr) X(drop_bad_peer_index) X(drop_bad_endpoint) X(drop_bad_session)   \
    X(drop_pull_bad_replies) X(drop_pull_bad_region) X(drop_pull_bad_offset_length)         \
    X(drop_pull_reply_bad_magic_endpoint) X(drop_pull_reply_bad_wire_handle)                \
    X(drop_pull_reply_bad_seqnum_wraparound) X(drop_pull_reply_bad_seqnum)                  \
    X(drop_pull_reply_duplicate) X(drop_nack_mcp_bad_magic_endpoint)                        \
    X(drop_nack_mcp_bad_wire_handle) X(drop_host_query_bad_magic)                           \
    X(drop_host_reply_bad_magic) X(drop_raw_queue_full) X(drop_raw_too_large)               \
    X(drop_nosys_type) X(drop_invalid_type) X(drop_unknown_type)                            \
    X(vmmc_wakes) X(vmmc_notifications) X(vmmc_unclaimed)                                   \
    X(handover_endpoint) X(handover_pull) X(handover_event) X(handover_event_back)          \
    X(recv_at_process) X(rps_steered) X(rps_interrupts) X(rps_backlog_full)                 \
    X(flow_requests)

#define RANK_COUNTERS(X)                                                                    \
    X(resent_messages) X(recv_events) X(recv_messages)                                      \
    X(recv_unexpected) X(recv_early) X(recv_duplicate) X(recv_bad_session) X(recv_stale_ack)\
    X(acks_piggybacked) X(acks_delayed) X(acks_immediate) X(zombies) X(truncated)           \
    X(cancelled) X(partners_dead) X(pool_grown) X(progress_calls) X(unexpected_no_buffer)   \
    X(medium_no_assembly) X(nacks_received) X(recv_bad_fragment) X(recv_out_of_window)      \
    X(sent_large) X(sent_self) X(sent_shared) X(pulls_started) X(pulls_waited)              \
    X(pulls_failed) X(recv_bad_notify) X(memory_heap) X(memory_process) X(memory_bounce)    \
    X(unexpected_handled) X(match_comparisons)                                              \
    X(sent_updates) X(sent_update_bytes) X(sent_letters) X(sent_update_waits)               \
    X(exports) X(imports) X(sockets_connected) X(sockets_accepted) X(sockets_reset)         \
    X(socket_bytes_sent) X(socket_bytes_received) X(socket_credit_waits)                    \
    X(socket_credits_returned) X(thread_switches) X(moves)

#define HOG_COUNTERS(X) X(loops)

#define DMA_COUNTERS(X) X(copies) X(copied_bytes) X(copies_refused)

#define SWITCH_COUNTERS(X)                                                                  \
    X(switch_packets) X(switch_bytes) X(switch_dropped) X(switch_paused) X(switch_paused_ns)

#define COUNTER_ENUM(name) COUNTER_##name,
enum nic_counter { NIC_COUNTERS(COUNTER_ENUM) NIC_COUNTERS_COUNT };
enum driver_counter { DRIVER_COUNTERS(COUNTER_ENUM) DRIVER_COUNTERS_COUNT };
enum irq_counter {
    IRQ_BEFORE = DRIVER_COUNTERS_COUNT - 1,
    IRQ_COUNTERS(COUNTER_ENUM) IRQ_COUNTERS_COUNT
};
enum rank_counter {
    RANK_BEFORE = DRIVER_COUNTERS_COUNT - 1,
    RANK_COUNTERS(COUNTER_ENUM) RANK_COUNTERS_COUNT
};
enum dma_counter {
    DMA_BEFORE = DRIVER_COUNTERS_COUNT - 1,
    DMA_COUNTERS(COUNTER_ENUM) DMA_COUNTERS_COUNT
};
enum hog_counter { HOG_COUNTERS(COUNTER_ENUM) HOG_COUNTERS_COUNT };
enum switch_counter { SWITCH_COUNTERS(COUNTER_ENUM) SWITCH_COUNTERS_COUNT };
_Static_assert(NIC_COUNTERS_COUNT <= COUNTERS_MAX, "raise COUNTERS_MAX");
_Static_assert(IRQ_COUNTERS_COUNT <= COUNTERS_MAX, "raise COUNTERS_MAX");
_Static_assert(RANK_COUNTERS_COUNT <= COUNTERS_MAX, "raise COUNTERS_MAX");
_Static_assert(DMA_COUNTERS_COUNT <= COUNTERS_MAX, "raise COUNTERS_MAX");

/* The name of a counter, or NULL past the last one of that kind. */
static inline const char *counter_name(uint32_t kind, uint32_t index) {
#define COUNTER_NAME(name) #name,
    static const char *const nic[] = {NIC_COUNTERS(COUNTER_NAME) 0};
    static const char *const irq[] = {DRIVER_COUNTERS(COUNTER_NAME) IRQ_COUNTERS(COUNTER_NAME) 0};
    static const char *const rank[] = {DRIVER_COUNTERS(COUNTER_NAME) RANK_COUNTERS(COUNTER_NAME) 0};
    static const char *const hog[] = {HOG_COUNTERS(COUNTER_NAME) 0};
    static const char *const dma[] = {DRIVER_COUNTERS(COUNTER_NAME) DMA_COUNTERS(COUNTER_NAME) 0};
    static const char *const switches[] = {SWITCH_COUNTERS(COUNTER_NAME) 0};
#undef COUNTER_NAME
    static const char *const *const names[AGENT_KINDS] = {nic, irq, rank, hog, dma, switches};
    static const uint32_t counts[AGENT_KINDS] = {NIC_COUNTERS_COUNT, IRQ_COUNTERS_COUNT,
                                                 RANK_COUNTERS_COUNT, HOG_COUNTERS_COUNT,
                                                 DMA_COUNTERS_COUNT, SWITCH_COUNTERS_COUNT};
    return kind < AGENT_KINDS && index < counts[kind] ? names[kind][index] : 0;
}

#endif
