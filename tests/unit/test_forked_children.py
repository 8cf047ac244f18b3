"""A fork leaves its parent what it had: arrays, connections and a process of VMMC."""

from __future__ import annotations

import numpy as np
import pytest
from support.forked import in_child
from support.memory import make_control
from support.virtual_sockets import VirtualSockets
from support.virtual_sockets import virtual as virtual  # a fixture

from shrimpmx.errors import InputError
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.private import private_node


@pytest.fixture
def heap() -> Heap:
    control = make_control(["host"], [("node0.irq0", "irq", 0)])
    return Heap.of_process(private_node(control, NodeLayout(heap_bytes=1 << 20)), 0)


def test_what_a_child_writes_into_arrays_is_its_own(heap: Heap) -> None:
    with heap.use_for_numpy():
        arrays = [np.full(number, 7) for number in (200, 2000, 50_000)]
        del arrays[1]

    def work() -> bool:
        same = all((each == 7).all() for each in arrays)
        for each in arrays:
            each[:] = 8
        return same and all((each == 8).all() for each in arrays)

    assert all(heap.holds(each) for each in arrays)
    assert in_child(work)
    assert all((each == 7).all() for each in arrays)


def test_a_childs_child_has_what_the_child_had(heap: Heap) -> None:
    with heap.use_for_numpy():
        array = np.full(1000, 7)

    def work() -> bool:
        array[:] = 8
        return in_child(lambda: bool((array == 8).all()))

    assert in_child(work)
    array[:] = 9
    assert in_child(lambda: bool((array == 9).all()))


def test_a_child_may_not_use_its_parents_connections(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()

    def work() -> bool:
        with pytest.raises(InputError, match="belongs to the parent"):
            first.send(b"x")
        first.close()  # does nothing to the connection
        virtual.processes[0].close()
        return not virtual.processes[0].opened

    assert in_child(work)
    assert first.send(b"abc") == 3
    virtual.settle()
    assert second.recv(10) == b"abc"


def test_a_child_that_drops_its_parents_connections_leaves_them(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()

    def work() -> bool:
        virtual.sockets.clear()
        return True

    assert in_child(work)
    second.send(b"abc")
    virtual.settle()
    assert first.recv(10) == b"abc"
