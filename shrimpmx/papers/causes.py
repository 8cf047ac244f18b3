"""Why claims do not hold: a sentence for each cause that an experiment has shown, with its command.
Claims without one are unexplained.
"""

from __future__ import annotations

from typing import NamedTuple

_BOTH, _REAL, _SIMULATED = "", "forked", "simulated"
_RATE = "run coalescing/table1_message_rate"
_TABLE_II = "run coalescing/table2_anatomy"
_PAIRS = "run waiting/fig3_multiprogramming --set platform=shrimp-1996 --set pairs=5"
_ONCE = "--engine simulated --set repeats=1"


class Cause(NamedTuple):
    """Why claims do not hold on an engine ('': on both), and the words after `shrimpmx` by which
    the effect comes or goes.
    """

    claims: tuple[str, ...]
    engine: str
    why: str
    command: str


CAUSES = (
    Cause(
        ("IC-1", "IC-9", "IC-13"),
        _BOTH,
        "packets that arrive together share an interrupt, so more expensive interrupts are fewer",
        f"{_RATE} --set size_bytes=0 --set coalescing=disabled,timeout --set time_dilation=12 "
        "--set interrupt_time_ns=24000,48000,96000",
    ),
    Cause(
        ("IC-2", "IC-24"),
        _SIMULATED,
        "the sender limits the rate, and cores kept awake take more interrupts",
        f"{_RATE} --engine simulated --set size_bytes=0 --set idle=sleep,awake",
    ),
    Cause(
        ("IC-3",),
        _SIMULATED,
        "interrupts bound to the rank's core take time from the rank",
        "run coalescing/scattered_cores --engine simulated --set coalescing=disabled "
        "--set rx_usecs=75 --set rank_core=0,1",
    ),
    Cause(
        ("IC-4",),
        _REAL,
        "many dropped packets share one interrupt, which costs as much as 25 packets",
        "run coalescing/interrupt_overhead --set platform=none --set irq_binding=0 "
        "--set tx_gap_ns=20000 --set packet_cost_ns=0,1000,4000",
    ),
    Cause(
        ("IC-4",),
        _SIMULATED,
        "where cores sleep, ten packets share an interrupt of only 0.6 µs",
        "run coalescing/interrupt_overhead --engine simulated --set platform=myri10g-2009 "
        "--set idle=awake --set irq_binding=0",
    ),
    Cause(
        ("IC-7", "IC-11"),
        _BOTH,
        "a polling handler limits no large message, while its rendezvous waits for the timer",
        "run coalescing/fig5_pingpong --set size_bytes=1048576 "
        "--set coalescing=disabled,timeout --set rx_usecs=75,10",
    ),
    Cause(
        ("IC-7", "IC-10", "IC-11"),
        _SIMULATED,
        "coalescing gains only on completed sends; the gain grows with the share of interrupts on "
        "the process's core",
        f"{_RATE} {_ONCE} --set size_bytes=32768,1048576 --set coalescing=disabled,timeout "
        "--set irq_binding=round-robin --set idle=awake --set cores=1,2,4,8",
    ),
    Cause(
        ("IC-8", "IC-30"),
        _REAL,
        "coalescing makes no large message faster, and its last packets wait for their mark",
        "run coalescing/fig5_pingpong --set size_bytes=1048576 --set coalescing=disabled,open-mx "
        "--set time_dilation=12,24,48",
    ),
    Cause(
        ("IC-10",),
        _REAL,
        "the handler runs before the rank, whose event ring overflows, and resends take half a "
        "second",
        f"{_RATE} --set size_bytes=32768 --set coalescing=disabled,timeout "
        "--set event_ring_entries=1024,65536",
    ),
    Cause(
        ("IC-12", "IC-18", "IC-29"),
        _SIMULATED,
        "packets leave their sender evenly, so within the latency of DMA another one is always on "
        "its way, or never",
        f"{_RATE} --engine simulated --set size_bytes=0 --set coalescing=open-mx,stream "
        "--set dma_latency_ns=1000,3000",
    ),
    Cause(
        ("IC-15",),
        _SIMULATED,
        "the first packet starts the timer; free-running timers bring half of the delay",
        "reproduce IC-15 --engine simulated --set rx_timer=free-running",
    ),
    Cause(
        ("IC-15", "IC-16"),
        _REAL,
        "the first packet starts the timer, so an unmarked one waits for the whole delay",
        f"{_TABLE_II} --set rx_usecs=75,10 --set rx_timer=first-packet,free-running",
    ),
    Cause(
        ("IC-17",),
        _BOTH,
        "the early interrupt finds twenty packets, and the late ones arrive while the handler is "
        "busy with them",
        "run coalescing/table3_misordering --set overtake=0 --set mark_early=0,1 "
        "--set time_dilation=24 --set interrupt_time_ns=24000 --set packet_cost_ns=1000",
    ),
    Cause(
        ("IC-18",),
        _REAL,
        "gaps between packets are drawn independently, where the paper's packets came in bursts",
        "run coalescing/table3_misordering --set coalescing=stream --set tx_gap_jitter=1",
    ),
    Cause(
        ("IC-20",),
        _BOTH,
        "a long interrupt is shared by all packets that arrive during it",
        "run coalescing/table5_interrupts --set coalescing=disabled,timeout "
        "--set time_dilation=96 --set interrupt_time_ns=384000,12000",
    ),
    Cause(
        ("IC-21",),
        _REAL,
        "one core handles all packets, and an interrupt of 4 µs per four messages keeps it busy",
        "run coalescing/other_protocol --set tx_gap_ns=1970 --set coalescing=timeout,open-mx "
        "--set time_dilation=12 --set interrupt_time_ns=48000,12000",
    ),
    Cause(
        ("IC-26",),
        _BOTH,
        "interrupts for single packets let the host work while the others arrive",
        "run coalescing/fig6_openmx_pingpong --engine simulated --set repeats=1 "
        "--set size_bytes=16384 --set coalescing=disabled,open-mx --set idle_exit_ns=6500,0 "
        "--set packet_cost_ns=0 --set event_cost_ns=0 --set copy_bytes_per_second=0",
    ),
    Cause(
        ("IC-27",),
        _BOTH,
        "frames of 9000 bytes take longer, while the delay stays the same",
        "run coalescing/mtu --set mtu=9000 --set size_bytes=1434880 "
        "--set coalescing=disabled,timeout --set rx_usecs=75,214",
    ),
    Cause(
        ("IC-28",),
        _BOTH,
        "a message of 32 KiB arrives within one delay, and Open-MX has the timer next to its marks",
        f"run coalescing/fragment_bounces {_ONCE} --set coalescing=timeout,open-mx "
        "--set rx_usecs=15,75,1000",
    ),
    Cause(
        ("MQ-1",),
        _BOTH,
        "hand-overs of an empty message cost less than in the paper",
        f"run multiqueue/table1_binding {_ONCE} --set platform=myri10g-2009 "
        "--set handover_ns=490,1500",
    ),
    Cause(
        ("MQ-2", "MQ-3"),
        _SIMULATED,
        "a saturated handler keeps polling its ring, so few packets change cores",
        f"run multiqueue/table1_throughput {_ONCE} --set platform=myri10g-2009 "
        "--set copy_offload=false --set irq_binding=0,round-robin --set distance=SC,any "
        "--set packet_cost_ns=450,3700",
    ),
    Cause(
        ("MQ-4", "MQ-15"),
        _SIMULATED,
        "four blocks under way hide the wake-up time of a sleeping core",
        f"run multiqueue/idle_cores {_ONCE} --set platform=myri10g-2009 "
        "--set size_bytes=4194304 --set idle=sleep --set distance=any "
        "--set idle_exit_ns=6500,50000,200000",
    ),
    Cause(
        ("MQ-7",),
        _SIMULATED,
        "the NIC takes a packet of native MX in 0.2 µs; at 2 µs Open-MX is ahead with 4 KiB",
        f"run multiqueue/fig5_alltoall {_ONCE} --set platform=myri10g-2009 "
        "--set size_bytes=4096 --set copy_offload=false --set irq_binding=per-queue,auto "
        "--set firmware_ns=208,2000",
    ),
    Cause(
        ("MQ-13",),
        _SIMULATED,
        "the emulated NIC's processor chooses a queue in no time",
        f"run multiqueue/table1_throughput {_ONCE} --set platform=myri10g-2009 "
        "--set copy_offload=true,false --set irq_binding=0,per-queue --set distance=SC "
        "--set dma_bytes_per_second=0,1025000000",
    ),
    Cause(
        ("MQ-14",),
        _SIMULATED,
        "its hosts are those of IC-6, which take 10 µs in the paper of 2009",
        f"run multiqueue/table1_binding {_ONCE} --set platform=myri10g-2009 "
        "--set irq_binding=per-queue --set distance=SC --set event_cost_ns=0,1000 "
        "--set dma_latency_ns=500,2700 --set send_cost_ns=1000,2040",
    ),
    Cause(
        ("WC-1", "WC-11"),
        _BOTH,
        "the cost of a reschedule, and the receiver of a yielded CPU, decide how often ranks yield",
        f"{_PAIRS} {_ONCE} --set wait=sched,block --set sched_yield=last,expire,once "
        "--set reschedule_cost_ns=15000,1000",
    ),
    Cause(
        ("WC-3",),
        _BOTH,
        "a yield of 15 µs is cheap next to a sleep of T_block, and spins in vain are dearer",
        f"{_PAIRS} {_ONCE} --set wait=sched,block --set sched_yield=once "
        "--set reschedule_cost_ns=130000 --set interrupt_time_ns=40000",
    ),
    Cause(
        ("WC-2", "WC-8", "WC-10"),
        _BOTH,
        "a partner that has slept answers one interrupt later, beyond the spin limit",
        "run waiting/fig2_message_delay --set platform=shrimp-1996 --set wait=spin-block "
        "--set delay_us=100,200 --set interrupt_time_ns=270000,50000",
    ),
    Cause(
        ("WC-5",),
        _SIMULATED,
        "a wait ends at its first look after the limit",
        "reproduce WC-5 --engine simulated --set poll_ns=300",
    ),
    Cause(
        ("WC-7", "WC-12", "WC-13"),
        _BOTH,
        "nearly all of T_block is interrupt time, which no rank is charged, and a waking task "
        "preempts its company",
        "reproduce WC-7 WC-12 WC-13 --engine simulated --set reschedule_cost_ns=149000 "
        "--set interrupt_time_ns=2000",
    ),
    Cause(
        ("WC-3", "WC-11", "WC-13"),
        _SIMULATED,
        "nine tenths of T_block lie behind the sleep, where a message that has come cannot end it; "
        "the paper does not give its shares",
        f"{_PAIRS} {_ONCE} --set wait=block,spin-block --set interrupt_time_ns=270000,150000 "
        "--set enable_cost_ns=0,120000",
    ),
    Cause(
        ("WC-11",),
        _REAL,
        "the kernel accounts user and system time by ticks, few of which meet a rank",
        "run waiting/fig3_multiprogramming --set platform=none --set pairs=5 "
        "--set wait=spin-block,block --set iterations=2400 --set deadline_s=200",
    ),
)


def causes_of(claim: str, engine: str) -> tuple[Cause, ...]:
    """Why a claim does not hold on an engine; empty if that is unknown."""
    return tuple(each for each in CAUSES if claim in each.claims and each.engine in ("", engine))
