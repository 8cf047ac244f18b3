"""A simulated run: plans it, starts valgrind, plays the other side, and collects the figures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shrimpmx.bench.caches import callgrind
from shrimpmx.bench.caches.callgrind import Cost, SimulatedCaches
from shrimpmx.bench.caches.surroundings import Surroundings
from shrimpmx.cluster.engine.leftovers import scratch_directory
from shrimpmx.errors import AgentError, InputError, MachineError
from shrimpmx.settings.nic import NicParameters
from shrimpmx.wire.tables import EAGER_MAX_BYTES, wire_geometry

TARGET = "shrimpmx.bench.caches.target"
# What of each size comes before any count: until all rings but the rx ring, of 1024 entries, have
# come round once and lie in the cache as far as they do; messages at least.
WARM_MESSAGES, WARM_PACKETS = 2, 1100
# A slot of the rx ring is used once, so that a frame is as cold as what a NIC has just written to
# memory: the ring has to hold all packets of a run.
RX_RING_MIN, RX_RING_MAX = 1024, 65536
LOG_LINES = 5
# How long a simulated run may take: some ten times what it needs on a machine that has nothing
# else to do (ours). At its end callgrind writes its files.
START_S, PACKET_S, END_S = 180.0, 0.02, 60.0


@dataclass(frozen=True)
class SizeFigures:
    """What messages of one size cost their receiver: `packets` found by the handler, all costs."""

    size_bytes: int
    messages: int
    packets: int
    handler: Cost
    library: Cost


@dataclass(frozen=True)
class CacheFigures:
    """A simulated run; `caches` in callgrind's words."""

    caches: list[str]
    sizes: list[SizeFigures]


def check_valgrind() -> None:
    """MachineError if there is no valgrind to run."""
    if shutil.which("valgrind") is None:
        raise MachineError("there is no valgrind here; install Debian's package valgrind")


def plan(sizes: Sequence[int], packets: int) -> list[tuple[int, int, int]]:
    """For each size its bytes, messages to warm up, and messages that come in `packets`, roughly.

    Raises InputError if the ring cannot hold so many.
    """
    rounds = []
    needed = 0
    for size_bytes in sizes:
        each = packets_of(size_bytes)
        warm = max(WARM_MESSAGES, -(-WARM_PACKETS // each))
        measured = max(WARM_MESSAGES, -(-packets // each))
        rounds.append((size_bytes, warm, measured))
        needed += (warm + measured) * (each + 1)
    if needed > RX_RING_MAX:
        raise InputError(
            f"{needed} packets do not fit into an rx ring of {RX_RING_MAX}; "
            "give fewer sizes, shorter messages or a smaller --packets"
        )
    return rounds


def _packets(rounds: Sequence[tuple[int, int, int]]) -> int:
    """Packets that come to the node in all rounds, at most."""
    return sum((warm + measured) * (packets_of(size) + 1) for size, warm, measured in rounds)


def packets_of(size_bytes: int) -> int:
    """Packets that a ping-pong brings to one node per message of that size, but for an
    acknowledgement that finds no message to go with.
    """
    geometry = wire_geometry(NicParameters().mtu, NicParameters().wire_format)
    if size_bytes <= EAGER_MAX_BYTES:
        return max(1, -(-size_bytes // geometry.medium_frag_bytes))
    replies = -(-size_bytes // geometry.pull_frame_bytes)
    # Its own replies and rendezvous, and what it is asked for when it sends.
    return replies + -(-replies // geometry.pull_block_frames) + 2


def simulate(
    rounds: Sequence[tuple[int, int, int]], caches: SimulatedCaches, copy_offload: bool
) -> CacheFigures:
    """Run the rounds of plan() under valgrind.

    Raises MachineError without valgrind, AgentError if the simulated process fails or does not end.
    """
    check_valgrind()
    needed = _packets(rounds)
    entries = max(RX_RING_MIN, 1 << (needed - 1).bit_length())
    surroundings = Surroundings(entries, copy_offload)
    try:
        with scratch_directory() as directory:
            out = directory / "out"
            found = _run(surroundings, rounds, caches, out)
            return _figures(rounds, found, out)
    finally:
        surroundings.close()


def _run(
    surroundings: Surroundings,
    rounds: Sequence[tuple[int, int, int]],
    caches: SimulatedCaches,
    out: Path,
) -> list[int]:
    """Packets that the handler found while callgrind counted, by size."""
    log = out.with_name("log")
    from_node, to_others = os.pipe()
    from_others, to_node = os.pipe()
    wanted: dict[str, Any] = {
        **surroundings.names(),
        "from_others": from_others,
        "to_others": to_others,
        "rounds": rounds,
    }
    # -P: a module of the working directory, which may be /tmp, is none of ours.
    program = [sys.executable, "-P", "-m", TARGET, json.dumps(wanted)]
    process = subprocess.Popen(
        [*callgrind.command(caches, out, log), *program],
        pass_fds=(from_others, to_others),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(from_others)
    os.close(to_others)
    deadline_s = START_S + PACKET_S * _packets(rounds)
    try:
        surroundings.play(rounds, from_node, to_node, deadline_s)
        printed, errors = process.communicate(timeout=END_S)
    except (TimeoutError, subprocess.TimeoutExpired):
        raise AgentError(
            f"the simulated run has not ended after {deadline_s:.0f} s, so valgrind was stopped; "
            "on a busy machine try again later, or with fewer --packets"
        ) from None
    finally:
        process.kill()
        process.wait()
        os.close(from_node)
        os.close(to_node)
    if process.returncode:
        said = (errors or log.read_text(errors="replace")).strip().splitlines()
        raise AgentError(
            f"the simulated run ended with exit code {process.returncode}: "
            + " | ".join(said[-LOG_LINES:])
        )
    return [int(line) for line in printed.split()]


def _figures(
    rounds: Sequence[tuple[int, int, int]], found: Sequence[int], out: Path
) -> CacheFigures:
    sizes = []
    for number, ((size_bytes, _, measured), packets) in enumerate(zip(rounds, found, strict=True)):
        dump = callgrind.dump_of(out, number)
        if not dump.exists():
            raise AgentError(callgrind.NOTHING_COUNTED)
        handler, library = (
            callgrind.cost_of(dump, method) for method in (callgrind.HANDLER, callgrind.LIBRARY)
        )
        sizes.append(SizeFigures(size_bytes, measured, packets, handler, library))
    return CacheFigures(callgrind.caches_of(callgrind.dump_of(out, 0)), sizes)
