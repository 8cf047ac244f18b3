"""The structures of shared/vmmc.h as tests read and write them, and frames of wire/vmmc.h."""

from __future__ import annotations

import ctypes
import struct
from enum import IntEnum

from support.packets import node_address

PAGE_BYTES = 4096
ETHERTYPE = 0x88B5
FLAG_INTERRUPT = 1
UPDATE, MAP_REQUEST, LETTER = 1, 2, 3
ANY_NODE = 0xFFFFFFFF
NO_ENDPOINT = 0xFF
CLOSED, OPEN, CLOSING = 0, 1, 2
LETTER_MAPPED, LETTER_BOUNCED, LETTER_GONE, LETTER_LIBRARY = 1, 2, 3, 16
WATCHED_MAX = 60
MAILBOX_ENTRIES = 4096


class Page(IntEnum):
    OFF = 0
    BLOCK = 1
    FIRED = 2
    NOTIFY = 3
    WATCHDOG = 4


class Status(IntEnum):
    OK = 0
    NOT_EXPORTED = 1
    NOT_ALLOWED = 2
    NO_PROCESS = 3
    NO_PORT = 4
    MAILBOX_FULL = 5


class Export(ctypes.Structure):
    _fields_ = [
        ("generation", ctypes.c_uint32),
        ("allowed_node", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("interrupts", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
    ]


class Import(ctypes.Structure):
    _fields_ = [
        ("generation", ctypes.c_uint32),
        ("node", ctypes.c_uint16),
        ("export_index", ctypes.c_uint16),
        ("length", ctypes.c_uint64),
        ("endpoint", ctypes.c_uint8),
        ("unused", ctypes.c_uint8 * 15),
    ]


class Letter(ctypes.Structure):
    _fields_ = [
        ("node", ctypes.c_uint16),
        ("endpoint", ctypes.c_uint8),
        ("kind", ctypes.c_uint8),
        ("tag", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("generation", ctypes.c_uint32),
        ("data", ctypes.c_uint8 * 48),
    ]


class Process(ctypes.Structure):
    _fields_ = [
        ("state", ctypes.c_uint32),
        ("session", ctypes.c_uint32),
        ("runner", ctypes.c_uint32),
        ("core", ctypes.c_uint32),
        ("heap_offset", ctypes.c_uint64),
        ("heap_bytes", ctypes.c_uint64),
        ("pages_offset", ctypes.c_uint64),
        ("exports_offset", ctypes.c_uint64),
        ("imports_offset", ctypes.c_uint64),
        ("mailbox_offset", ctypes.c_uint64),
        ("pages_count", ctypes.c_uint32),
        ("unused0", ctypes.c_uint32 * 15),
        ("fired", ctypes.c_uint32),
        ("notifications", ctypes.c_uint32),
        ("polled", ctypes.c_uint32),
        ("unused1", ctypes.c_uint32 * 13),
        ("watched_count", ctypes.c_uint32),
        ("watched", ctypes.c_uint32 * WATCHED_MAX),
        ("unused2", ctypes.c_uint8 * 12),
    ]


class Core(ctypes.Structure):
    _fields_ = [
        ("pending", ctypes.c_uint64 * 4),
        ("raised_ns", ctypes.c_int64),
        ("unused", ctypes.c_uint8 * 24),
    ]


class WaitSlot(ctypes.Structure):
    _fields_ = [
        ("armed", ctypes.c_uint32),
        ("word", ctypes.c_uint32),
        ("pid", ctypes.c_int32),
        ("signal", ctypes.c_uint32),
        ("wakes", ctypes.c_uint64),
        ("notifications", ctypes.c_uint64),
    ]


class Ring(ctypes.Structure):
    _fields_ = [
        ("head", ctypes.c_uint32),
        ("unused0", ctypes.c_uint8 * 60),
        ("tail", ctypes.c_uint32),
        ("unused1", ctypes.c_uint8 * 188),
        ("entries", ctypes.c_uint32),
        ("slot_bytes", ctypes.c_uint32),
        ("slots_offset", ctypes.c_uint64),
    ]


def vmmc_frame(
    packet: int,
    destination: int,
    source: int,
    *,
    endpoint: int = 0,
    src_endpoint: int = 0,
    flags: int = 0,
    index: int = 0,
    generation: int = 0,
    offset: int = 0,
    data: bytes = b"",
    length: int | None = None,
) -> bytes:
    """Any frame; `length`: what the header says, if that is to be another than the data's."""
    header = struct.pack(
        ">BBBBHHIQ",
        packet,
        endpoint,
        src_endpoint,
        flags,
        len(data) if length is None else length,
        index,
        generation,
        offset,
    )
    head = node_address(destination) + node_address(source)
    return (head + struct.pack(">HH", ETHERTYPE, source) + header + data).ljust(60, b"\0")
