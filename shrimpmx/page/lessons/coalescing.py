"""When should the NIC interrupt?"""

from shrimpmx.page.lessons.lesson import Lesson, Question, Rule, Slider

COALESCING = Lesson(
    name="coalescing",
    title="When should the NIC interrupt?",
    scenario="smoke/pingpong",
    settings={"iterations": 6, "warmup": 1},
    text=(
        "A packet reaches host memory without the CPU's help. To tell the host, the NIC raises an "
        "interrupt, which takes a core from its work for some microseconds. So NICs coalesce: they "
        "let packets wait, and report several by one interrupt. A rule decides when.",
        "Disabled interrupts for each packet. Timeout starts a timer at the first packet, and "
        "interrupts when it runs out. Open-MX interrupts at once for a packet that its sender has "
        "marked, the last one of a message; its timer covers the others.",
    ),
    tries=(
        "Ping-pong of 0 B, timer 75 µs: follow one message under both rules. Where does it wait?",
        "Stream of 0 B, timer 75 µs: now many packets share a timer, and no rank waits for one.",
        "32 KiB: count the interrupts of one message under disabled and under Open-MX.",
    ),
    sliders=(
        Slider("workload", "Traffic", ("pingpong", "stream"), ("ping-pong", "stream")),
        Slider("size_bytes", "Message", (0, 4096, 32768), ("0 B", "4 KiB", "32 KiB")),
        Slider("rx_usecs", "Timer (rx-usecs)", (10, 30, 75), ("10 µs", "30 µs", "75 µs"), 2),
        Slider("interrupt_time_ns", "Interrupt", (1000, 4000), ("1 µs", "4 µs"), 1),
        Slider("idle_exit_ns", "Wake-up of a core", (0, 6500), ("none", "6.5 µs"), 1),
    ),
    rules=(
        Rule("disabled", {"coalescing": "disabled"}, frozenset({"rx_usecs"})),
        Rule("timeout", {"coalescing": "timeout"}),
        Rule("Open-MX", {"coalescing": "open-mx"}),
    ),
    first=(1, 2),
    metrics=("half_round_trip", "interrupts_per_message", "host_cpu_per_message"),
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
            "Why does the same timer hardly delay a stream?",
            (
                "While packets wait others arrive, and one interrupt reports them all.",
                "A stream's packets are shorter.",
                "The NIC stops its timer for streams.",
            ),
            0,
            "Nobody waits for a single packet of a stream: they arrive at the same pace, some "
            "microseconds later.",
        ),
        Question(
            "What does disabled cost with messages of 32 KiB?",
            (
                "Nothing: it is always the best rule.",
                "It delays the last packet.",
                "An interrupt for nearly each of 23 packets, each with its time on a core.",
            ),
            2,
            "A packet comes without an interrupt of its own only while the handler still works.",
        ),
        Question(
            "How does Open-MX know that a rank waits for a packet?",
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
