"""omx_reg and omx_rcache_test: buffers are registered for as long as a message needs them.

The library keeps no registration beyond that (Open-MX's cache is off by default, too), so that
the same buffer is registered anew for every message, wherever in a page it begins.
"""

from __future__ import annotations

import mmap

import pytest
from support.peer import data, ends

from shrimpmx.errors import InputError
from shrimpmx.host import regions
from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.shared.heap import Heap

REGIONS = 256
LENGTH = 70_000


def free_regions(endpoint: Endpoint) -> int:
    """How many an application could register now."""
    driver = DriverEndpoint(endpoint.node, endpoint.index, 1)
    taken = []
    for _ in range(REGIONS):
        try:
            taken.append(regions.create(driver, bytearray(1), "process")[0])
        except InputError:
            break
    for number in taken:
        regions.destroy(driver, number)
    return len(taken)


@pytest.mark.parametrize("path", ["native", "shared"])
@pytest.mark.parametrize("memory", ["heap", "process-vm", "bounce"])
def test_one_buffer_again_and_again(memory: str, path: str) -> None:
    cluster, one, other, partner = ends(path, {"memory": memory}, mtu=9000)
    content, buffer = bytearray(LENGTH), bytearray(LENGTH)
    for number in range(3 * REGIONS):
        content[:] = data(LENGTH, number)
        receive = other.irecv(buffer, 1)
        send = one.isend(content, partner, 1)
        assert cluster.wait(other, receive).code == "success"
        assert cluster.wait(one, send).code == "success"
        assert buffer == content
        cluster.frames.clear()
    assert free_regions(one) == free_regions(other) == REGIONS


@pytest.mark.parametrize("path", ["native", "shared"])
def test_buffers_that_begin_anywhere_in_a_page(path: str) -> None:
    cluster, one, other, partner = ends(path, mtu=9000)
    places = [0, 1, 63, 64, 511, 1468, 4095, 4096, 4097]
    with mmap.mmap(-1, 2 * LENGTH) as source, mmap.mmap(-1, 2 * LENGTH) as target:
        for start in places:
            for end in reversed(places):
                source[start : start + LENGTH] = data(LENGTH, start)
                room = memoryview(target)[end : end + LENGTH]
                part = memoryview(source)[start : start + LENGTH]
                receive = other.irecv(room, 1)
                send = one.isend(part, partner, 1)
                assert cluster.wait(other, receive).code == "success"
                assert cluster.wait(one, send).code == "success"
                assert room == part
                room.release()
                part.release()
    assert free_regions(one) == free_regions(other) == REGIONS


@pytest.mark.parametrize("path", ["native", "shared"])
def test_a_buffer_in_several_messages_at_once(path: str) -> None:
    cluster, one, other, partner = ends(path, mtu=9000)
    content = data(LENGTH)
    buffers = [bytearray(LENGTH) for _ in range(REGIONS)]
    receives = [other.irecv(buffer, 1) for buffer in buffers]
    sends = [one.isend(content, partner, 1) for _ in buffers]
    assert free_regions(one) < REGIONS
    for receive, send in zip(receives, sends, strict=True):
        assert cluster.wait(other, receive).code == "success"
        assert cluster.wait(one, send).code == "success"
    assert all(buffer == content for buffer in buffers)
    assert free_regions(one) == free_regions(other) == REGIONS


@pytest.mark.parametrize("ending", ["truncated", "disconnected", "closed"])
def test_no_registration_outlives_its_message(ending: str) -> None:
    cluster, one, other, partner = ends("native", mtu=9000)
    send = one.isend(data(LENGTH), partner, 1)
    cluster.settle()
    assert free_regions(one) == REGIONS - 1
    if ending == "truncated":
        assert cluster.wait(other, other.irecv(bytearray(10), 1)).code == "truncated"
        assert cluster.wait(one, send).code == "truncated"
    elif ending == "disconnected":
        one.disconnect(partner)
        assert cluster.wait(one, send).code == "remote-endpoint-unreachable"
    else:
        cluster.close(one)
    assert free_regions(one) == free_regions(other) == REGIONS


def test_a_heap_buffer_is_reached_in_place() -> None:
    cluster, one, other, partner = ends("native", {"memory": "heap"})
    source, target = (Heap.of_process(e.node, e.index).allocate(LENGTH) for e in (one, other))
    source[:] = data(LENGTH)
    receive = other.irecv(target, 1)
    cluster.wait(one, one.isend(source, partner, 1))
    assert cluster.wait(other, receive).code == "success"
    assert bytes(target) == data(LENGTH)
    for endpoint in (one, other):
        counters = endpoint.counters()
        assert (counters["memory_heap"], counters["memory_bounce"]) == (1, 0)
