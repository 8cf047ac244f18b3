"""Takes a rank's process to a core of its node: where its endpoint is opened, and when it moves."""

from __future__ import annotations

from collections.abc import Sequence

from shrimpmx.cluster.engine.parts import RunParts
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.native.cores import pin


def run_on(parts: RunParts, index: int, node: int, cores: Sequence[int]) -> None:
    """Let this process, number `index` of the run, run on these cores of `node` only.

    InputError if the CPU of one has gone off line.
    """
    cpus = [parts.placement.core_cpus[node, core] for core in cores]
    pin(cpus)
    parts.memory.control.set_placement(index, cpus[0], 0)


class Mover:
    """Moves a rank's process to the next core of its node each time that it is called.

    After the last core comes the first one. `core` is where it is now.
    """

    def __init__(
        self, parts: RunParts, index: int, number: int, core: int, endpoint: Endpoint
    ) -> None:
        self._parts, self._index = parts, index
        self._node = parts.spec.ranks[number].node
        self._core, self._endpoint = core, endpoint

    def __call__(self) -> None:
        self._core = (self._core + 1) % self._parts.spec.host.cores
        run_on(self._parts, self._index, self._node, (self._core,))
        self._endpoint.process_core = self._core
