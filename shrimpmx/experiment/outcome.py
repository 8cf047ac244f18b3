"""From a run of a cluster to its outcome: samples, counters and times; and what
simulated runs draw: those that draw nothing are equal, whatever their seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.statistics import Samples
from shrimpmx.workloads.anatomy import COUNTED

# What a ping-pong's samples are called.
HALF_ROUND_TRIP = "half_round_trip_ns"
# What the moments of an anatomy's messages are called.
SENT, RECEIVED = "sent_ns", "received_ns"


def outcome_of(
    spec: ClusterSpec, result: ClusterResult, t_block_ns: float | None = None
) -> Outcome:
    """The figures of a run since its ranks began to work; of an MPI program during its work, or in
    its marked sections.

    `t_block_ns` is what blocking costs all in all there; None: not known.
    """
    work = spec.ranks[0].options
    program = bool(spec.ranks[0].command)
    return Outcome(
        samples=_of_program(result) if program else _samples(spec, result),
        per_message={} if program else _per_message(result),
        counters={agent: result.worked(agent) for agent in result.counters},
        paid=result.paid(),
        accounts=result.accounts,
        usage=result.usage,
        placement=result.placement.as_dict(),
        ranks=tuple(f"rank{number}" for number in range(spec.first_ranks)),
        mis_ordering=mis_ordering(spec),
        iterations=work["iterations"] + work["warmup"],
        elapsed_ns=result.elapsed_ns,
        figures={} if program else _figures(result),
        program=result.samples if program else {},
        hardware=result.hardware,
        hardware_absent=result.hardware_absent,
        t_block_ns=t_block_ns,
        message_bytes=work["size_bytes"],
        steered=tuple(result.steered),
        pauses=result.pauses,
        is_mpi=result.is_mpi,
        marked=result.marked,
        whole_ns=result.whole_ns,
        dilation=spec.dilation,
        host_costs_ns=spec.host_costs_ns,
        host_model=result.host_model,
        drawn=drawn_in(spec) if result.host_model else None,
    )


def mis_ordering(spec: ClusterSpec) -> int:
    """How many fragments of a long medium message come behind the one that is marked."""
    early = spec.host.mark_early
    overtake = spec.link_faults.overtake if spec.link_faults is not None else 0
    if early == 0:
        return overtake
    # An early mark that is itself overtaken has the last fragment ahead of it.
    return early - 1 if early <= overtake else early


def _samples(spec: ClusterSpec, result: ClusterResult) -> Samples:
    """ns per half round trip as its initiator saw it, per message at each receiver, or from send
    to receive.
    """
    first = result.samples.get("rank0", {})
    if HALF_ROUND_TRIP in first:
        of_ranks = [result.samples[name] for name in _beginners(spec)]
        began = [found[HALF_ROUND_TRIP] for found in of_ranks if HALF_ROUND_TRIP in found]
        return np.concatenate(began).astype(np.float64)
    if SENT in first:
        return _transfers(result)
    warmup = int(spec.ranks[0].options["warmup"])
    parts = [
        per_message_ns(arrays["timestamps_ns"], int(arrays["batch"][0]), warmup)
        for arrays in result.samples.values()
        if "timestamps_ns" in arrays
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _of_program(result: ClusterResult) -> Samples:
    """ns per half round trip, of the ranks whose program measured that."""
    found = _figures(result).get(HALF_ROUND_TRIP)
    return np.empty(0) if found is None else found


def _beginners(spec: ClusterSpec) -> list[str]:
    """The ranks that begin round trips: those of node 0; with a vmmc NIC the first one counts."""
    if spec.kind.vmmc:
        return ["rank0"]
    return [f"rank{number}" for number, rank in enumerate(spec.ranks) if rank.node == 0]


def _figures(result: ClusterResult) -> dict[str, Samples]:
    """What workloads give, of all ranks one after another."""
    found: dict[str, list[Samples]] = {}
    for arrays in result.samples.values():
        for name, values in arrays.items():
            if values.dtype.kind in "US":
                continue
            found.setdefault(name, []).append(np.ravel(values).astype(np.float64))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _transfers(result: ClusterResult) -> Samples:
    """ns from each send to the end of its receive; one clock for all processes."""
    ends = [arrays for arrays in result.samples.values() if RECEIVED in arrays]
    starts = [arrays for arrays in result.samples.values() if SENT in arrays]
    parts = [
        (end[RECEIVED] - start[SENT]).astype(np.float64)
        for start, end in zip(starts, ends, strict=True)
    ]
    return np.concatenate(parts)


def _per_message(result: ClusterResult) -> dict[str, dict[str, Samples]]:
    """What each message moved, by agent and counter, as the first sender read it."""
    found: dict[str, dict[str, Samples]] = {}
    for name, values in result.samples.get("rank0", {}).items():
        kind, _, rest = name.partition(":")
        if kind == COUNTED:
            agent, _, counter = rest.partition(":")
            found.setdefault(agent, {})[counter] = values.astype(np.float64)
    return found


def per_message_ns(timestamps_ns: NDArray[np.int64], batch: int, warmup: int) -> Samples:
    """ns per message behind the warm-up, the last batch's if that covers all: one figure.

    `timestamps_ns` has one stamp at the first message and one after each `batch` messages; with
    fewer than two there is no figure. Batches are not told apart: they follow each other, and
    a burst makes some of them fast at the cost of the next.
    """
    if timestamps_ns.size < 2:
        return np.empty(0)
    skipped = min(-(-warmup // batch), timestamps_ns.size - 2)
    messages = batch * (timestamps_ns.size - 1 - skipped)
    return np.array([(timestamps_ns[-1] - timestamps_ns[skipped]) / messages])


# The parameter that names what ranks run.
PROGRAM = "program"
# Workloads that draw their messages, or how long they wait before each.
DRAWING = ("anatomy", "arrivals", "file-service", "flags", "soak")


def drawn_in(spec: ClusterSpec) -> tuple[str, ...]:
    """The parameters by which its simulated runs may differ from each other; none if they cannot.

    A program is one of them: it may draw by itself, or look at a clock of this machine.
    """
    return tuple(_drawn(spec))


def _drawn(spec: ClusterSpec) -> Iterator[str]:
    faults, nic, model = spec.link_faults, spec.nic, spec.model
    for name in ("loss", "duplicate", "corrupt", "reorder"):
        if faults is not None and getattr(faults, name) > 0:
            yield name
    if nic.tx_gap_ns > 0 and nic.tx_gap_jitter > 0:
        yield "tx_gap_jitter"
    if nic.rx_timer == "free-running":
        yield "rx_timer"
    if min(model.wake_jitter) < max(model.wake_jitter):
        yield "wake_jitter"
    if min(model.cost_jitter) < max(model.cost_jitter):
        yield "cost_jitter"
    if model.tick_phase == "random" and _share_cores(spec):
        yield "tick_phase"
    if spec.compute == "measured":
        yield "compute"
    if any(rank.command or rank.function for rank in spec.ranks):
        yield PROGRAM
    for rank in spec.ranks:
        if rank.workload in DRAWING or rank.options["delay_max_ns"] > rank.options["delay_ns"]:
            yield "workload"
            return


def _share_cores(spec: ClusterSpec) -> bool:
    """Whether tasks may take turns on a core, which the ticks of its clock decide about."""
    bound = all(rank.bound for rank in spec.ranks)
    places = Counter((rank.node, rank.core if bound else 0) for rank in spec.ranks)
    return bool(spec.companions) or max(places.values()) > 1
