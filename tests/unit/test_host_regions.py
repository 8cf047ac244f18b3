"""Memory regions: what handlers may reach, and that it goes away safely."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.host_node import HostNode

from shrimpmx.errors import InputError
from shrimpmx.host import regions
from shrimpmx.shared.sizes import HEAP_START_BYTES

KINDS = ("heap", "process")


def host_with_heap(**layout: Any) -> HostNode:
    return HostNode.make(heap_bytes=1 << 20, **layout)


def buffer(host: HostNode, kind: str, length: int, start: int = 0) -> memoryview:
    if kind == "process":
        return memoryview(bytearray(length))
    view: memoryview = host.node.heap_segment.view()
    return view[HEAP_START_BYTES + start : HEAP_START_BYTES + start + length]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_there_and_is_read_back(kind: str) -> None:
    host = host_with_heap()
    memory = buffer(host, kind, 10_000, 64)
    number, _ = regions.create(host.endpoint, memory, kind)
    for offset, data in ((0, b"first"), (9_995, b"last!"), (4_090, bytes(range(200)))):
        assert regions.write(host.endpoint, number, offset, data)
        assert bytes(memory[offset : offset + len(data)]) == data
        assert regions.read(host.endpoint, number, offset, len(data)) == data
    assert bytes(memory[5:4090]) == bytes(4085), "nothing else was written"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("offset", "length"), [(0, 101), (100, 1), (101, 0), (2**32, 1), (2**64 - 1, 2), (2**64 - 5, 5)]
)
def test_nothing_outside_a_region_is_reached(kind: str, offset: int, length: int) -> None:
    host = host_with_heap()
    memory = buffer(host, kind, 300)
    number, _ = regions.create(host.endpoint, memory[100:200], kind)
    assert not regions.write(host.endpoint, number, offset, b"x" * length)
    assert regions.read(host.endpoint, number, offset, length) is None
    assert bytes(memory) == bytes(300)
    assert regions.read(host.endpoint, number, 100, 0) == b""


@pytest.mark.parametrize("number", [1, 255, 256, 2**32 - 1])
def test_a_region_that_is_not_there_is_refused(number: int) -> None:
    host = host_with_heap()
    regions.create(host.endpoint, buffer(host, "heap", 100))
    assert not regions.write(host.endpoint, number, 0, b"x")
    assert regions.read(host.endpoint, number, 0, 1) is None


def test_memory_that_cannot_be_reached_is_an_error() -> None:
    host = host_with_heap()
    number, _ = regions.create(host.endpoint, buffer(host, "process", 100), "process")
    host.endpoints[0].close()
    with_no_pid = HostNode.make(opened=False)  # a process 0 has no memory
    number, _ = regions.create(with_no_pid.endpoint, buffer(host, "process", 100), "process")
    assert not regions.write(with_no_pid.endpoint, number, 0, b"x")
    assert regions.read(with_no_pid.endpoint, number, 0, 1) is None


def test_a_buffer_outside_the_heap_is_no_heap_region() -> None:
    with pytest.raises(InputError, match="does not lie in the node's heap"):
        regions.create(host_with_heap().endpoint, bytearray(10), "heap")
    with pytest.raises(InputError, match="does not lie in the node's heap"):
        regions.create(HostNode.make().endpoint, bytearray(10), "heap")


def test_there_are_256_and_an_id_rests_before_it_is_used_again() -> None:
    host = host_with_heap()
    memory = buffer(host, "heap", 100)
    assert [regions.create(host.endpoint, memory)[0] for _ in range(256)] == list(range(256))
    with pytest.raises(InputError, match="no free region"):
        regions.create(host.endpoint, memory)
    for number in (7, 200):
        regions.destroy(host.endpoint, number)
    assert [regions.create(host.endpoint, memory) for _ in range(2)] == [(7, 2), (200, 2)]
    regions.destroy(host.endpoint, 3)
    regions.destroy(host.endpoint, 210)
    assert regions.create(host.endpoint, memory) == (210, 2), "the search goes on behind 200"


def test_the_number_of_uses_travels_in_a_byte() -> None:
    host = host_with_heap()
    memory = buffer(host, "heap", 100)
    for _ in range(1, 256):
        regions.create(host.endpoint, memory)  # all but one id
    seen = []
    for _ in range(300):
        number, seqnum = regions.create(host.endpoint, memory)
        seen.append(seqnum)
        regions.destroy(host.endpoint, number)
    assert seen == [use % 256 for use in range(1, 301)]


def test_an_endpoint_opens_without_the_regions_of_its_last_opening() -> None:
    host = host_with_heap()
    number, seqnum = regions.create(host.endpoint, buffer(host, "heap", 100))
    host.endpoint.close()
    host.endpoint.open(77)
    assert regions.read(host.endpoint, number, 0, 1) is None
    for _ in range(255):
        regions.create(host.endpoint, buffer(host, "heap", 100))
    assert regions.create(host.endpoint, buffer(host, "heap", 100)) == (number, seqnum + 1)


def test_destroying_waits_for_copies_that_are_under_way() -> None:
    host = host_with_heap()
    number, _ = regions.create(host.endpoint, buffer(host, "heap", 100))
    regions.hold(host.endpoint, number, True)
    ended = threading.Event()

    def destroy() -> None:
        regions.destroy(host.endpoint, number)
        ended.set()

    thread = threading.Thread(target=destroy)
    thread.start()
    while regions.read(host.endpoint, number, 0, 1) is not None:
        pass
    assert not ended.is_set(), "refused at once, and not yet given back"
    regions.hold(host.endpoint, number, False)
    thread.join(30)
    assert ended.is_set()


def test_a_copy_that_never_ends_is_waited_for_once() -> None:
    host = host_with_heap()
    memory = buffer(host, "heap", 100)
    number, _ = regions.create(host.endpoint, memory)
    regions.hold(host.endpoint, number, True)
    regions.destroy(host.endpoint, number)  # takes a second, and so would each of these
    for _ in range(100):
        regions.destroy(host.endpoint, number)
        host.endpoint.close()
        host.endpoint.open(77)
    taken = [regions.create(host.endpoint, memory)[0] for _ in range(255)]
    assert number not in taken
    with pytest.raises(InputError, match="no free region"):
        regions.create(host.endpoint, memory)
    regions.hold(host.endpoint, number, False)  # its copier was only stopped
    assert regions.create(host.endpoint, memory)[0] == number


def test_closing_waits_once_for_all_copies_that_never_end() -> None:
    host = host_with_heap()
    memory = buffer(host, "heap", 100)
    held = [regions.create(host.endpoint, memory)[0] for _ in range(100)]
    for number in held:
        regions.hold(host.endpoint, number, True)
    for _ in range(100):
        host.endpoint.close()
        host.endpoint.open(77)
    assert not set(held) & {regions.create(host.endpoint, memory)[0] for _ in range(156)}


@pytest.mark.parametrize("number", [-1, 0, 256, 2**31 - 1])
def test_destroying_what_is_not_there_is_harmless(number: int) -> None:
    host = host_with_heap()
    regions.destroy(host.endpoint, number)
    regions.destroy(host.endpoint, number)
    assert regions.create(host.endpoint, buffer(host, "heap", 100)) == (0, 1)
