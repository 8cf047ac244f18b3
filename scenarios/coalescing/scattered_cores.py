"""A stream of 128 B messages to a host of eight cores, by the coalescing delay, as four curves.

Paper: Goglin and Furmento 2009 (coalescing), IV-B1 and figure 4.
What must come out: interrupts to all cores, which may sleep, allow 433 k messages per second with
75 us and less than half of that without coalescing. Cores that are kept from sleeping give a higher
rate, and so do interrupts that are bound to one core: both the more, the more interrupts there are.
The paper does not say whether that core is the process's; without coalescing both are run.

Made for simulated hosts, whose cores are those of the platform. On real ones the nodes need eight
CPUs each, and an interrupt takes the same time whichever core it goes to.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

DISABLED, TIMEOUT = {"coalescing": "disabled"}, {"coalescing": "timeout"}
# The paper's is the last; without coalescing there is none.
DELAYS_US = (5, 15, 35, 75)
SCATTERED, ASLEEP = {"irq_binding": "round-robin"}, {"idle": "sleep"}
BESIDE = {"irq_binding": "1"}

scenario = Scenario(
    name="coalescing/scattered_cores",
    title="Message rate on eight cores: the cost of sleeping and scattering, by coalescing delay",
    source="Goglin and Furmento 2009, section IV-B1 and figure 4",
    shows="A rank streams messages of 128 B to another one on core 0, which blocks while it "
    "waits. Interrupts go to all eight cores in turn, to core 0 or to core 1; idle cores may "
    "sleep, or are kept awake. The NIC interrupts for each packet, or rx_usecs after the first "
    "one that is not reported. Hosts are those of the platform.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "stream",
        "cores": 8,
        "size_bytes": 128,
        "iterations": 8_000,
        "warmup": 800,
        "wait": "block",
    },
    sweep={
        "coalescing": ("disabled", "timeout"),
        "rx_usecs": DELAYS_US,
        "idle": ("sleep", "awake"),
        "irq_binding": ("0", "1", "round-robin"),
    },
    without=(
        # Without coalescing nothing waits for that.
        {**DISABLED, "rx_usecs": DELAYS_US[:-1]},
        {**BESIDE, **TIMEOUT},
        {**BESIDE, "idle": "awake"},
    ),
    compare="idle",
    rows="rx_usecs",
    columns="idle",
    repeats=3,
    metrics=("message_rate", "interrupts_per_message", "host_cpu_per_message"),
    expectations=(
        Ratio(
            text="an interrupt per packet costs message rate (paper: more than half)",
            metric="message_rate",
            of={**DISABLED, **SCATTERED, **ASLEEP, "rx_usecs": 75},
            to=TIMEOUT,
            at_most=0.95,
        ),
        Ratio(
            text="cores that are kept awake are faster",
            metric="message_rate",
            of={**DISABLED, **SCATTERED, "idle": "awake"},
            to=ASLEEP,
            at_least=1.01,
        ),
        Ratio(
            text="interrupts on one core are faster than scattered ones",
            metric="message_rate",
            of={**DISABLED, **ASLEEP, "irq_binding": "0"},
            to=SCATTERED,
            at_least=1.01,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
