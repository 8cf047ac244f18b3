"""A stream of 128 B messages to a host of eight cores: what do sleeping cores and scattering cost?

Paper: Goglin and Furmento 2009 (coalescing), IV-B1 and figure 4.
What must come out: cores that are kept from sleeping give a higher message rate, and so do
interrupts that are bound to one core.

Made for simulated hosts, whose cores are those of the platform. On real ones the nodes need eight
CPUs each, and an interrupt takes the same time whichever core it goes to.
"""

from shrimpmx.study.scenario import Ratio, Scenario

DISABLED = {"coalescing": "disabled"}
SCATTERED, ASLEEP = {"irq_binding": "round-robin"}, {"idle": "sleep"}

scenario = Scenario(
    name="coalescing/scattered_cores",
    title="Message rate on eight cores: what do sleeping and scattering cost a stream?",
    source="Goglin and Furmento 2009, section IV-B1 and figure 4",
    shows="A generator streams messages of 128 B to one rank on core 0, which blocks while it "
    "waits. Interrupts go to all eight cores in turn, or to core 0; idle cores may sleep, or are "
    "kept awake. Hosts are those of the platform.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "stream",
        "mode": "generator",
        "cores": 8,
        "size_bytes": 128,
        "iterations": 8_000,
        "warmup": 800,
        "wait": "block",
    },
    sweep={
        "coalescing": ("disabled", "timeout"),
        "idle": ("sleep", "awake"),
        "irq_binding": ("0", "round-robin"),
    },
    compare="idle",
    rows="irq_binding",
    columns="idle",
    repeats=3,
    metrics=("message_rate", "interrupts_per_message", "host_cpu_per_message"),
    expectations=(
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
