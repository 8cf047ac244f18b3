"""When should the NIC interrupt?"""

from shrimpmx.page.lessons.lesson import Lesson, Question, Rule, Slider

COALESCING = Lesson(
    name="coalescing",
    title="When should the NIC interrupt?",
    scenario="smoke/pingpong",
    settings={
        "time_dilation": 1,
        "irq_binding": "0",
        "iterations": 6,
        "warmup": 1,
        "idle_exit_ns": 6500,
    },
    text=(
        "A packet reaches host memory without the CPU's help. To tell the host, the NIC raises an "
        "interrupt, which takes a core from its work for some microseconds. So NICs coalesce: they "
        "let packets wait, and report several by one interrupt. A rule decides when.",
        "`disabled` interrupts for each packet. `timeout` starts a timer at the first packet, and "
        "interrupts when it runs out. `Open-MX` interrupts at once for a packet that its sender "
        "has marked, the last one of a message; its timer covers the others. The NIC reports "
        "packets that it has sent by the same rule: the interrupts below are for sent and "
        "received packets. They go to core 0, where the node's rank runs, too; if the core sleeps, "
        "it wakes up first, in 6.5 µs.",
        "In a ping-pong, a message goes back and forth between two ranks, and each sends only when "
        "it has the other's. In a stream, one rank sends message after message; the other's "
        "library answers with small acknowledgements only. A half round trip is the time of one "
        "message of a ping-pong. The gap is the least time between two packets of a NIC.",
    ),
    tries=(
        "Ping-pong of 0 B, timer 75 µs: follow the second message under both rules (at the "
        "first one rank1 is not there yet). Where does it wait?",
        "Stream of 0 B, timer 75 µs, `disabled` against `timeout`: many packets share a timer. It "
        "delays the report of each, yet the rate is higher, since interrupts take the rank's core: "
        "see the figures of the whole run, whose first part is played.",
        "The same stream under `Open-MX`: each message is one packet, marked, and the interrupts "
        "keep the handler on the rank's core. The rank gets its core late and takes a pile of "
        "messages at once, which have waited long. The rate of so short a run depends on where a "
        "pile ends.",
        "The first stream with a gap of 100 µs: each packet waits alone. The timer delays it (last "
        "row of the table), and saves few interrupts. In a ping-pong such a gap hides a timer of "
        "10 or 30 µs, since the NIC must not send earlier anyway, but not one of 75 µs: a round "
        "trip then takes longer than the gap.",
        "Ping-pong of 32 KiB, timer 75 µs: count the interrupts of one message under `disabled` "
        "and under `Open-MX`. The price of few: under `Open-MX` the handler begins when the last "
        "of 23 packets is there. With a timer of 10 µs it begins earlier, as under `timeout`.",
    ),
    sliders=(
        Slider("workload", "Traffic", ("pingpong", "stream"), ("ping-pong", "stream")),
        Slider("size_bytes", "Message", (0, 4096, 32768), ("0 B", "4 KiB", "32 KiB")),
        Slider("rx_usecs", "Timer (rx-usecs)", (10, 30, 75), ("10 µs", "30 µs", "75 µs"), 2),
        Slider("interrupt_time_ns", "Interrupt", (1000, 4000), ("1 µs", "4 µs"), 1),
        Slider("tx_gap_ns", "Gap between packets", (1970, 100_000), ("1.97 µs", "100 µs")),
    ),
    rules=(
        Rule("disabled", {"coalescing": "disabled"}, frozenset({"rx_usecs"})),
        Rule("timeout", {"coalescing": "timeout"}),
        Rule("Open-MX", {"coalescing": "open-mx"}),
    ),
    first=(1, 2),
    metrics=(
        *("half_round_trip", "message_rate", "interrupts_per_message", "host_cpu_per_message"),
    ),
    metrics_where={
        "half_round_trip": ("workload", "pingpong"),
        "message_rate": ("workload", "stream"),
    },
    adjusted=(
        ({"workload": "stream"}, {"iterations": 1000, "warmup": 20}),
        ({"workload": "stream", "size_bytes": 4096}, {"iterations": 200, "warmup": 4}),
        ({"workload": "stream", "size_bytes": 32768}, {"iterations": 40, "warmup": 1}),
    ),
    questions=(
        Question(
            "Why does a timer of 75 µs delay each message of a ping-pong?",
            (
                "The wire is slower by 75 µs.",
                "No other packet comes, so the message waits in host memory for the whole timer.",
                "The handler works for 75 µs.",
            ),
            1,
            "The other side sends nothing before it has this message: only the timer can end the "
            "wait.",
        ),
        Question(
            "Why does the same timer not lower the rate of a stream?",
            (
                "While packets wait others arrive, and one interrupt reports them all.",
                "A stream's packets are shorter.",
                "The NIC stops its timer for streams.",
            ),
            0,
            "The timer delays the report of each packet, not the next one: the sender goes on "
            "meanwhile.",
        ),
        Question(
            "What does `disabled` cost with messages of 32 KiB in 23 packets?",
            (
                "Nothing: it is always the best rule.",
                "It delays the last packet.",
                "About 25 interrupts a message, each with its time on a core.",
            ),
            2,
            "The sender is told of each of 23 sent packets. The receiver takes far fewer "
            "interrupts: most packets come while its handler still works.",
        ),
        Question(
            "How does `Open-MX` know that a rank waits for a packet?",
            (
                "The sender marks the last packet of a message.",
                "The NIC asks the rank.",
                "It measures the time between packets.",
            ),
            0,
            "The mark travels in the packet; the NIC need know nothing else.",
        ),
        Question(
            "When may a longer timer be right?",
            (
                "When each message is answered before the next is sent.",
                "When packets come in numbers and CPU time counts more than the delay of one.",
                "When there is only one packet per second.",
            ),
            1,
            "Fewer interrupts leave the cores to the programs.",
        ),
    ),
)
