"""Worlds of MPI in one process: each rank has a node, a stack and an endpoint, under one virtual
clock, and calls the functions of the table as a compiled program does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet, settrace
from numpy.typing import NDArray

from shrimpmx.mpi.functions import TABLE
from shrimpmx.mpi.joining import Joined
from shrimpmx.mpi.world import begin, current, go_on
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.mx import MxParameters
from shrimpmx.shared.control import Control
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from support.mpi_stub import Counts, address_of, prototype
from support.virtual_cluster import MILLISECOND, NicCluster
from support.virtual_world import NIC, SPIN_NS, VirtualWorld

COMM_WORLD = 0x44000000
IN_PLACE = ctypes.c_void_p(-1)
# Handles of built-in datatypes and operations, and the user's own operations behind them.
TYPES = {"u1": 0x4C00010D, "i4": 0x4C000405, "i8": 0x4C000807, "f8": 0x4C00080B}
SUM, MAX = 0x58000003, 0x58000001
RESEND_NS = 5 * MILLISECOND
SMALL_HEAP_BYTES = 4 << 20


def data_of(array: NDArray[Any]) -> ctypes.c_void_p:
    """The address of an array's data."""
    return ctypes.c_void_p(array.ctypes.data)


def type_of(array: NDArray[Any]) -> int:
    return TYPES[array.dtype.str[1:]]


def ints(*values: int) -> Any:
    return (ctypes.c_int * len(values))(*values)


def plain(argument: Any) -> Any:
    """What the prototypes take: pointers as integers. A c_int or c_longlong is one that the call
    writes."""
    if isinstance(argument, ctypes.Array | ctypes.c_int | ctypes.c_longlong):
        return ctypes.addressof(argument)
    if isinstance(argument, ctypes.c_void_p):
        return argument.value or 0
    return 0 if argument is None else argument


def counts_of(numbers: Any) -> Counts:
    """A list of C's integers of either size, or none."""
    is_list = isinstance(numbers, ctypes.Array)
    return Counts(plain(numbers), is_list and ctypes.sizeof(numbers._type_) == 8)


class Calls:
    """The functions of MPI by their names without MPI_, those of the rank that calls them.

    A call that fails raises AssertionError. One that may wait or start, as Ibcast, waits without
    a request (None).
    """

    def __init__(self, table: object, rank: int, size: int, control: Control) -> None:
        self.rank, self.size, self.control = rank, size, control
        fields = (ctypes.c_size_t * len(TABLE)).from_address(address_of(table))
        self._functions = {
            # With the GIL: the stacks of the ranks change while a call waits.
            function.name: prototype(function, ctypes.PYFUNCTYPE)(fields[number])
            for number, function in enumerate(TABLE)
        }

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            code = self.code_of(name, *arguments)
            assert code == 0, f"MPI_{name} returned {code}"

        return call

    def code_of(self, name: str, *arguments: Any) -> int:
        """What the call returns."""
        function = self._functions[name]
        wanted = function.argtypes
        return int(function(*(
            counts_of(argument) if kind is Counts else plain(argument)
            for argument, kind in zip(arguments, wanted, strict=True)
        )))  # fmt: skip

    def text_of(self, code: int) -> str:
        """The text of an error code."""
        text = ctypes.create_string_buffer(512)
        self.Error_string(code, text, ctypes.c_int())
        return text.value.decode()


Work = Callable[[Calls], Any]


def run_worlds(
    size: int,
    work: Work,
    loss: float = 0.0,
    seed: int = 1,
    look: Callable[[Control], None] = lambda control: None,
) -> list[Any]:
    """What `work` returns for each of `size` ranks; `loss` is that of each frame. `look` sees the
    memory of the run at the end."""
    cluster = NicCluster(
        NIC,
        LinkFaults(loss=loss, seed=seed),
        nodes=size,
        heap_bytes=SMALL_HEAP_BYTES,
        pull_resend_delay_ns=RESEND_NS,
        seed=seed,
    )
    control = cluster.control
    world = VirtualWorld(control, [*cluster.nics, *cluster.interrupts])
    begun: dict[greenlet, object] = {}
    ended: list[int] = []
    parameters = MxParameters(resend_delay_ns=RESEND_NS)

    def follow(event: str, stacks: tuple[greenlet, greenlet]) -> None:
        """The world of the library is that of the rank which goes on."""
        if stacks[1] in begun:
            go_on(begun[stacks[1]])

    def life(number: int) -> Callable[[], Any]:
        strategy = make_strategy("block", SPIN_NS)
        waiter = Waiter(control, 1 + number, strategy, host=world.host())
        endpoint = cluster.open(number, parameters=parameters, waiter=waiter)

        def rank() -> Any:
            with waiter:
                partners = [endpoint.connect(other, 0) for other in range(size)]
                joined = Joined(number, endpoint, partners, list(range(size)), control)
                calls = Calls(begin(joined), number, size, control)
                begun[getcurrent()] = current()
                result = work(calls)
                # The others may still need its answers, as before the end of MPI_Finalize.
                ended.append(number)
                while len(ended) < size:
                    endpoint.progress()
                    endpoint.host.sleep(MILLISECOND)
                return result

        return rank

    before = settrace(follow)
    try:
        results = world.run(*(life(number) for number in range(size)))
    finally:
        settrace(before)
    look(control)
    return results
