"""Which core should take a packet?"""

from shrimpmx.page.lessons.lesson import Lesson, Question, Rule, Slider

QUEUES = Lesson(
    name="queues",
    title="Which core should take a packet?",
    scenario="smoke/pingpong",
    settings={
        "coalescing": "disabled",
        "time_dilation": 1,
        "cost_jitter": 1,
        "wake_jitter": 1,
        "cores": 4,
        "wait": "block",
        "iterations": 5,
        "warmup": 1,
    },
    text=(
        "An interrupt goes to a core, and its handler runs there before anything else. NICs of "
        "today have several queues, each with a ring, an interrupt and so a core of its own, and "
        "steer each packet to the queue of its receiver.",
        "`in turn` gives each interrupt to the next core, wherever the receiver is. `one core` "
        "sends them all to core 0. `bound` gives each queue a core, and moves each process to the "
        "core of its queue, where the packet's data are in the cache. In each pair of ranks a "
        "message goes back and forth.",
    ),
    tries=(
        "Four pairs, 4 KiB, `bound`: with one queue all processes and all interrupts share one "
        "core. Raise the number of queues, and watch the half round trip. Under `one core` more "
        "queues do not help: that core serves them all.",
        "One pair: more queues change nothing, since a rank's packets take one queue.",
        "One pair, 0 B, `in turn` against `one core`: in turn the handler's core wakes up, and "
        "then the rank's; with one core they are the same. Set the wake-up to none: about 1 µs "
        "remains, since the packet's state comes from another core's cache. Compare the length of "
        "a poll. With 4 KiB and no wake-up `in turn` is ahead, since handler and rank then work "
        "side by side.",
        "`bound`, four queues: handler and rank share a core. Which of them has it when?",
    ),
    sliders=(
        Slider("rx_queues", "Queues", (1, 2, 4), ("1", "2", "4"), 2),
        Slider("pairs", "Pairs of ranks", (1, 2, 4), ("1", "2", "4"), 2),
        Slider("size_bytes", "Message", (0, 4096), ("0 B", "4 KiB")),
        Slider("idle_exit_ns", "Wake-up of a core", (0, 6500), ("none", "6.5 µs"), 1),
    ),
    rules=(
        Rule("in turn", {"irq_binding": "round-robin", "process_binding": "none"}),
        Rule("one core", {"irq_binding": "0", "process_binding": "none"}),
        Rule("bound", {"irq_binding": "per-queue", "process_binding": "auto"}),
    ),
    first=(1, 2),
    metrics=("half_round_trip", "interrupts_per_message", "host_cpu_per_message"),
    questions=(
        Question(
            "What does a second queue add?",
            (
                "a faster wire",
                "a ring and an interrupt that another core can serve at the same time",
                "a longer timer",
            ),
            1,
            "With one queue a single handler takes all packets, one after the other.",
        ),
        Question(
            "Why does a queue more help little with one pair of ranks?",
            (
                "A rank's packets all go to one queue.",
                "The NIC ignores it.",
                "The second queue is slower.",
            ),
            0,
            "Packets to one receiver stay in one queue, so that they stay in order.",
        ),
        Question(
            "What does a handler do to a rank that computes on its core?",
            ("nothing", "it waits for the rank", "it takes the core from it until it is done"),
            2,
            "Interrupts have priority over programs.",
        ),
        Question(
            "What does `bound` save when it moves a process to the core of its queue?",
            (
                "The packet's state need not travel from one core's cache to another's.",
                "The interrupt itself.",
                "The DMA into host memory.",
            ),
            0,
            "Handler and receiver then share that core's cache, at the price of its time.",
        ),
        Question(
            "Why do interrupts in turn often find a sleeping core?",
            (
                "They stop all cores.",
                "They go to cores that have nothing else to do, which sleep meanwhile.",
                "The NIC puts cores to sleep.",
            ),
            1,
            "That core has to wake up before its handler runs, and the rank's core after it.",
        ),
    ),
)
