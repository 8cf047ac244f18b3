"""How should a rank wait?"""

from shrimpmx.page.lessons.lesson import Lesson, Question, Rule, Slider

WAITING = Lesson(
    name="waiting",
    title="How should a rank wait for its message?",
    scenario="smoke/waiting",
    settings={
        "platform": "myri10g-2009",
        "workload": "stream",
        "coalescing": "disabled",
        "irq_binding": "0",
        "size_bytes": 0,
        "iterations": 40,
        "warmup": 6,
        "delay_us": 0,
        # A figure is to follow from the sliders alone.
        "cost_jitter": 1,
        "wake_jitter": 1,
    },
    text=(
        "A rank that waits may spin: it looks again and again, notices its message at once, and "
        "keeps its CPU busy all the time. Or it may block: it gives the CPU away, and the handler "
        "has to wake it, which takes a system call, a context switch and often the wake-up of a "
        "sleeping core.",
        "Here rank0 hands messages to its NIC, which sends one each gap, and rank1 waits for each. "
        "A wait costs CPU time, and delay of the message; the cost below is their sum. Spinning "
        "costs CPU time for as long as the message stays away. A sleep costs the same however long "
        "it lasts: about 1 µs of CPU time, and a delay by the wake-up of the core. Say that is "
        "5 µs in all.",
        "Hindsight chooses the cheaper one: to spin for a message that comes within 5 µs, and to "
        "sleep at once for a later one. `spin-block` does not know the future. It spins up to a "
        "limit, and then sleeps. Let the limit be the cost of a sleep, 5 µs. A message after 3 µs "
        "costs 3 µs, as under `spin`, the better choice. A message after 6 µs, or after a second, "
        "costs the limit and a sleep, 10 µs: twice the sleep, which was the better choice. No "
        "message costs more. A limit of 20 µs can pay 25 µs where a sleep had cost 5 µs; a limit "
        "of 1 µs pays 6 µs for a message after 1.1 µs, where spinning had cost 1.1 µs.",
    ),
    tries=(
        "Gap 30 µs, wake-up 6.5 µs, limit 5.1 µs, what such a sleep costs: `spin` pays nearly the "
        "gap, `block` a sleep. `spin-block` spins in vain up to the limit, and then sleeps: nearly "
        "twice `block`. The limit counts time, and handlers take some of it from the spinning.",
        "Gap 30 µs, wake-up 100 µs, limit 98.6 µs, what such a sleep costs: the message comes "
        "before a sleep has paid off. Now `spin` is better than `block`, though one sleep serves "
        "several messages, and `spin-block` pays what `spin` pays.",
        "The same with a gap of 300 µs: `spin-block` pays a limit and a sleep, nearly twice "
        "`block`.",
        "Set a limit other than the cost of a sleep, and look for the largest number of times in "
        "the last row of the table.",
    ),
    sliders=(
        Slider(
            *("tx_gap_ns", "Gap between messages", (30_000, 300_000, 1_000_000)),
            ("30 µs", "300 µs", "1 ms"),
        ),
        # The outer ones are what a sleep costs with either wake-up.
        Slider("spin_ns", "Spin limit", (5100, 30_000, 98_600), ("5.1 µs", "30 µs", "98.6 µs")),
        Slider("idle_exit_ns", "Wake-up of a core", (6500, 100_000), ("6.5 µs", "100 µs")),
    ),
    rules=(
        Rule("spin", {"wait": "spin"}, frozenset({"spin_ns"})),
        Rule("block", {"wait": "block"}, frozenset({"spin_ns"})),
        Rule("spin-block", {"wait": "spin-block"}),
    ),
    first=(1, 2),
    pure=(0, 1),
    metrics=(),
    questions=(
        Question(
            "What does a spinning rank spend while it waits?",
            ("CPU time, all of it", "nothing", "a system call per message"),
            0,
            "It makes no system call, but its core does nothing else.",
        ),
        Question(
            "What lies between the handler's work and a blocked rank's next step?",
            (
                "the coalescing timer",
                "another interrupt",
                "the waking system call, the wake-up of its core and a context switch",
            ),
            2,
            "These make blocking slower for each message, however long the wait was.",
        ),
        Question(
            "With a limit of what a sleep costs, how much more than the best can `spin-block` pay "
            "for a wait, spinning and sleep counted together?",
            ("at most twice", "ten times", "without bound"),
            0,
            "In the worst case it has just spun for the limit when it goes to sleep: it pays the "
            "price of a sleep twice, where the best would have paid it once.",
        ),
        Question(
            "Messages come 1 ms apart, and a core wakes up in 6.5 µs. Which rule fits?",
            ("`spin`", "`block`, or `spin-block` with a short limit", "any: they are alike"),
            1,
            "Spinning would take the CPU for a millisecond per message, to save a few µs of delay.",
        ),
        Question(
            "Why is no limit right for all gaps?",
            (
                "The right one depends on how long messages stay away.",
                "The NIC changes it.",
                "It has to be zero on some cores.",
            ),
            0,
            "Knowing the gap beforehand, a rank would spin through short ones and sleep through "
            "long ones at once.",
        ),
    ),
)
