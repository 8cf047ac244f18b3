"""What Goglin 2010 measured: MQ-1 to MQ-11, and in `claims_in_text.py` the rest.

NIC-Assisted Cache-Efficient Receive Stack for Message Passing over Ethernet. Units are those of the
metrics. The paper's figures lie in `figures.py`; how a predicate follows from one:
`predicates.py`.
"""

from __future__ import annotations

from functools import partial

from shrimpmx.papers.claim import Claim
from shrimpmx.papers.multiqueue2010 import claims_in_text, nas
from shrimpmx.papers.multiqueue2010.alltoall import alltoall
from shrimpmx.papers.multiqueue2010.predicates import (
    OFFLOAD_CPUS,
    all_in_one_queue,
    cache_misses,
    handed_over,
    idle_core,
    latencies,
    one_core_limits,
    throughputs,
)

# What is left to the other distances is said by the placement.
OTHER_DISTANCES = "SP and OP do not decide the claim"
OF_TWO = (
    '"in turn" means a node\'s two cores on real processes, with one of two events handed over, '
    "and eight cores in the paper and on simulated hosts, with seven of eight"
)
AT_ONCE = (
    "both nodes' handlers work at once, and with interrupts in turn they meet on one CPU unless "
    "there is one for each core and one for the NICs"
)

# On real processes the costs of a binding are those of this machine's caches.
_claim = partial(Claim, host="myri10g-2009", own_costs=True)

CLAIMS: tuple[Claim, ...] = (
    _claim(
        id="MQ-1",
        kind="order",
        source="4.2 and table I",
        setup="Ping-pong of an empty message: half round trip with interrupts to all cores in "
        "turn, to one core at four distances from the process, and with a queue per endpoint on "
        "its process's core.",
        paper="interrupts in turn 11.4 µs, slower than any other; to one core 10.96 (SC), 9.34 "
        "(S$), 10.32 (SP), 10.25 (OP): best where a cache is shared; multiqueue 10.10, "
        "between",
        statistics=latencies(),
        note=f"{OTHER_DISTANCES}: two CPUs cannot show them; {OF_TWO}; but for the hand-overs, in "
        "turn over two cores is half SC and half S$",
    ),
    _claim(
        id="MQ-2",
        kind="order",
        source="4.2 and table I",
        setup="Ping-pong of 4 MiB by binding: throughput.",
        paper="in turn 646 MiB/s; one core 719 (SC), 723 (S$), 721 (SP), 714 (OP); multiqueue 707",
        statistics=throughputs(copy_offload=False),
        note=f"{AT_ONCE}; {OTHER_DISTANCES}; {OF_TWO}",
    ),
    _claim(
        id="MQ-3",
        kind="order",
        source="4.2 and table I",
        setup="Ping-pong of 4 MiB by binding, copies offloaded: throughput.",
        paper="in turn 905 MiB/s; one core 1056 (SC), 1059 (S$), 1048 (SP), 1026 (OP); multiqueue "
        "965",
        statistics=throughputs(copy_offload=True),
        cpus=OFFLOAD_CPUS,
        note=f"{AT_ONCE}; the copying agents need CPUs of their own, too; {OTHER_DISTANCES}; "
        f"{OF_TWO}",
    ),
    _claim(
        id="MQ-4",
        kind="ratio",
        source="4.3",
        setup="One communicating process per node, the other cores idle: interrupts to an idle "
        "core against interrupts to the polling core. In addition, for one node: the "
        "delay of a packet to the handler of a sleeping core.",
        paper="11 µs rise to 15 to 20 µs; throughput 20 % less",
        statistics=idle_core(),
        note="two nodes of three cores, one of them idle, need seven CPUs with their NICs",
    ),
    _claim(
        id="MQ-5",
        kind="ratio",
        source="4.4 and table II",
        setup="Ping-pong of 0 B, 128 B, 32 KiB and 1 MiB: cache misses of handlers and of "
        "processes, with interrupts in turn, to another core, and to the process's.",
        paper="cache misses at 0 B: with interrupts in turn 29.8 % in the kernel and 13.8 % in "
        "user mode, to the process's core 11.5 and 0.1 %; 128 B: in turn 26.8 and 17.9 %, "
        "to the process's core 14.2 and 0.5 %; no fewer at 32 KiB",
        statistics=cache_misses(),
        note="needs a CPU that counts cache references and misses, and five CPUs for two nodes of "
        "two cores; counted here is the last level, in the paper an L2 shared by two of eight "
        "cores: where all cores share the last level, data written by another core is a hit; "
        "--beside adds the first level's misses, and the ledger's hand-overs between cores, which "
        "it counts anywhere",
    ),
    _claim(
        id="MQ-6",
        kind="count",
        source="2.1 and 4.2",
        setup="Ping-pong on nodes of 8 cores: state last used by another core than the "
        "handler's, with interrupts in turn and with a queue per endpoint on its "
        "process's core.",
        paper="with interrupts in turn, each packet finds the endpoint's descriptor last used by "
        "another core, and 7 of 8 packets (87.5 %) move to another core for delivery; with "
        "multiqueue neither happens",
        statistics=handed_over(),
    ),
    _claim(
        id="MQ-7",
        kind="ratio",
        source="4.5 and figure 5",
        setup="IMB Alltoall, one rank per core, by binding, relative to native MX.",
        paper="multiqueue 1.3 times better than in turn on average; one core worse with growing "
        "size; with offloaded copies less than 150 % of MX's time, and ahead of MX near 4 kB",
        statistics=alltoall(),
        variant=("idle", "send_cost_ns"),
        note="16 processes and their NICs need a CPU each; on simulated hosts the line limits 4 "
        "KiB, so the claim rests on sleeping idle cores, and on less than 4.1 µs of the sender "
        "per packet; --beside adds the ledger's hand-overs between cores, and packets by core, "
        "counted on any machine",
    ),
    _claim(
        id="MQ-8",
        kind="ratio",
        source="4.6 and table III",
        setup="NAS kernels, 16 ranks on 2 nodes, by binding, and on native MX.",
        paper="multiqueue gains 2.8 % (CG), 2.9 % (MG), 6.8 % (FT); IS is 8.5 times (B) and 2.6 "
        "times (C) faster",
        cpus=nas.CPUS,
        statistics=nas.run_times(),
        note=nas.CLASSES,
    ),
    _claim(
        id="MQ-9",
        kind="ratio",
        source="4.6",
        setup="NAS IS, 16 ranks on 2 nodes: cache misses by binding.",
        paper="about 11 times fewer cache misses with multiqueue",
        statistics=nas.misses(),
        note="needs a CPU that counts cache misses; --beside adds hand-overs between cores, "
        "counted anywhere",
    ),
    _claim(
        id="MQ-10",
        kind="count",
        source="3.1 and 3.2",
        setup="One pair and eight, with a queue per endpoint on nodes of 8 cores; no process "
        "begins on its queue's core.",
        paper="all packets of an endpoint always in one queue on one core, and the process "
        "moved there when it opens the endpoint",
        statistics=all_in_one_queue(),
        note="each process reports its own core; tests/integration/test_process_binding.py checks "
        "its affinity",
    ),
    _claim(
        id="MQ-11",
        kind="order",
        source="4.5",
        setup="Four pairs at once on nodes of four cores: wall time of a round trip of 1 MiB, "
        "all packets handled on one core against a queue for each pair.",
        paper="the one core becomes the limit as messages grow",
        statistics=one_core_limits(),
        note="the paper ran an Alltoall of 16 processes: MQ-7",
    ),
    *claims_in_text.CLAIMS,
)
