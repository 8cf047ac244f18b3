"""What each counter counts, in one sentence; names and order are those of counters.h.

A `drop_*` counter has one reason each: a received packet raises one `recv_<type>`, one
`drop_*` or one `*_eventq_full`, never two of them.
"""

from __future__ import annotations

NIC = {
    "tx_packets": "Frames that the NIC took from tx rings and handed to the link.",
    "tx_bytes": "Bytes that the NIC handed to the link, heads included.",
    "tx_bad_frame": "Frames in a tx ring that no link takes: shorter than 60 bytes or longer "
    "than the MTU.",
    "tx_no_route": "Frames to an address that no node of the cluster has.",
    "link_lost": "Frames that a link fault lost.",
    "link_duplicated": "Frames that a link fault doubled.",
    "link_reordered": "Frames that a link fault held back behind later ones.",
    "link_corrupted": "Frames in which a link fault changed bits.",
    "rx_packets": "Frames that the NIC copied into an rx ring.",
    "rx_bytes": "Bytes that the NIC copied into rx rings, heads included.",
    "rx_marked": "Frames copied into an rx ring that were marked as latency-sensitive.",
    "rx_drop_ring_full": "Frames that found the rx ring full: the host is too slow.",
    "rx_bad_frame": "Frames from the link that are shorter than 60 bytes or longer than the MTU.",
    "rx_bad_fcs": "Frames whose frame check sequence does not fit: damaged on the link.",
    "irq_raised": "Interrupts raised, for whatever cause.",
    "irq_raised_packet": "Interrupts raised by a packet as such (disabled coalescing).",
    "irq_raised_marked": "Interrupts raised by a marked packet (Open-MX, Stream).",
    "irq_raised_deferred": "Interrupts of marked packets that Stream had put off to the end of "
    "the stream.",
    "irq_raised_timeout": "Interrupts raised since the coalescing delay was over.",
    "irq_raised_frames": "Interrupts raised since so many frames waited (rx-frames).",
    "irq_wished": "Times that the NIC wanted to interrupt while the token was with the host.",
    "irq_held_back": "Wishes that found the interrupt before them unfinished, and waited for it.",
    "irq_absorbed": "Wishes that came to nothing: the handler had taken the frames already.",
    "irq_deferred": "Interrupts that the coalescing strategy put off.",
    "irq_deferred_longest_ns": "The longest time that one was put off, ns.",
    "generated_packets": "Messages that a traffic generator sent, the first time.",
    "generated_resent": "Messages that a traffic generator sent again.",
    "generated_invalid": "Packets of no valid type that a traffic generator sent.",
    "generated_other": "Packets of another protocol that a traffic generator sent.",
    "sunk_packets": "Frames that a traffic generator received.",
    "sunk_acks": "Acknowledgements that a traffic generator received.",
    "steps": "Steps that the firmware made.",
    "irq_deferred_packets": "Packets that came to host memory while an interrupt was put off.",
    "vmmc_updates": "Updates that the NIC deposited in exported memory (VMMC).",
    "vmmc_update_bytes": "Bytes that the NIC deposited in exported memory.",
    "vmmc_map_requests": "Requests to map an export that the NIC answered.",
    "vmmc_letters": "Letters that the NIC put into mailboxes, its own included.",
    "vmmc_letters_bounced": "Letters sent back: no such process or port, or its mailbox is full.",
    "vmmc_gone_letters": "Letters that told a process that a peer has closed or died.",
    "vmmc_page_interrupts": "Updates and letters to a page whose interrupt was enabled.",
    "vmmc_page_disabled": "Updates that asked for an interrupt where the receiver had it disabled.",
    "vmmc_watchdog_polled": "Interrupts that the polling watchdog saved: it was polled in time.",
    "drop_vmmc_bad_frame": "Frames that are no valid VMMC packet.",
    "drop_vmmc_no_process": "Updates for a process that is not open.",
    "drop_vmmc_not_exported": "Updates for memory that is not, or no longer, exported.",
    "drop_vmmc_out_of_range": "Updates that would have gone past the end of an export.",
    "drop_vmmc_mailbox_full": "Letters of a NIC that were lost: the mailbox was full, or its "
    "own queue for the link.",
    "rx_queue_changes": "Frames for an endpoint that went to another queue than its frame before.",
    "flow_moves": "Endpoints whose frames the NIC sent to another queue from then on (aRFS).",
    "mx_handled": "Frames that the NIC handled itself, without the host (native MX).",
}

DRIVER = {
    "send_tiny": "Tiny messages (up to 32 bytes) sent.",
    "send_small": "Small messages (up to 128 bytes) sent.",
    "send_mediumsq_frag": "Medium fragments sent from the library's retained copy: resent, or "
    "of a message that completed early.",
    "send_mediumva_frag": "Medium fragments sent from the user's buffer.",
    "send_rndv": "Rendezvous packets sent: offers of a large message.",
    "send_notify": "Notify packets sent: a large message has been pulled.",
    "send_connect_request": "Connect requests sent.",
    "send_connect_reply": "Connect replies sent.",
    "send_liback": "Library acknowledgements sent as packets of their own.",
    "send_nack_lib": "Refusals sent to a library: bad or closed endpoint, bad session.",
    "send_nack_mcp": "Refusals sent to a puller: its request names an endpoint, session or "
    "region that is not there.",
    "send_pull_request": "Pull requests sent, first ones and repeated ones.",
    "send_pull_reply": "Pull replies sent: frames of large messages.",
    "send_raw": "Raw packets sent.",
    "send_host_query": "Host queries sent.",
    "send_host_reply": "Host queries answered.",
    "send_no_tx_slot": "Packets not sent now since the tx ring was full; the sender tries again.",
    "send_nomem_nack_lib": "Refusals to a library not sent: the core's tx ring was full.",
    "send_nomem_nack_mcp": "Refusals to a puller not sent: the core's tx ring was full.",
    "send_nomem_pull_request": "Pull requests not sent: the tx ring was full.",
    "send_nomem_pull_reply": "Pull requests left out: tx ring and backlog of replies are full.",
    "send_nomem_host_reply": "Host queries not answered: the core's tx ring was full.",
    "pull_reply_fill_failed": "Pull replies not sent: the region's memory could not be read.",
    "pull_nonfirst_block_done_early": "Blocks of a pull that were complete before an older one.",
    "pull_request_notonlyfirst_blocks": "Times that a later block was asked for again since "
    "frames of it were missing.",
    "pull_timeout_handler_first_block": "Pulls whose timer ran out: their first block was asked "
    "for again.",
    "pull_timeout_handler_nonfirst_block": "Later blocks that a pull's timer asked for again.",
    "pull_timeout_abort": "Pulls given up after too many timeouts without progress.",
    "pull_done": "Pulls that ended and told the library so.",
    "exp_eventq_full": "Events not posted: the expected event ring was full.",
    "unexp_eventq_full": "Packets dropped: the unexpected event ring was full.",
    "rank_wakes": "Sleeping processes that were woken by futex.",
    "rank_notifications": "Notifications (signals) sent to ranks.",
    "shared_tiny": "Tiny messages delivered within the node, without NIC.",
    "shared_small": "Small messages delivered within the node.",
    "shared_medium_frag": "Medium fragments delivered within the node.",
    "shared_rndv": "Rendezvous delivered within the node.",
    "shared_notify": "Notifies delivered within the node.",
    "shared_connect_request": "Connect requests delivered within the node.",
    "shared_connect_reply": "Connect replies delivered within the node.",
    "shared_liback": "Library acknowledgements delivered within the node.",
    "shared_nack_lib": "Messages within the node that the endpoint refused.",
    "shared_pull": "Large messages copied directly from one rank's memory to the other's.",
    "shared_eventq_full": "Messages within the node put off: the event ring there was full.",
    "dmarecv_pull_reply": "Pull replies whose copy went to the dma agent.",
    "dmarecv_bytes": "Bytes whose copy went to the dma agent.",
    "dma_ring_full": "Copies that the handler did itself: the dma agent's ring was full.",
}

IRQ = {
    "interrupts": "Interrupts that this core's handler took.",
    "polls": "Polls of an rx ring.",
    "budget_exhausted": "Polling rounds in which a poll used up its budget.",
    "demotions": "Times that it asked to lose its real-time priority (Linux: ksoftirqd).",
    "reclaims": "Times that frames had come while it handed the token back, and it went on.",
    "timer_ticks": "Times that it looked at the timers of pulls.",
    "poll_timers": "Polls that no interrupt began, but a timer or a rank that stopped polling.",
    "suspensions": "Times that a polling rank took over from interrupts (irq-suspend).",
    "busy_polls": "Polls that found frames and were made by a rank instead of the handler.",
    "recv_other": "Frames of another protocol given to its own handler.",
    "recv_other_bytes": "Bytes of those frames, heads included.",
    "recv_other_delay_ns": "Sum of their times from host memory to that handler, ns.",
    "recv_packets": "Frames handled; each is also counted by its type, or by why it was dropped.",
    "recv_tiny": "Tiny messages taken.",
    "recv_small": "Small messages taken.",
    "recv_medium_frag": "Medium fragments taken.",
    "recv_rndv": "Rendezvous taken.",
    "recv_notify": "Notifies taken.",
    "recv_connect_request": "Connect requests taken.",
    "recv_connect_reply": "Connect replies taken.",
    "recv_liback": "Library acknowledgements taken.",
    "recv_nack_lib": "Refusals for a library taken.",
    "recv_nack_mcp": "Refusals for a pull taken: the pull ends with an error.",
    "recv_pull_request": "Pull requests taken: the handler answers them.",
    "recv_pull_reply": "Pull replies taken.",
    "recv_raw": "Raw packets taken for the raw endpoint.",
    "recv_host_query": "Host queries taken.",
    "recv_host_reply": "Host replies taken: a peer's name is known.",
    "drop_bad_header_datalen": "Frame shorter than its header, or than 60 bytes.",
    "drop_bad_datalen": "A length or offset that this packet type cannot have.",
    "drop_bad_skblen": "Data reaches beyond the frame, or the frame beyond the MTU.",
    "drop_bad_ethertype": "The frame is neither MXoE nor of the other protocol.",
    "drop_bad_peer_addr": "The source address is not that of the peer that the head names.",
    "drop_bad_peer_index": "The peer index in the head is none of the cluster.",
    "drop_bad_endpoint": "The endpoint does not exist or is closed.",
    "drop_bad_session": "The session is not the endpoint's: sent before it was opened anew.",
    "drop_pull_bad_replies": "A pull request asks for no frame, or for more than a block has.",
    "drop_pull_bad_region": "A pull request names a region that is not there any more.",
    "drop_pull_bad_offset_length": "A pull request reaches beyond its region.",
    "drop_pull_reply_bad_magic_endpoint": "The magic of a pull reply gives an endpoint that "
    "does not exist or is closed.",
    "drop_pull_reply_bad_wire_handle": "A pull reply names a pull that is over.",
    "drop_pull_reply_bad_seqnum_wraparound": "The frame number of a pull reply lies before the "
    "blocks in flight, by the wrap of its 8 bits.",
    "drop_pull_reply_bad_seqnum": "The frame number of a pull reply lies behind the blocks in "
    "flight, or does not fit its offset.",
    "drop_pull_reply_duplicate": "A pull reply whose frame is there already.",
    "drop_nack_mcp_bad_magic_endpoint": "The magic of a refused pull gives an endpoint that "
    "does not exist or is closed.",
    "drop_nack_mcp_bad_wire_handle": "A refusal names a pull that is over.",
    "drop_host_query_bad_magic": "A host query with another magic number.",
    "drop_host_reply_bad_magic": "A host reply with another magic number.",
    "drop_raw_queue_full": "A raw packet found the raw queue full.",
    "drop_raw_too_large": "A raw packet of more than 1024 bytes.",
    "drop_nosys_type": "A raw packet on a node where no raw endpoint is open.",
    "drop_invalid_type": "A packet type that no host receives: none, or one of the NIC's own.",
    "drop_unknown_type": "A packet type that MXoE does not have.",
    "vmmc_wakes": "Waiters that were woken, their pages disabled (VMMC).",
    "vmmc_notifications": "Notifications sent to processes (VMMC).",
    "vmmc_unclaimed": "Interrupts of a page after its waiter had left (VMMC).",
    "handover_endpoint": "Frames that found the endpoint's descriptor with another core (ledger).",
    "handover_pull": "Frames that found their pull handle with another core (ledger).",
    "handover_event": "Events written on another core than the one that their process runs on "
    "(ledger).",
    "handover_event_back": "Events whose slot their process had written last, on another core: "
    "the ring that both papers used (ledger).",
    "recv_at_process": "Events written on the core that their process runs on.",
    "rps_steered": "Frames handed on to another core (RPS).",
    "rps_interrupts": "Interrupts of other cores, to look at what was handed on to them (RPS).",
    "rps_backlog_full": "Frames dropped since the backlog of the frame's core was full (RPS).",
    "flow_requests": "Times that the NIC was asked to send an endpoint's frames to its process's "
    "core (aRFS).",
}

RANK = {
    "resent_messages": "Messages sent again since no acknowledgement came in time.",
    "recv_events": "Events taken from the unexpected event ring.",
    "recv_messages": "Messages received whole, in order.",
    "recv_unexpected": "Messages that found no posted receive and were kept.",
    "recv_early": "Messages or fragments that overtook another and were kept.",
    "recv_duplicate": "Messages that had been received already, dropped.",
    "recv_bad_session": "Messages of an older connection with the partner, dropped.",
    "recv_stale_ack": "Acknowledgements older than one seen before, dropped.",
    "acks_piggybacked": "Acknowledgements that travelled with a message.",
    "acks_delayed": "Acknowledgements sent since the delay was over without a message.",
    "acks_immediate": "Acknowledgements sent at once: several messages waited for it, or a "
    "duplicate came.",
    "zombies": "Sends that completed before their acknowledgement came.",
    "truncated": "Messages longer than the receive that they matched.",
    "cancelled": "Requests that were cancelled.",
    "partners_dead": "Partners given up: they did not answer.",
    "pool_grown": "Times that a pool of the library took more memory.",
    "progress_calls": "Passes of the library's progress.",
    "unexpected_no_buffer": "Unexpected messages dropped for want of a buffer; they come again.",
    "medium_no_assembly": "Medium fragments dropped for want of a place to put them together; "
    "they come again.",
    "nacks_received": "Refusals that the library got.",
    "recv_bad_fragment": "Medium fragments that do not fit the message they claim to be of, "
    "dropped.",
    "recv_out_of_window": "Messages further ahead than the window of early ones, dropped.",
    "sent_large": "Messages sent by rendezvous.",
    "sent_self": "Messages to the endpoint itself, copied by the library.",
    "sent_shared": "Messages sent within the node, without NIC.",
    "pulls_started": "Pulls that the library started.",
    "pulls_waited": "Pulls put off since no handle or tx slot was free.",
    "pulls_failed": "Pulls that ended with an error.",
    "recv_bad_notify": "Notifies that fit no large message in flight, dropped.",
    "memory_heap": "Large messages in the shared heap: handlers write straight into them.",
    "memory_process": "Large messages elsewhere, reached by process_vm_readv and writev.",
    "memory_bounce": "Large messages by way of a buffer in the shared heap.",
    "unexpected_handled": "Messages that the unexpected handler consumed.",
    "match_comparisons": "Waiting receives and messages looked at to match one with another.",
    "sent_updates": "Packets of deliberate updates sent (VMMC).",
    "sent_update_bytes": "Bytes sent by deliberate update.",
    "sent_letters": "Letters and map requests sent.",
    "sent_update_waits": "Times that an update had to wait for room in the tx ring.",
    "exports": "Buffers exported.",
    "imports": "Remote exports mapped.",
    "sockets_connected": "Stream sockets connected by connect.",
    "sockets_accepted": "Stream sockets connected by accept.",
    "sockets_reset": "Stream sockets whose connection was reset.",
    "socket_bytes_sent": "Bytes sent by stream sockets.",
    "socket_bytes_received": "Bytes received by stream sockets.",
    "socket_credit_waits": "Sends that found no room in the peer's buffer and waited.",
    "socket_credits_returned": "Updates that told a peer how much of its data has been read.",
    "thread_switches": "Switches from one user-level thread to another.",
    "moves": "Times that the process went to another core while it ran.",
}

HOG = {"loops": "Rounds of burning CPU time."}

DMA = {
    "copies": "Copies done for handlers.",
    "copied_bytes": "Bytes copied for handlers.",
    "copies_refused": "Copies not done: the pull was over, or the region was gone.",
}

# What each kind of agent keeps, in the order of its record.
OF_KIND: dict[str, dict[str, str]] = {
    "nic": NIC,
    "irq": DRIVER | IRQ,
    "rank": DRIVER | RANK,
    "hog": HOG,
    "dma": DRIVER | DMA,
}
TEXTS: dict[str, str] = NIC | DRIVER | IRQ | RANK | HOG | DMA

# A counter whose name ends so is the largest of the times seen: it does not add up.
LONGEST = "_longest_ns"

_GROUPS = (
    ("nic", "The NIC", NIC),
    ("irq, rank, dma", "The driver, wherever its code runs", DRIVER),
    ("irq", "Interrupt handler and receive handler", IRQ),
    ("rank", "The library", RANK),
    ("dma", "The dma agent", DMA),
    ("hog", "The hog", HOG),
)


def markdown_tables() -> str:
    """The tables of docs/counters.md: one per group of counters."""
    parts = []
    for kinds, title, texts in _GROUPS:
        rows = [f"| `{name}` | {text} |" for name, text in texts.items()]
        parts.append(f"## {title} ({kinds})\n\n| counter | goes up with |\n| --- | --- |\n")
        parts[-1] += "\n".join(rows)
    return "\n\n".join(parts) + "\n"
