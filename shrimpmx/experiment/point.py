"""A point of a sweep and its parameters, by group."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from shrimpmx.cluster import rules
from shrimpmx.cluster.nics.kind import Groups, kind_of
from shrimpmx.errors import InputError
from shrimpmx.mx.binding import bound_cores, parse_binding
from shrimpmx.native.records import dataclass
from shrimpmx.settings.cluster import ClusterParameters
from shrimpmx.settings.declared import Declared
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.names import GROUPS, PARAMETER_NAMES, SHOWN_NAMES
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.platform import Platform, PlatformParameters
from shrimpmx.settings.sentences import validation_sentence
from shrimpmx.settings.strategies import OWN_COALESCING, CoalescingRow
from shrimpmx.settings.workload import PROGRAMS, SIZE_IN_ARGUMENTS, WorkloadParameters
from shrimpmx.wire.tables import SMALL_MAX_BYTES
from shrimpmx.workloads.file_service.limits import BLOCK_BYTES, refusal

# So many of the heap's blocks hold the buffers of both directions and of one bounce, whatever
# else the rank has there; a block is the message rounded up to a power of two (ours).
HEAP_BLOCKS = 4


# Workloads of a vmmc NIC that send flags and nothing else.
ONE_WORD_WORKLOADS = ("pingpong", "flags", "arrivals")


class PointParameters(Declared):
    """All parameters of one point of a sweep, by group."""

    cluster: ClusterParameters = ClusterParameters()
    workload: WorkloadParameters = WorkloadParameters()
    nic: NicParameters = NicParameters()
    host: HostParameters = HostParameters()
    mx: MxParameters = MxParameters()
    wait: WaitParameters = WaitParameters()
    faults: LinkFaults = LinkFaults()
    platform: PlatformParameters = PlatformParameters()
    model: HostModelParameters = HostModelParameters()

    def check(self) -> None:
        for problem in self._problems():
            raise ValueError(problem)
        self._check_program()
        self._check_vmmc_workload()
        self._check_interrupts()
        self._check_ranks()
        if self.cluster.mode == "generator" and self.workload.kind != "stream":
            raise ValueError(
                f"mode 'generator' plays a stream only, not workload {self.workload.kind!r}"
            )
        if self.cluster.mode == "generator" and self.workload.size_bytes > SMALL_MAX_BYTES:
            raise ValueError(
                "mode 'generator' sends messages of one packet: size_bytes must be 0 to "
                f"{SMALL_MAX_BYTES}, not {self.workload.size_bytes}"
            )
        if self.cluster.mode != "generator" and self.workload.frames == "invalid":
            raise ValueError("frames 'invalid' needs mode 'generator', which sends them")
        self._check_other()
        self._check_mpi()
        if kind_of(self.nic).vmmc and self.cluster.nodes != 2:
            raise ValueError(f"a vmmc NIC's workloads run on 2 nodes, not {self.cluster.nodes}")
        pairing = self.cluster.mode == "two-node" and self.workload.kind != "mpi"
        if pairing and self.cluster.nodes % 2:
            raise ValueError(
                f"mode 'two-node' pairs nodes: nodes must be even, not {self.cluster.nodes}"
            )
        problem = self.heap_problem()
        if self.mx.memory in ("heap", "bounce") and problem:
            raise ValueError(problem)

    def heap_problem(self) -> str:
        """One sentence if messages that lie in the rank's heap do not fit there; else ""."""
        least = HEAP_BLOCKS << (self.workload.size_bytes - 1).bit_length()
        if self.mx.heap_bytes >= least:
            return ""
        return (
            f"memory {self.mx.memory!r} has messages in the rank's heap: with size_bytes "
            f"{self.workload.size_bytes} heap_bytes must be at least {least}, "
            f"not {self.mx.heap_bytes}"
        )

    def _problems(self) -> Iterator[str]:
        """What any run refuses, asked before anything runs."""
        cluster, move_every = self.cluster, self.workload.move_every
        yield from rules.group_problems(
            Groups(self.nic, self.host, self.mx, self.wait, self.faults)
        )
        yield from rules.mode_problems(cluster.mode, cluster.nodes, self.nic)
        yield from rules.move_problems(self.nic, self.host.cores, move_every)
        yield from rules.distance_problems(cluster.distance, self.nic, move_every)
        if self.workload.kind not in PROGRAMS:
            yield from rules.workload_problems(self.workload.kind, self.nic)

    def _check_program(self) -> None:
        work = self.workload
        if work.kind == "program" and not work.program:
            raise ValueError("workload 'program' needs a program: set program=FILE, a Python file")
        if work.kind == "mpi" and not work.program:
            raise ValueError("workload 'mpi' needs a program: set program to an executable")
        if work.kind not in PROGRAMS and (work.program or work.arguments):
            raise ValueError(
                f"program and arguments need workload 'program' or 'mpi', not {work.kind!r}"
            )
        try:
            _ = work.command if work.kind == "mpi" else work.words
        except ValueError as error:
            raise ValueError(f"arguments {work.arguments!r} cannot be used: {error}") from None

    def _check_mpi(self) -> None:
        cluster = self.cluster
        if self.workload.kind != "mpi":
            return
        known = {"kind", "program", "arguments", "script"}
        if SIZE_IN_ARGUMENTS in self.workload.arguments + self.workload.script:
            known.add("size_bytes")
        for name in sorted(self.workload.model_fields_set - known):
            raise ValueError(f"{name} applies to shrimpmx's own workloads, not to an MPI program")
        if kind_of(self.nic).vmmc:
            raise ValueError("MPI runs over the MX library, which nic 'vmmc' lacks: use another")
        if cluster.pairs > 1 or cluster.rank_core:
            raise ValueError(
                "pairs and rank_core do not apply to workload 'mpi': `ranks` sets the number of "
                "its ranks, which take the cores of their nodes in turn, from core 0 on"
            )

    def _check_interrupts(self) -> None:
        """What asks for a handler."""
        if kind_of(self.nic).interrupts:
            return
        if self.workload.frames == "invalid" or self._others():
            raise ValueError(
                f"nic {self.nic.nic_kind!r} has no receive handler; frames=invalid, "
                "other_rate and other_window measure this handler: use them with nic=ethernet"
            )

    def _check_other(self) -> None:
        """What another protocol's packets need."""
        given = self._others()
        if given and self.cluster.mode != "generator":
            raise ValueError(
                f"{given[0]} needs mode 'generator', the only sender of other protocols"
            )
        if len(given) > 1:
            raise ValueError(
                "other_rate and other_window cannot both be set: packets of the other protocol "
                "come at a rate, or in a closed loop"
            )

    def _others(self) -> list[str]:
        """The parameters that have a generator send another protocol's packets."""
        return [name for name in ("other_rate", "other_window") if getattr(self.workload, name)]

    def _check_ranks(self) -> None:
        cluster, work, cores = self.cluster, self.workload, self.host.cores
        if cluster.rank_core >= cores:
            raise ValueError(
                f"rank_core is {cluster.rank_core}, but a node's cores are 0 to {cores - 1}: set "
                f"cores to at least {cluster.rank_core + 1}"
            )
        if cluster.pairs > 1 and cluster.mode == "generator":
            raise ValueError("mode 'generator' has one rank: pairs must be 1")
        if cluster.pairs > 1 and cluster.nodes != 2:
            raise ValueError(f"pairs need 2 nodes, not {cluster.nodes}: set nodes=2 or pairs=1")
        if cluster.pairs > 1 and work.kind == "anatomy":
            raise ValueError(
                "workload 'anatomy' sends one message at a time: pairs must be 1, not "
                f"{cluster.pairs}"
            )
        binding = parse_binding(self.mx.process_binding)  # its file is read for what is to run
        for endpoint in range(cluster.pairs):
            bound_cores(binding, 0, endpoint, cores)
        if work.move_every and work.kind != "pingpong":
            raise ValueError("move_every needs workload 'pingpong': only its ranks move")

    def _check_vmmc_workload(self) -> None:
        work, vmmc = self.workload, kind_of(self.nic).vmmc
        if vmmc and work.kind in ONE_WORD_WORKLOADS and work.size_bytes:
            raise ValueError(
                f"workload {work.kind!r} always sends one word on a vmmc NIC: leave "
                f"size_bytes at 0, not {work.size_bytes}"
            )
        if work.kind == "ttcp" and work.size_bytes == 0:
            raise ValueError("workload 'ttcp' sends bytes: size_bytes must be at least 1")
        file = (work.iterations + work.warmup, work.size_bytes or BLOCK_BYTES)
        if work.kind == "file-service" and (problem := refusal(*file)):
            raise ValueError(problem)
        if work.delay_max_us and not (vmmc and work.kind == "pingpong"):
            raise ValueError("delay_max_us needs workload 'pingpong' and a vmmc NIC: set nic=vmmc")
        if 0 < work.delay_max_us < work.delay_us:
            raise ValueError(
                f"delay_max_us is {work.delay_max_us}, less than delay_us, {work.delay_us}: raise "
                "it, or set it to 0"
            )


@dataclass(frozen=True)
class Point:
    """One point of a sweep: `shown` are the parameters that the scenario names; `policy` and `wait`
    are names of the user's own.
    """

    index: int
    shown: dict[str, Any]
    parameters: PointParameters
    policy: str = ""
    wait: str = ""

    @property
    def coalescing(self) -> tuple[str, CoalescingRow]:
        """The name of its coalescing strategy, and what there is to know of that."""
        nic = self.parameters.nic
        return (
            (self.policy, OWN_COALESCING) if self.policy else (nic.coalescing, nic.coalescing_row)
        )

    @property
    def untimed_frames(self) -> int:
        """So many packets wait for each other without an end; 0: packets wait for a while."""
        nic = self.parameters.nic
        return nic.rx_frames if nic.has_no_timer and not self.policy else 0


def parameters_of(
    chosen: Mapping[str, Any],
    policies: Collection[str] = (),
    waits: Collection[str] = (),
    platforms: Mapping[str, Platform] = MappingProxyType({}),
) -> tuple[PointParameters, str, str]:
    """The parameters that names and values give, and the names of a user's own policy and strategy
    among them; `platforms` are a user's own by name. InputError, in one sentence, at the first
    value that cannot be used.
    """
    grouped: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    policy = wait = ""
    for name, value in chosen.items():
        group, field = PARAMETER_NAMES[name]
        if field == "coalescing" and isinstance(value, str) and value in policies:
            policy = value
            continue
        if field == "strategy" and isinstance(value, str) and value in waits:
            wait = value
            continue
        own = field == "profile" and isinstance(value, str) and value in platforms
        grouped[group][field] = platforms[value] if own else value
    try:
        models = {group: GROUPS[group](**values) for group, values in grouped.items()}
        return PointParameters.model_validate(models), policy, wait
    except ValueError as error:
        extra = {"coalescing": tuple(policies), "strategy": tuple(waits)}
        sentence = validation_sentence(error, extra, SHOWN_NAMES)
        names = {"coalescing": "policies", "wait": "waits"}.get(sentence.partition(" must be ")[0])
        if names and "did you mean" not in sentence:
            sentence += f"; one of your own is FILE.py:CLASS, or a name in {names} of its scenario"
        raise InputError(sentence) from error
