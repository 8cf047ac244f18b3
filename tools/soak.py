"""Millions of messages of random size between real processes, with faults; every byte checked.

    python tools/soak.py --messages 10000000 --seed 1
    python tools/soak.py --messages 50000 --faults 0.05

Pairs of ranks send both ways at once: pairs 0, 2, ... over the emulated link, whose frames are
lost, doubled, reordered and corrupted, the others by the shared path of a node. Ends at the
first message that is lost, doubled, out of order or damaged, with exit code 1. Prints progress,
the rate, and in the end the counters that tell how much had to be repaired. Ten million
messages take about ten minutes on two CPUs.
"""

from __future__ import annotations

import argparse
import time

import inputs

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import ShrimpmxError
from shrimpmx.experiment.engines import chosen_engine
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters

# Short, so that a lost packet costs milliseconds; the defaults are half a second and a second.
RESEND_DELAY_NS = 10_000_000
ACK_DELAY_NS = 1_000_000
# Messages that a slow receiver has not taken yet. With Open-MX's 512 the rings overrun, and most
# of what travels is sent again.
ZOMBIES_MAX = 32
# Below this many messages a second something hangs.
SLOWEST_PER_S = 100
SPARE_S = 60.0
LIMITS = {"messages": (1, 10**12), "seed": inputs.SEED, "faults": (0, 1), "pairs": (1, 64)}
TOLD = (
    "recv_messages", "resent_messages", "recv_duplicate", "recv_early", "recv_unexpected",
    "sent_large", "sent_shared", "pulls_failed", "partners_dead", "link_lost", "link_duplicated",
    "link_reordered", "link_corrupted", "rx_bad_fcs", "rx_drop_ring_full", "unexp_eventq_full",
    "shared_eventq_full", "send_no_tx_slot", "pull_nonfirst_block_done_early",
    "pull_timeout_handler_first_block", "drop_pull_reply_duplicate",
)  # fmt: skip


WINDOW = 16


def soak_spec(
    messages: int, seed: int, faults: float, pairs: int = 3, report_s: float = 0
) -> ClusterSpec:
    """A cluster whose ranks send `messages` in all, at least one each way of each pair."""
    each_way = max(1, -(-messages // (2 * pairs)))
    options = {"iterations": each_way, "window": WINDOW, "report_s": report_s}
    nodes = [node for pair in range(pairs) for node in ((0, 1) if pair % 2 == 0 else (0, 0))]
    return ClusterSpec(
        ranks=tuple(RankSpec(node, "soak", options=options) for node in nodes),
        host=HostParameters(pull_resend_delay_ns=RESEND_DELAY_NS),
        mx=MxParameters(
            resend_delay_ns=RESEND_DELAY_NS, ack_delay_ns=ACK_DELAY_NS, zombies_max=ZOMBIES_MAX
        ),
        wait=WaitParameters(strategy="block"),
        link_faults=LinkFaults(
            loss=faults,
            duplicate=faults,
            corrupt=faults,
            reorder=faults,
            reorder_degree=3,
            seed=seed,
        ),
        seed=seed,
        deadline_s=messages / SLOWEST_PER_S + SPARE_S,
    )


def describe(result: ClusterResult, seconds: float) -> str:
    """How much was sent, how fast, and the counters that matter, summed over all agents."""
    count = sum(int(samples["messages"][0]) for samples in result.samples.values())
    data = sum(int(samples["bytes"][0]) for samples in result.samples.values())
    lines = [
        f"{count} messages with {data} bytes arrived once, in order and intact in {seconds:.1f} s: "
        f"{count / seconds:.0f} messages/s, {data / seconds / 1e6:.0f} MB/s"
    ]
    for name in TOLD:
        sum_of_all = sum(counters.get(name, 0) for counters in result.counters.values())
        lines.append(f"  {name:34}{sum_of_all:>12}")
    return "\n".join(lines)


def main() -> int:
    """Soak; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=10_000_000, help="in all (10000000)")
    parser.add_argument("--seed", type=int, default=1, help="of sizes, contents and faults (1)")
    parser.add_argument("--faults", type=float, default=0.01, help="rate of each fault (0.01)")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of ranks (3)")
    options = parser.parse_args()
    inputs.check(options, LIMITS)
    spec = soak_spec(options.messages, options.seed, options.faults, options.pairs, report_s=10)
    begin = time.monotonic()
    try:
        result = chosen_engine().run(spec)
    except ShrimpmxError as error:
        print(f"seed {options.seed}: {error}\n{getattr(error, 'traceback', '')}")
        return 1
    print(describe(result, time.monotonic() - begin))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
