"""Messages between ranks of one node by shared memory: events, refusals, the one copy."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from support.host_node import RANK, SESSION, HostNode, frame
from support.memory import word32
from support.protected import protected

from shrimpmx.host import pull, regions
from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.shared.node import take_frames

OTHER_SESSION = 0x77
COPIES_AT = 24  # in struct memory_region
LONG_BYTES = 8 << 20  # takes some milliseconds to copy
ENDPOINT_CLOSED, BAD_SESSION, BAD_ENDPOINT, BAD_REGION = 2, 3, 1, 4
MESSAGES: dict[str, dict[str, Any]] = {
    "tiny": {"data": b"t" * 32, "match": 1 << 63 | 5},
    "small": {"data": bytes(range(100)), "match": 6},
    "medium_frag": {"data": b"m" * 1452, "match": 7, "message_length": 2000},
    "rndv": {"match": 8, "message_length": 1 << 31, "rdma_id": 255, "rdma_seqnum": 254},
    "notify": {"transferred": 1 << 30, "rdma_id": 3, "rdma_seqnum": 4},
    "liback": {"session_id": 5, "acknum": 6, "send_seq": 7, "resent": 1},
}


def two_ranks(shared: bool = True, **layout: Any) -> HostNode:
    host = HostNode.make(**layout)
    host.endpoints[1].open(OTHER_SESSION)
    for endpoint in host.endpoints:
        endpoint.shared = shared
    return host


def shared_counters(host: HostNode) -> dict[str, int]:
    return {name: n for name, n in host.counters(RANK).items() if name.startswith("shared_")}


def by_wire(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    host = two_ranks(shared=False)
    assert host.endpoints[0].command(kind, 0, 1, session=OTHER_SESSION, **fields) == 1
    host.receive(*(data for _, data in take_frames(host.node, "endpoint_tx", 0)))
    (event,) = host.events(1)
    return event


@pytest.mark.parametrize("ring", ["lock-free", "reset"])
@pytest.mark.parametrize("kind", MESSAGES)
def test_the_event_is_the_one_that_the_wire_would_bring(kind: str, ring: str) -> None:
    fields = {"seqnum": 11, **MESSAGES[kind]}
    host = two_ranks(event_ring=ring)
    assert host.endpoints[0].command(kind, 0, 1, session=OTHER_SESSION, **fields) == 1
    (event,) = host.events(1)
    assert event == by_wire(kind, fields)
    assert take_frames(host.node, "endpoint_tx", 0) == []
    assert shared_counters(host) == {f"shared_{kind}": 1}
    assert host.events(0) == []


@pytest.mark.parametrize("is_reply", [False, True])
def test_connects_need_no_session(is_reply: bool) -> None:
    host = two_ranks()
    fields: dict[str, Any] = {"src_session_id": SESSION, "key_or_session": 9, "connect_seqnum": 3}
    assert host.endpoints[0].command_connect(0, 1, is_reply=is_reply, **fields) == 1
    (event,) = host.events(1)
    kind = "connect_reply" if is_reply else "connect_request"
    assert (event["type"], event["peer_index"], event["src_endpoint"]) == (kind, 0, 0)
    assert fields.items() <= event.items()
    assert shared_counters(host) == {f"shared_{kind}": 1}


def test_other_nodes_and_disabled_paths_go_by_the_wire() -> None:
    host = two_ranks()
    host.endpoints[0].command("tiny", 1, 1, session=OTHER_SESSION)
    host.endpoints[0].shared = False
    host.endpoints[0].command("tiny", 0, 1, session=OTHER_SESSION)
    assert len(take_frames(host.node, "endpoint_tx", 0)) == 2
    assert host.events(1) == []
    assert shared_counters(host) == {}


def test_a_message_to_oneself_takes_the_same_way() -> None:
    host = two_ranks()
    assert host.endpoints[0].command("tiny", 0, 0, session=SESSION, data=b"me") == 1
    assert [event["data"] for event in host.events(0)] == [b"me"]


@pytest.mark.parametrize("ring", ["lock-free", "reset"])
def test_a_full_ring_takes_nothing_until_its_owner_reads(ring: str) -> None:
    host = two_ranks(event_ring=ring)
    results = [
        host.endpoints[0].command("tiny", 0, 1, session=OTHER_SESSION, seqnum=i) for i in range(18)
    ]
    assert results == [1] * 16 + [0] * 2
    assert shared_counters(host) == {"shared_tiny": 16, "shared_eventq_full": 2}
    assert [event["seqnum"] for event in host.events(1)] == list(range(16))
    assert host.endpoints[0].command("tiny", 0, 1, session=OTHER_SESSION, seqnum=16) == 1
    assert [event["seqnum"] for event in host.events(1)] == [16]


def test_a_closed_target_a_wrong_session_and_no_such_endpoint_refuse() -> None:
    host = two_ranks()
    sender = host.endpoints[0]
    assert sender.command("tiny", 0, 1, session=SESSION) == -BAD_SESSION
    assert sender.command("rndv", 0, 9, session=SESSION) == -BAD_ENDPOINT
    host.endpoints[1].close()
    assert sender.command("tiny", 0, 1, session=OTHER_SESSION) == -ENDPOINT_CLOSED
    assert sender.command_connect(0, 1) == -ENDPOINT_CLOSED
    host.endpoints[1].open(OTHER_SESSION + 1)
    assert sender.command("tiny", 0, 1, session=OTHER_SESSION) == -BAD_SESSION
    assert sender.command("tiny", 0, 1, session=OTHER_SESSION + 1) == 1
    assert len(host.events(1)) == 1
    assert shared_counters(host) == {"shared_nack_lib": 5, "shared_tiny": 1}


def test_nobody_answers_an_acknowledgement() -> None:
    host = two_ranks()
    assert host.endpoints[0].command("liback", 0, 1, session=SESSION) == 1
    assert host.events(1) == []
    assert shared_counters(host) == {}


def test_the_target_is_woken_when_it_sleeps() -> None:
    host = two_ranks()
    host.endpoints[0].command("tiny", 0, 1, session=OTHER_SESSION)
    assert host.control.runner_info(RANK)["wakes"] == 0
    slot = host.wait_slot(RANK)
    slot.arm()
    host.endpoints[0].command("tiny", 0, 1, session=OTHER_SESSION)
    assert (slot.wakes, slot.armed) == (1, 0)
    assert host.counters(RANK)["rank_wakes"] == 1


@pytest.mark.parametrize("filled", [0, 5])
def test_a_sender_that_dies_with_the_lock_leaves_a_ring_that_works(filled: int) -> None:
    host = two_ranks()
    for number in range(filled):
        host.endpoints[0].command("tiny", 0, 1, session=OTHER_SESSION, seqnum=number)
    child = os.fork()
    if child == 0:
        # The lock stays taken, as in the middle of a batch.
        host.handlers[0].handle_frame(
            frame("tiny", dst_endpoint=1, session=OTHER_SESSION, lib_seqnum=filled), finish=False
        )
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert host.endpoints[0].command("tiny", 0, 1, session=OTHER_SESSION, seqnum=filled + 1) == 1
    assert [event["seqnum"] for event in host.events(1)] == list(range(filled + 2))


def register(
    endpoint: DriverEndpoint, data: np.ndarray[Any, np.dtype[np.uint8]], kind: Any
) -> tuple[int, int]:
    return regions.create(endpoint, data.data, kind)


def large(length: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.arange(length, dtype=np.uint64).astype(np.uint8)


def heap_array(host: HostNode, start: int, length: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    memory = host.node.heap_segment.view()
    return np.frombuffer(memory, np.uint8, length, 4096 + start)


# Short enough to be copied as usual, and long enough to be streamed past the caches.
@pytest.mark.parametrize("length", [39_999, 70_001])
@pytest.mark.parametrize("to", ["heap", "process"])
@pytest.mark.parametrize("source", ["heap", "process"])
def test_a_pull_is_one_copy(source: str, to: str, length: int) -> None:
    host = two_ranks(heap_bytes=1 << 20)
    data = heap_array(host, 0, length + 9) if source == "heap" else np.empty(length + 9, np.uint8)
    data[:] = large(length + 9)
    place = (1 << 20) + 5  # no multiple of anything
    room = heap_array(host, place, length + 1) if to == "heap" else None
    target = np.zeros(length + 1, np.uint8) if room is None else room
    remote, seqnum = register(host.endpoints[0], data, source)
    local, _ = register(host.endpoints[1], target, to)
    request: dict[str, Any] = {"rdma_id": remote, "rdma_seqnum": seqnum, "remote_offset": 7}
    result = pull.start(
        host.endpoints[1], 0, 0, length=length, region=local, session=SESSION, cookie=99, **request
    )
    assert result == 1
    assert np.array_equal(target[:length], data[7 : length + 7])
    assert target[length] == 0
    (event,) = host.events(1)
    assert (event["type"], event["cookie"]) == ("pull_done", 99)
    assert (event["transferred"], event["status"]) == (length, 0)
    assert shared_counters(host) == {"shared_pull": 1}
    assert take_frames(host.node, "endpoint_tx", 1) == []


def test_what_cannot_be_pulled_is_refused() -> None:
    host = two_ranks(heap_bytes=1 << 16)
    data, target = large(1000), np.zeros(1000, np.uint8)
    remote, seqnum = register(host.endpoints[0], data, "process")
    local, _ = register(host.endpoints[1], target, "process")
    good: dict[str, Any] = {
        "session": SESSION, "rdma_id": remote, "rdma_seqnum": seqnum, "remote_offset": 0,
        "region": local, "length": 1000,
    }  # fmt: skip

    def result(endpoint: int = 0, **fields: Any) -> int:
        return pull.start(host.endpoints[1], 0, endpoint, **{**good, **fields})

    assert result(session=SESSION + 1) == -BAD_SESSION
    assert result(endpoint=7) == -BAD_ENDPOINT
    assert result(rdma_seqnum=seqnum + 1) == -BAD_REGION
    assert result(rdma_id=remote + 1) == -BAD_REGION
    assert result(remote_offset=1) == -BAD_REGION
    assert result(length=1001) == -BAD_REGION
    assert result(region=256) == -BAD_REGION
    regions.destroy(host.endpoints[0], remote)
    assert result() == -BAD_REGION
    host.endpoints[0].close()
    assert result() == -ENDPOINT_CLOSED
    assert host.events(1) == []
    assert not target.any()


def test_a_pull_into_too_small_a_region_ends_aborted() -> None:
    host = two_ranks(heap_bytes=1 << 16)
    data, target = large(1000), np.zeros(1000, np.uint8)
    remote, seqnum = register(host.endpoints[0], data, "process")
    local, _ = register(host.endpoints[1], target[:10], "process")
    fields: dict[str, Any] = {"rdma_id": remote, "rdma_seqnum": seqnum, "session": SESSION}
    assert pull.start(host.endpoints[1], 0, 0, length=1000, region=local, **fields) == 1
    (event,) = host.events(1)
    assert (event["transferred"], event["status"]) == (0, 5)
    assert not target.any()
    regions.destroy(host.endpoints[0], remote)  # no copier is counted any more


def test_a_pull_of_what_cannot_be_read_waits_until_its_rank_takes_it_back() -> None:
    host = two_ranks(heap_bytes=1 << 16)
    target = np.zeros(1000, np.uint8)
    local, _ = register(host.endpoints[1], target, "process")
    for _ in range(2):
        remote, seqnum = regions.create(host.endpoints[0], protected(1000, 0), "process")
        fields: dict[str, Any] = {"rdma_id": remote, "rdma_seqnum": seqnum, "session": SESSION}
        fields["region"] = local
        slot = host.wait_slot(RANK)
        slot.arm()
        assert pull.start(host.endpoints[1], 0, 0, length=1000, **fields) == 0
        assert pull.start(host.endpoints[1], 0, 0, length=1000, **fields) == 0
        assert slot.armed == 0
        (event,) = host.events(0)
        assert (event["type"], event["rdma_id"]) == ("unreadable", remote)
        regions.destroy(host.endpoints[0], remote)
        assert pull.start(host.endpoints[1], 0, 0, length=1000, **fields) == -BAD_REGION
    assert host.events(1) == []


def test_a_pull_into_what_cannot_be_written_ends() -> None:
    host = two_ranks(heap_bytes=1 << 16)
    remote, seqnum = register(host.endpoints[0], large(100_000), "process")
    local, _ = regions.create(host.endpoints[1], protected(100_000, mmap.PROT_READ), "process")
    fields: dict[str, Any] = {"rdma_id": remote, "rdma_seqnum": seqnum, "session": SESSION}
    assert pull.start(host.endpoints[1], 0, 0, length=100_000, region=local, **fields) == 1
    (event,) = host.events(1)
    assert (event["type"], event["transferred"], event["status"]) == ("pull_done", 0, 7)
    assert host.events(0) == []


def test_a_pull_from_a_process_that_is_gone_ends_aborted() -> None:
    host = two_ranks(heap_bytes=1 << 16)
    remote, seqnum = register(host.endpoints[0], large(1000), "process")
    local, _ = register(host.endpoints[1], np.zeros(1000, np.uint8), "process")
    host.set_pid(0)
    fields: dict[str, Any] = {"rdma_id": remote, "rdma_seqnum": seqnum, "session": SESSION}
    assert pull.start(host.endpoints[1], 0, 0, length=1000, region=local, **fields) == 1
    (event,) = host.events(1)
    assert (event["type"], event["transferred"], event["status"]) == ("pull_done", 0, 5)


def copies(host: HostNode) -> int:
    """How many copies from region 0 of endpoint 0 are under way."""
    return word32(host.node.segment, host.layout.regions_offset + COPIES_AT).value


def stopped_in_its_copy(host: HostNode, **request: Any) -> int | None:
    """The pid of a child that pulls, stopped before its copy ended; None: it was too fast."""
    child = os.fork()
    if child == 0:
        os._exit(pull.start(host.endpoints[1], 0, 0, **request))
    while copies(host) == 0 and os.waitpid(child, os.WNOHANG) == (0, 0):
        pass
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGSTOP)
    with contextlib.suppress(ChildProcessError):
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status) and copies(host) == 1:
            return child
        os.kill(child, signal.SIGCONT)
        os.waitpid(child, 0)
    return None


def test_a_pull_whose_source_goes_away_meanwhile_ends_aborted() -> None:
    host = two_ranks(heap_bytes=LONG_BYTES)
    remote, seqnum = register(host.endpoints[0], heap_array(host, 0, LONG_BYTES), "heap")
    local, _ = register(host.endpoints[1], heap_array(host, LONG_BYTES, LONG_BYTES), "heap")
    request = {"rdma_id": remote, "rdma_seqnum": seqnum, "session": SESSION, "region": local}
    attempts = (stopped_in_its_copy(host, length=LONG_BYTES, **request) for _ in range(100))
    child = next(pid for pid in attempts if pid is not None)
    host.events(1)
    closing = threading.Thread(target=host.endpoints[0].close)
    closing.start()
    while host.endpoints[0].is_open:
        pass
    os.kill(child, signal.SIGCONT)
    closing.join()
    os.waitpid(child, 0)
    (event,) = host.events(1)
    assert (event["type"], event["transferred"], event["status"]) == ("pull_done", 0, 5)


def test_a_pull_waits_for_room_for_its_end() -> None:
    host = two_ranks(heap_bytes=1 << 16)
    data, target = large(100), np.zeros(100, np.uint8)
    remote, seqnum = register(host.endpoints[0], data, "process")
    local, _ = register(host.endpoints[1], target, "process")
    fields: dict[str, Any] = {"rdma_id": remote, "rdma_seqnum": seqnum, "session": SESSION}
    results = [
        pull.start(host.endpoints[1], 0, 0, length=100, region=local, cookie=i, **fields)
        for i in range(17)
    ]
    assert results == [1] * 16 + [0]
    assert [event["cookie"] for event in host.events(1)] == list(range(16))
    assert pull.start(host.endpoints[1], 0, 0, length=100, region=local, **fields) == 1


def test_closing_destroys_regions_and_a_later_opening_starts_clean() -> None:
    host = two_ranks(heap_bytes=1 << 16)
    data, target = large(100), np.zeros(100, np.uint8)
    remote, seqnum = register(host.endpoints[0], data, "process")
    host.endpoints[0].close()
    host.endpoints[0].open(SESSION)
    local, _ = register(host.endpoints[1], target, "process")
    fields: dict[str, Any] = {"rdma_id": remote, "rdma_seqnum": seqnum, "session": SESSION}
    assert pull.start(host.endpoints[1], 0, 0, length=100, region=local, **fields) == -BAD_REGION
