"""What the NIC takes to choose a packet's rx queue: the same steps as in firmware.pyx.

The packets are what a node with eight ranks gets: several types, marked and unmarked, in equal
numbers and shuffled. They lie in the caches, as a packet does that the NIC is about to copy.
"""

import random
import struct

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.nic.flow_table cimport FlowTable
from shrimpmx.nic.steering cimport Steering
from shrimpmx.shared.layout cimport STEERING_ARFS
from shrimpmx.wire.frame_endpoint cimport NO_ENDPOINT, frame_endpoint
from shrimpmx.wire.wire cimport (
    PTYPE_MEDIUM_FRAG, PTYPE_PULL_REPLY, PTYPE_PULL_REQUEST, PTYPE_SMALL, PTYPE_TINY,
    WIRE_ETHERTYPE, WIRE_MARK, WIRE_NO_PEER,
)

from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.private import private_control, private_node

cdef enum:
    QUEUES = 8
    FRAME_BYTES = 64         # of a packet, what steering may look at
    FRAMES = 256
    ROUNDS = 64              # over the packets, for one figure

PULL_MAGIC = 0x21071980
TCP = 6


cdef class _Packets:
    cdef uint8_t frames[FRAMES][FRAME_BYTES]
    cdef Steering steering
    cdef FlowTable flows
    cdef bint follows
    cdef uint32_t total      # so that no choice is left out

    cdef void steer(self) noexcept nogil:
        cdef uint32_t i, queue
        cdef int endpoint
        for i in range(<uint32_t>FRAMES):
            endpoint = frame_endpoint(self.frames[i], FRAME_BYTES)
            if self.follows and endpoint != NO_ENDPOINT:
                self.flows.follow(endpoint)
            queue = self.steering.queue(endpoint, self.frames[i], FRAME_BYTES)
            if endpoint != NO_ENDPOINT:
                self.flows.passed(endpoint, queue, i)
            self.total += queue


def _open_mx(number):
    """A packet of Open-MX for one of eight endpoints, as far as steering looks into it."""
    endpoint, kind = number % 8, number // 8 % 5
    ptype = (PTYPE_TINY, PTYPE_SMALL, PTYPE_MEDIUM_FRAG, PTYPE_PULL_REQUEST, PTYPE_PULL_REPLY)[kind]
    # Of the fragments none is marked, of the replies every other one.
    marked = WIRE_MARK if kind in (0, 1, 3) or (kind == 4 and number % 2 == 0) else 0
    head = bytes(12) + struct.pack(">HHBB", WIRE_ETHERTYPE, WIRE_NO_PEER, ptype | marked, endpoint)
    if ptype == PTYPE_PULL_REPLY:
        head = head.ljust(28, b"\0") + struct.pack(">I", endpoint ^ PULL_MAGIC)
    return head.ljust(FRAME_BYTES, b"\0")


def _tcp(number):
    """A packet of TCP over IPv4, of one of as many connections."""
    addresses = bytes((10, 0, 0, number % 16, 10, 0, 1, 1))
    header = bytes((0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, TCP, 0, 0)) + addresses
    ports = (1024 + number).to_bytes(2, "big") + (80).to_bytes(2, "big")
    return bytes(12) + b"\x08\x00" + header + ports


def per_packet(str steering not None, double seconds):
    """Choose queues for about `seconds`: ns per packet, float64, each the mean of 16 384.

    `steering`: "endpoint" or "arfs", for packets of Open-MX, or "rss", for packets of TCP.
    """
    cdef _Packets packets = _Packets()
    cdef int64_t end_ns = monotonic_now_ns() + <int64_t>(seconds * 1e9)
    cdef int64_t begin_ns = 0, now_ns = 0
    cdef uint32_t i
    layout = NodeLayout(cores=QUEUES, rx_queues=QUEUES, steering=steering, rx_ring_entries=16,
                        core_runners=[0] * QUEUES, core_agents=[0] * QUEUES).place()
    node = private_node(private_control(["nic"], [("nic", "nic", 0)]), layout)
    packets.steering = Steering(node)
    packets.flows = FlowTable(node, 0)
    packets.follows = packets.steering.kind == STEERING_ARFS
    made = [(_tcp if steering == "rss" else _open_mx)(number) for number in range(FRAMES)]
    random.Random(1).shuffle(made)
    for i in range(<uint32_t>FRAMES):
        frame = made[i][:FRAME_BYTES].ljust(FRAME_BYTES, b"\0")
        memcpy(packets.frames[i], <const uint8_t *>frame, FRAME_BYTES)
    found = []
    while not found or now_ns < end_ns:
        with nogil:
            begin_ns = monotonic_now_ns()
            for _ in range(ROUNDS):
                packets.steer()
            now_ns = monotonic_now_ns()
        found.append((now_ns - begin_ns) / <double>(ROUNDS * FRAMES))
    return np.array(found, np.float64)
