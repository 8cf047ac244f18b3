"""What agents share: the control segment and the node segments; see layout.h."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.native.clock cimport Clock
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring
from shrimpmx.wire.wire cimport wire_geometry

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass

cdef extern from "shared/counters.h" nogil:
    enum:
        COUNTERS_MAX
        RECORD_COUNTERS
        AGENT_NIC
        AGENT_IRQ
        AGENT_RANK
        AGENT_HOG
        AGENT_DMA
        AGENT_SWITCH
    enum:
        COUNTER_tx_packets, COUNTER_tx_bytes, COUNTER_tx_bad_frame, COUNTER_tx_no_route
        COUNTER_tx_completed
        COUNTER_link_lost, COUNTER_link_duplicated, COUNTER_link_reordered, COUNTER_link_corrupted
        COUNTER_rx_packets, COUNTER_rx_bytes, COUNTER_rx_marked, COUNTER_rx_drop_ring_full
        COUNTER_rx_bad_frame, COUNTER_rx_bad_fcs, COUNTER_irq_raised, COUNTER_irq_raised_packet
        COUNTER_irq_raised_marked, COUNTER_irq_raised_deferred, COUNTER_irq_raised_timeout
        COUNTER_irq_raised_frames, COUNTER_irq_raised_sent
        COUNTER_irq_wished, COUNTER_irq_held_back
        COUNTER_irq_absorbed, COUNTER_irq_deferred, COUNTER_irq_deferred_longest_ns
        COUNTER_generated_packets
        COUNTER_generated_resent, COUNTER_generated_invalid, COUNTER_generated_other
        COUNTER_sunk_packets, COUNTER_sunk_acks, COUNTER_steps, COUNTER_irq_deferred_packets
        COUNTER_vmmc_updates, COUNTER_vmmc_update_bytes, COUNTER_vmmc_map_requests
        COUNTER_vmmc_letters, COUNTER_vmmc_letters_bounced, COUNTER_vmmc_gone_letters
        COUNTER_vmmc_page_interrupts, COUNTER_vmmc_page_disabled, COUNTER_vmmc_watchdog_polled
        COUNTER_drop_vmmc_bad_frame, COUNTER_drop_vmmc_no_process, COUNTER_drop_vmmc_not_exported
        COUNTER_drop_vmmc_out_of_range, COUNTER_drop_vmmc_mailbox_full, COUNTER_rx_queue_changes
        COUNTER_flow_moves, COUNTER_mx_handled
    enum:
        BUSY_POLL_NONE
        BUSY_POLL_SUSPEND
    enum:
        COUNTER_send_tiny, COUNTER_send_small, COUNTER_send_mediumsq_frag
        COUNTER_send_mediumva_frag, COUNTER_send_rndv, COUNTER_send_notify
        COUNTER_send_connect_request, COUNTER_send_connect_reply, COUNTER_send_liback
        COUNTER_send_nack_lib, COUNTER_send_nack_mcp, COUNTER_send_pull_request
        COUNTER_send_pull_reply, COUNTER_send_raw, COUNTER_send_host_query, COUNTER_send_host_reply
        COUNTER_send_no_tx_slot, COUNTER_send_nomem_nack_lib, COUNTER_send_nomem_nack_mcp
        COUNTER_send_nomem_pull_request, COUNTER_send_nomem_pull_reply
        COUNTER_send_nomem_host_reply, COUNTER_pull_reply_fill_failed
        COUNTER_pull_nonfirst_block_done_early, COUNTER_pull_request_notonlyfirst_blocks
        COUNTER_pull_timeout_handler_first_block, COUNTER_pull_timeout_handler_nonfirst_block
        COUNTER_pull_timeout_abort, COUNTER_pull_done, COUNTER_exp_eventq_full
        COUNTER_unexp_eventq_full, COUNTER_rank_wakes, COUNTER_rank_notifications
        COUNTER_shared_tiny, COUNTER_shared_small, COUNTER_shared_medium_frag, COUNTER_shared_rndv
        COUNTER_shared_notify, COUNTER_shared_connect_request, COUNTER_shared_connect_reply
        COUNTER_shared_liback, COUNTER_shared_nack_lib, COUNTER_shared_pull
        COUNTER_shared_eventq_full, COUNTER_dmarecv_pull_reply, COUNTER_dmarecv_bytes
        COUNTER_dma_ring_full
    enum:
        COUNTER_interrupts, COUNTER_polls, COUNTER_budget_exhausted, COUNTER_demotions
        COUNTER_reclaims, COUNTER_timer_ticks, COUNTER_poll_timers, COUNTER_suspensions
        COUNTER_busy_polls, COUNTER_sends_reaped, COUNTER_recv_other, COUNTER_recv_other_bytes
        COUNTER_recv_other_delay_ns, COUNTER_recv_packets, COUNTER_recv_tiny, COUNTER_recv_small
        COUNTER_recv_medium_frag, COUNTER_recv_rndv, COUNTER_recv_notify
        COUNTER_recv_connect_request, COUNTER_recv_connect_reply, COUNTER_recv_liback
        COUNTER_recv_nack_lib, COUNTER_recv_nack_mcp, COUNTER_recv_pull_request
        COUNTER_recv_pull_reply, COUNTER_recv_raw, COUNTER_recv_host_query, COUNTER_recv_host_reply
        COUNTER_drop_bad_header_datalen, COUNTER_drop_bad_datalen, COUNTER_drop_bad_skblen
        COUNTER_drop_bad_ethertype, COUNTER_drop_bad_peer_addr, COUNTER_drop_bad_peer_index
        COUNTER_drop_bad_endpoint, COUNTER_drop_bad_session, COUNTER_drop_pull_bad_replies
        COUNTER_drop_pull_bad_region, COUNTER_drop_pull_bad_offset_length
        COUNTER_drop_pull_reply_bad_magic_endpoint, COUNTER_drop_pull_reply_bad_wire_handle
        COUNTER_drop_pull_reply_bad_seqnum_wraparound, COUNTER_drop_pull_reply_bad_seqnum
        COUNTER_drop_pull_reply_duplicate, COUNTER_drop_nack_mcp_bad_magic_endpoint
        COUNTER_drop_nack_mcp_bad_wire_handle, COUNTER_drop_host_query_bad_magic
        COUNTER_drop_host_reply_bad_magic, COUNTER_drop_raw_queue_full, COUNTER_drop_raw_too_large
        COUNTER_drop_nosys_type, COUNTER_drop_invalid_type, COUNTER_drop_unknown_type
        COUNTER_vmmc_wakes, COUNTER_vmmc_notifications, COUNTER_vmmc_unclaimed
        COUNTER_handover_endpoint, COUNTER_handover_pull, COUNTER_handover_event
        COUNTER_handover_event_back, COUNTER_recv_at_process, COUNTER_rps_steered
        COUNTER_rps_interrupts, COUNTER_rps_backlog_full, COUNTER_flow_requests
    enum:
        COUNTER_resent_messages, COUNTER_recv_events, COUNTER_recv_messages, COUNTER_recv_unexpected
        COUNTER_recv_early, COUNTER_recv_duplicate, COUNTER_recv_bad_session, COUNTER_recv_stale_ack
        COUNTER_acks_piggybacked, COUNTER_acks_delayed, COUNTER_acks_immediate, COUNTER_zombies
        COUNTER_truncated, COUNTER_cancelled, COUNTER_partners_dead, COUNTER_pool_grown
        COUNTER_progress_calls, COUNTER_unexpected_no_buffer, COUNTER_medium_no_assembly
        COUNTER_nacks_received, COUNTER_recv_bad_fragment, COUNTER_recv_out_of_window
        COUNTER_sent_large, COUNTER_sent_self, COUNTER_sent_shared, COUNTER_pulls_started
        COUNTER_pulls_waited, COUNTER_pulls_failed, COUNTER_recv_bad_notify, COUNTER_memory_heap
        COUNTER_memory_process, COUNTER_memory_bounce, COUNTER_unexpected_handled
        COUNTER_match_comparisons, COUNTER_sent_updates, COUNTER_sent_update_bytes
        COUNTER_sent_letters, COUNTER_sent_update_waits, COUNTER_exports, COUNTER_imports
        COUNTER_sockets_connected, COUNTER_sockets_accepted, COUNTER_sockets_reset
        COUNTER_socket_bytes_sent, COUNTER_socket_bytes_received, COUNTER_socket_credit_waits
        COUNTER_socket_credits_returned, COUNTER_thread_switches, COUNTER_moves
    enum:
        COUNTER_loops
    enum:
        COUNTER_copies, COUNTER_copied_bytes, COUNTER_copies_refused
    enum:
        COUNTER_switch_packets, COUNTER_switch_bytes, COUNTER_switch_dropped
        COUNTER_switch_paused, COUNTER_switch_paused_ns
    const char *counter_name(uint32_t kind, uint32_t index) noexcept

cdef extern from "shared/layout.h" nogil:
    enum:
        NODE_CORES_MAX
        NODE_VECTORS_MAX
        NODE_ENDPOINTS_MAX
        NODE_PEERS_MAX
        TINY_MAX_BYTES
        SMALL_MAX_BYTES
        ENDPOINT_REGIONS
        ENDPOINT_PULLS
        MEMORY_REGION_BYTES
        PULL_HANDLE_BYTES
        RAW_QUEUE_BYTES
        PEER_NAME_BYTES
        HEAP_START_BYTES
    const uint32_t NO_RUNNER
    enum:
        STOP_NO
        STOP_FINISH
        STOP_ABORT
    enum:
        RUNNER_RUNNING
        RUNNER_DONE
        RUNNER_FAILED
    enum:
        NODE_FLOWS
    uint64_t CORE_PENDING_BACKLOG
    uint64_t CORE_PENDING_SENT
    enum:
        STEERING_RSS
        STEERING_RPS
        STEERING_ARFS
    enum:
        ENDPOINT_CLOSED
        ENDPOINT_OPEN
    enum:
        EVENT_RING_LOCK_FREE
        EVENT_RING_RESET
    enum:
        EVENT_CONNECT_REQUEST
        EVENT_CONNECT_REPLY
        EVENT_TINY
        EVENT_SMALL
        EVENT_MEDIUM_FRAG
        EVENT_RNDV
        EVENT_NOTIFY
        EVENT_LIBACK
        EVENT_NACK_LIB
        EVENT_PULL_DONE
        EVENT_UNREADABLE
    cdef struct segment_header:
        uint64_t magic
        uint32_t build
        uint32_t kind
        uint64_t size_bytes
        uint32_t owner_pid
        uint32_t pid_namespace
        uint64_t owner_start
        char run_id[24]
    cdef struct wait_account:
        uint64_t waits
        uint64_t at_once
        uint64_t while_spinning
        uint64_t timeouts
        uint64_t spin_ns
        uint64_t yields
        uint64_t blocks
        uint64_t races
        uint64_t system_calls
        uint64_t interrupts_enabled
        uint64_t notifications
        uint64_t limits_ns
    cdef struct runner_record:
        wait_slot slot
        uint32_t state
        uint32_t pid
        uint32_t cpu
        uint32_t realtime
        char name[48]
        wait_account account
    cdef struct agent_record:
        char name[32]
        uint32_t kind
        uint32_t runner
        uint64_t counters[RECORD_COUNTERS]
    cdef struct control_header:
        segment_header segment
        Clock clock
        uint32_t stop
        uint32_t started
        uint32_t runners_count
        uint32_t agents_count
        uint32_t nodes_count
        uint32_t contexts
        uint64_t runners_offset
        uint64_t agents_offset
    cdef struct frame_slot:
        uint16_t length
        uint8_t bad_fcs
        uint32_t captured
        int64_t time_ns
        uint8_t frame[1]
    cdef struct core_interrupts:
        uint64_t pending
        uint32_t runner
        uint32_t agent
        uint64_t taken[NODE_VECTORS_MAX]
    enum:
        TOKEN_TAKEN
        TOKEN_FREE
        TOKEN_SUSPENDED
        TOKEN_RESUMED
        TOKEN_DEFERRED
        TOKEN_RANK
    cdef struct interrupt_vector:
        uint32_t token
        uint32_t timer_core
        uint64_t affinity
        uint64_t rx_ring_offset
        uint32_t wish
        uint32_t handled
        uint64_t copy_ring_offset
        uint64_t suspended_until_ns
        uint32_t watched
        uint16_t next_core
        uint16_t polled_by
        int64_t raised_ns
    cdef struct sent_frames:
        uint32_t interrupts
        uint32_t token
        uint32_t wish
        uint32_t count
        uint32_t reaped
        uint32_t used_by
        int64_t raised_ns
    cdef struct copy_descriptor:
        uint64_t source_offset
        uint64_t region_offset
        uint32_t endpoint
        uint32_t pull_handle
        uint32_t length
        uint32_t release_to
        uint32_t region
    cdef struct endpoint_descriptor:
        uint32_t state
        uint32_t session_id
        uint32_t runner
        uint32_t ring_kind
        uint32_t entries
        uint32_t recvq_slot_bytes
        uint64_t unexpected_offset
        uint64_t expected_offset
        uint64_t recvq_offset
        uint64_t tx_ring_offset
        uint64_t regions_offset
        pthread_mutex_t lock
        uint32_t unexpected_next
        uint32_t expected_next
        uint32_t last_core
        uint32_t process_core
        uint64_t handovers
        uint32_t unexpected_released
        uint32_t expected_released
        uint64_t pulls_offset
        uint32_t pid
        uint32_t pulls_active
        uint32_t reuses_slots
        uint32_t recvq_first
        uint32_t recvq_read
        uint32_t sends_freed
        uint32_t sends_left
        uint32_t freed_by
    enum:
        CACHE_LINE_BYTES
        ENDPOINT_LINES
        RX_RING_LINES
        TX_RING_LINES
    cdef struct steering_flow:
        uint32_t wanted
        uint32_t queue
    cdef struct node_header:
        segment_header segment
        uint32_t index
        uint32_t nodes_count
        uint32_t cores_count
        uint32_t vectors_count
        uint32_t endpoints_count
        uint32_t frame_slot_bytes
        uint32_t nic_runner
        uint32_t nic_agent
        uint64_t cores_offset
        uint64_t vectors_offset
        uint64_t endpoints_offset
        uint64_t core_tx_rings_offset
        uint64_t core_tx_stride
        uint64_t endpoint_tx_rings_offset
        uint64_t endpoint_tx_stride
        uint64_t link_rings_offset
        uint64_t link_stride
        uint64_t heap_bytes
        uint64_t raw_offset
        wire_geometry geometry
        uint64_t marked_types
        int64_t pull_resend_delay_ns
        uint32_t pull_resends_max
        uint32_t links_count
        uint32_t dma_runner
        uint32_t dma_agent
        uint32_t copies_are_timed
        uint32_t copy_message_bytes
        uint32_t copy_frame_bytes
        uint32_t mark_early
        uint32_t busy_poll
        uint64_t vmmc_offset
        uint32_t steering
        uint64_t flows_offset
        uint64_t backlogs_offset
        uint64_t backlog_stride
        uint64_t rps_cores
        uint32_t affinity_changes
        sent_frames sent
    cdef struct event_tiny:
        uint16_t checksum
        uint8_t length
        uint8_t data[32]
    cdef struct event_small:
        uint32_t recvq_offset
        uint16_t length, checksum
    cdef struct event_medium:
        uint32_t recvq_offset, message_length
        uint16_t frag_length
        uint8_t frag_seqnum, pipeline
        uint16_t checksum
    cdef struct event_connect:
        uint32_t src_session_id, key_or_session
        uint16_t target_recv_seqnum_start
        uint8_t connect_seqnum, status
    cdef struct event_liback:
        uint32_t session_id, acknum
        uint16_t lib_seqnum, send_seq
        uint8_t resent
    cdef struct event_nack:
        uint16_t lib_seqnum
        uint8_t nack_type
    enum:
        PULL_OK
        PULL_ABORTED
        PULL_TIMED_OUT
        PULL_UNWRITABLE
    cdef struct event_rndv:
        uint32_t message_length
        uint8_t rdma_id, rdma_seqnum
        uint16_t rdma_offset
    cdef struct event_notify:
        uint32_t transferred
        uint8_t rdma_id, rdma_seqnum
    cdef struct event_pull_done:
        uint64_t cookie
        uint32_t transferred
        uint8_t status
    cdef struct event_unreadable:
        uint8_t rdma_id, rdma_seqnum
    cdef struct event:
        uint16_t peer_index
        uint8_t src_endpoint
        uint16_t seqnum, piggyack
        uint64_t match_info
        event_tiny tiny
        event_small small
        event_medium medium
        event_connect connect
        event_liback liback
        event_nack nack
        event_rndv rndv
        event_notify notify
        event_pull_done pull_done
        event_unreadable unreadable
        uint8_t type, id
    runner_record *control_runner(control_header *control, uint32_t index) noexcept
    agent_record *control_agent(control_header *control, uint32_t index) noexcept
    uint64_t *agent_paid(agent_record *agent) noexcept
    core_interrupts *node_core(node_header *node, uint32_t core) noexcept
    interrupt_vector *node_vector(node_header *node, uint32_t vector) noexcept
    endpoint_descriptor *node_endpoint(node_header *node, uint32_t index) noexcept
    uint8_t node_mark(const node_header *node, uint32_t ptype) noexcept
    ring *node_rx_ring(node_header *node, uint32_t vector) noexcept
    const uint32_t *node_handled(node_header *node, uint32_t vector) noexcept
    ring *node_copy_ring(node_header *node, uint32_t vector) noexcept
    ring *node_core_tx_ring(node_header *node, uint32_t core) noexcept
    ring *node_endpoint_tx_ring(node_header *node, uint32_t endpoint) noexcept
    ring *node_link_ring(node_header *node, uint32_t source) noexcept
    steering_flow *node_flow(node_header *node, uint32_t endpoint) noexcept
    ring *node_backlog(node_header *node, uint32_t core) noexcept
    void node_address(uint32_t index, uint8_t address[6]) noexcept
