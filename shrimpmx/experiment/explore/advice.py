"""A setting as the commands that a real machine takes.

Sources: ethtool(8); the kernel's admin-guide/sysctl/net (busy_poll, busy_read) and
core-api/irq/irq-affinity; networking/napi (napi_defer_hard_irqs, gro_flush_timeout); the help of
Open MPI's parameter mpi_yield_when_idle and of MPICH's MPIR_CVAR_POLLS_BEFORE_YIELD; the user's
guide of MVAPICH2 (MV2_USE_BLOCKING); the developer reference of Intel MPI (I_MPI_THREAD_YIELD,
I_MPI_WAIT_MODE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shrimpmx.experiment.explore.grid import ONE_CORE, PER_QUEUE, PLACEMENTS, placement_of
from shrimpmx.experiment.point import Point
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.nic import NicParameters

# What Linux's documentation recommends for a few sockets, us.
BUSY_POLL_US = 50
# Coalescing that an ordinary NIC and its driver can do.
ORDINARY = ("disabled", "timeout", "adaptive", "dim", "dim-cqe", "napi-defer", "irq-suspend")
# Ways to wait that keep the CPU, at least for a while.
_SPINNING = ("spin", "spin-sched", "spin-block", "spin-notify", "adaptive", "conditional")


CROWDED = "holds where ranks share CPUs; with a core for each rank keep your MPI's default"


@dataclass(frozen=True)
class Advice:
    """Commands for a shell, IF being the interface, under a heading; `note`: what they lack, in
    lines."""

    heading: str
    commands: tuple[str, ...] = ()
    note: str = ""


def advice_of(point: Point, *, crowded: bool = False) -> list[Advice]:
    """What a machine has to be told for the setting of a point; `crowded`: that was found where
    processes were more than CPUs.
    """
    parameters = point.parameters
    placement = placement_of(point.shown, parameters.host.cores)
    return [
        _own("the NIC interrupts: coalescing", point.policy)
        or _coalescing(parameters.nic, parameters.host),
        _placement(placement, parameters.host.cores, parameters.cluster.bind_to),
        _own("how ranks wait:", point.wait) or _waiting(parameters.wait.strategy, crowded),
    ]


def _own(heading: str, name: str) -> Advice | None:
    """Of a rule of the user's own; None without one."""
    note = "your own rule, which no command sets on a real machine"
    return Advice(f"{heading} {name}", (), note) if name else None


def advice_on_marks(point: Point, name: str) -> Advice:
    """A setting whose coalescing no NIC has, beside the commands of an ordinary one: a comment."""
    marks = _coalescing(point.parameters.nic, point.parameters.host)
    commands = "".join(f"{command}: " for command in marks.commands)
    return Advice(f"better, with another NIC: {name}", (), commands + marks.note)


def _coalescing(nic: NicParameters, host: HostParameters) -> Advice:
    name = nic.coalescing
    heading = f"the NIC interrupts: coalescing {name}"
    fixed = f"ethtool -C IF adaptive-rx off rx-usecs {nic.rx_usecs} rx-frames {nic.rx_frames}"
    adaptive = "ethtool -C IF adaptive-rx on"
    if name == "disabled":
        return Advice(heading, ("ethtool -C IF adaptive-rx off rx-usecs 0 rx-frames 1",))
    if name == "timeout":
        return Advice(heading, (fixed,))
    if name == "adaptive":
        note = "each driver adapts by rules of its own; these are Intel's"
        return Advice(heading, (adaptive,), note)
    if name in ("dim", "dim-cqe"):
        mode = f" cqe-mode-rx {'on' if name == 'dim-cqe' else 'off'}"
        return Advice(heading, (adaptive + mode,), "of a driver that uses Linux's dim")
    if name in ("napi-defer", "irq-suspend"):
        return Advice(heading, _deferring(host), _suspending(host) * (name == "irq-suspend"))
    if name == "watchdog":
        note = "no NIC has it: the library polls, and only unpolled packets interrupt"
        return Advice(heading, (), note)
    note = (
        "needs a NIC whose firmware heeds the marks of Open-MX's packets; ethtool has no option "
        "for it"
    )
    return Advice(heading, (fixed,) if name != "marks-adaptive" else (adaptive,), note)


def _deferring(host: HostParameters) -> tuple[str, ...]:
    return (
        f"echo {host.napi_defer_hard_irqs} > /sys/class/net/IF/napi_defer_hard_irqs",
        f"echo {host.gro_flush_timeout_ns} > /sys/class/net/IF/gro_flush_timeout",
    )


def _suspending(host: HostParameters) -> str:
    return (
        f"and irq-suspend-timeout {host.irq_suspend_timeout_ns} ns of its NAPI instances, which "
        "Linux has from 6.13 on, for programs that poll by epoll"
    )


def _placement(placement: str, cores: int, bind_to: str) -> Advice:
    mpirun = f"mpirun --bind-to {bind_to} ...    # Open MPI; MPICH: -bind-to {bind_to}"
    if bind_to != "none":
        mpirun += "; without either: taskset -c CORE PROGRAM"
    if cores == 1:
        heading = "where interrupts go: nodes of one core leave nothing to choose"
        return Advice(heading, (mpirun,))
    heading = f"where interrupts go: {placement}, {PLACEMENTS[placement]}"
    stop = "systemctl stop irqbalance"
    if placement == PER_QUEUE:
        return Advice(
            heading,
            (
                f"ethtool -L IF combined {cores}",
                f"ethtool -X IF equal {cores}",
                stop,
                "echo Q > /proc/irq/N/smp_affinity_list    # for each queue Q and its interrupt N",
                mpirun,
            ),
            "in the emulation a rank's packets come by the queue of its core; a NIC that spreads "
            "TCP by a hash needs `ethtool -K IF ntuple on` and flows steered to queues (aRFS)",
        )
    mask = "0" if placement == ONE_CORE else f"0-{cores - 1}"
    turns = (
        ""
        if placement == ONE_CORE
        else "whether interrupts then really take turns depends on the chipset: many send all to "
        "one core of the mask"
    )
    return Advice(
        heading,
        (
            "ethtool -L IF combined 1",
            stop,
            f"echo {mask} > /proc/irq/N/smp_affinity_list    # N: the NIC's interrupt",
            mpirun,
        ),
        turns,
    )


def _waiting(strategy: str, crowded: bool) -> Advice:
    heading = f"how ranks wait: {strategy}"
    crowd = CROWDED if crowded else ""
    if strategy == "spin":
        return Advice(
            heading,
            (
                "mpirun --mca mpi_yield_when_idle 0 ...    # Open MPI; its default unless ranks "
                "are more than slots",
                "export MV2_USE_BLOCKING=0 I_MPI_WAIT_MODE=0    # MVAPICH2; Intel MPI",
                *_busy_poll(BUSY_POLL_US),
            ),
            crowd,
        )
    if strategy == "sched":
        return Advice(
            heading,
            (
                "mpirun --mca mpi_yield_when_idle 1 ...    # Open MPI",
                "export MPIR_CVAR_POLLS_BEFORE_YIELD=1    # MPICH with ch3:nemesis",
                "export I_MPI_THREAD_YIELD=2    # Intel MPI",
                *_busy_poll(0),
            ),
            crowd,
        )
    note = ""
    commands: tuple[str, ...] = (
        "export MV2_USE_BLOCKING=1 I_MPI_WAIT_MODE=1    # MVAPICH2; Intel MPI",
        *_busy_poll(BUSY_POLL_US if strategy in _SPINNING else 0),
    )
    if strategy == "spin-sched":
        commands = (
            "export MPIR_CVAR_POLLS_BEFORE_YIELD=1000    # MPICH with ch3:nemesis",
            *_busy_poll(BUSY_POLL_US),
        )
    else:
        note = (
            "Open MPI and MPICH (except its old channel ch3:sock) cannot sleep in a wait; the "
            "nearest in Open MPI is a yield: mpirun --mca mpi_yield_when_idle 1"
        )
    return Advice(heading, commands, "\n".join(filter(None, (note, crowd))))


def _busy_poll(microseconds: int) -> Sequence[str]:
    """How long the kernel itself spins for a socket, for MPI over TCP."""
    values = f"net.core.busy_poll={microseconds} net.core.busy_read={microseconds}"
    return (f"sysctl -w {values}    # for MPI over TCP",)
