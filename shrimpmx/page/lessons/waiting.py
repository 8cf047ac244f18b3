"""How should a rank wait?"""

from shrimpmx.page.lessons.lesson import Lesson, Question, Rule, Slider

WAITING = Lesson(
    name="waiting",
    title="How should a rank wait for its message?",
    scenario="smoke/waiting",
    settings={
        "platform": "myri10g-2009",
        "size_bytes": 0,
        "iterations": 20,
        "warmup": 1,
        # A figure is to follow from the sliders alone.
        "cost_jitter": 1,
        "wake_jitter": 1,
    },
    text=(
        "A rank that waits may spin: it looks again and again, notices its message at once, and "
        "keeps its CPU busy all the time. Or it may block: it gives the CPU away, and the handler "
        "has to wake it, which takes a system call, a context switch and often the wake-up of a "
        "sleeping core.",
        "`spin-block` spins for a limit first. Count as the cost of a wait its time of spinning, "
        "and for a sleep its CPU time and the delay of the message. The best would know when the "
        "message comes: it spins if that is soon, and sleeps at once if not. If the limit is what "
        "a sleep costs, `spin-block` never pays more than twice the best: a message within the "
        "limit costs it what spinning costs, as the best; a later one costs the limit and a sleep, "
        "the price of two sleeps, where the best sleeps once.",
        "Here a message goes back and forth between two ranks; each computes for the gap, and then "
        "sends. On these hosts a sleep costs about 9 µs: 3 µs of CPU time, and 6.5 µs of delay by "
        "the wake-up of a core, which a slider changes. A round trip has two sleeps. The last row "
        "of the table is this cost; the CPU time above it also contains the gap, which is "
        "computing.",
    ),
    tries=(
        "Gap none: `spin` spins about 35 µs for each message. With a limit of 100 µs `spin-block` "
        "does the same; with 9 µs it pays 9 µs and a sleep, 18 µs, where `block` pays 9 µs.",
        "Gap 1 ms: `spin` takes 2037 µs of CPU time per message, 1000 for computing and the rest "
        "in vain; `spin-block` takes its limit and 3 µs beside the computing.",
        "Gap 300 µs: move the limit. All that it spins is in vain.",
    ),
    sliders=(
        Slider(
            *("delay_us", "Gap before each send", (0, 20, 100, 300, 1000)),
            ("none", "20 µs", "100 µs", "300 µs", "1 ms"),
            1,
        ),
        Slider("spin_ns", "Spin limit", (3000, 9000, 100000), ("3 µs", "9 µs", "100 µs"), 1),
        Slider(
            "idle_exit_ns", "Wake-up of a core", (0, 6500, 30000), ("none", "6.5 µs", "30 µs"), 1
        ),
        Slider("interrupt_time_ns", "Interrupt", (1000, 4000), ("1 µs", "4 µs"), 1),
    ),
    rules=(
        Rule("spin", {"wait": "spin"}, frozenset({"spin_ns"})),
        Rule("block", {"wait": "block"}, frozenset({"spin_ns"})),
        Rule("spin-block", {"wait": "spin-block"}),
    ),
    first=(0, 1),
    prompt=0,
    metrics=("round_trip", "cpu_per_message", "system_calls_per_wait", "taken_spinning"),
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
            "Messages come 1 ms apart and other programs want the CPU. Which rule fits?",
            ("`spin`", "`block`, or `spin-block` with a short limit", "any: they are alike"),
            1,
            "Spinning would keep the CPU from the others for a millisecond per message.",
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
