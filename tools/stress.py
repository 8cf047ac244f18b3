"""Run random clusters of real processes, with faults, for a while: nothing may be lost.

    python tools/stress.py --seconds 600 --seed 7

Each cluster has a coalescing strategy, a way to wait, a message size, an event ring and link
faults drawn from the seed. After each one every message must have arrived once, whole and in
order (the workloads check that), and no segment or process may be left. Ends at the first
failure with exit code 1 and the seed that repeats it.
"""

from __future__ import annotations

import argparse
import random
import time

import inputs

from shrimpmx.cluster.engine.leftovers import find_leftovers
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import ShrimpmxError
from shrimpmx.experiment.engines import chosen_engine
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import COALESCING_NAMES, PAPER_WAIT_NAMES

SIZES = (0, 1, 32, 33, 128, 129, 1452, 1453, 4096, 16384, 32768)
# Short, so that a lost packet costs milliseconds; the default is half a second.
MX = MxParameters(resend_delay_ns=5_000_000, ack_delay_ns=1_000_000)
DEADLINE_S = 60.0


def random_spec(seed: int) -> ClusterSpec:
    """The cluster of this seed."""
    draw = random.Random(seed)
    rate = draw.choice((0.0, 0.01, 0.1))
    workload = draw.choice(("pingpong", "stream"))
    count = draw.choice((50, 500, 2000))
    options = {
        "size_bytes": draw.choice(SIZES),
        "iterations": count,
        "count": count,
        "window": draw.choice((1, 16, 64)),
    }
    used = ("size_bytes", "iterations") if workload == "pingpong" else (
        "size_bytes", "count", "window",
    )  # fmt: skip
    chosen = {name: options[name] for name in used}
    entries = draw.choice((64, 256, 1024))
    return ClusterSpec(
        ranks=tuple(RankSpec(node, workload, options=chosen) for node in range(2)),
        nic=NicParameters(
            coalescing=draw.choice(COALESCING_NAMES),
            mtu=draw.choice((1500, 9000)),
            rx_ring_entries=entries,
            rx_usecs=draw.choice((5, 75)),
        ),
        host=HostParameters(
            cores=draw.choice((1, 2)),
            event_ring=draw.choice(("lock-free", "reset")),
            event_ring_entries=entries,
        ),
        mx=MX,
        wait=WaitParameters(strategy=draw.choice(PAPER_WAIT_NAMES), spin_ns=20_000),
        link_faults=LinkFaults(
            loss=rate,
            duplicate=rate,
            corrupt=rate,
            reorder=rate,
            reorder_degree=draw.choice((1, 3, 40)),
            seed=seed,
        ),
        seed=seed,
        deadline_s=DEADLINE_S,
    )


def describe(spec: ClusterSpec) -> str:
    """A cluster in a line."""
    rank, faults = spec.ranks[0], spec.link_faults
    return (
        f"{rank.workload} {dict(rank.options)} mtu {spec.nic.mtu} {spec.nic.coalescing} "
        f"{spec.wait.strategy} rings {spec.host.event_ring_entries} {spec.host.event_ring} "
        f"cores {spec.host.cores} faults {faults.loss if faults else 0}"
    )


def main() -> int:
    """Run clusters until the time is up; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first cluster (1)")
    options = parser.parse_args()
    inputs.check(options, {"seed": inputs.SEED, "seconds": (0, 10**7)})
    until = time.monotonic() + options.seconds
    seed = options.seed
    while time.monotonic() < until:
        spec = random_spec(seed)
        begin = time.monotonic()
        try:
            chosen_engine().run(spec)
        except ShrimpmxError as error:
            print(f"seed {seed}: {describe(spec)}\n{error}\n{getattr(error, 'traceback', '')}")
            return 1
        left = find_leftovers()
        if left:
            print(f"seed {seed}: {describe(spec)}\nleft behind: {left}")
            return 1
        print(f"seed {seed}: {time.monotonic() - begin:5.2f} s  {describe(spec)}", flush=True)
        seed += 1
    print(f"{seed - options.seed} clusters, nothing lost")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
