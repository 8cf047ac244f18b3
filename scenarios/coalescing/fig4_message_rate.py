"""A one-way stream of 128 B messages: what do interrupts, sleeping cores and scattering cost?

Paper: Goglin and Furmento 2009 (coalescing), IV-B1 and figure 4.
What must come out: an interrupt per packet costs more than half of the rate (433 k messages per
second with 75 us); cores that are kept from sleeping are faster, since a sleeping one must wake
up first; so are interrupts that are bound to one core, since what the handler touches stays in
its cache.

The first is asked of the emulated platform. There an interrupt takes a fixed time until its
handler runs, and all times are dilated: what it costs to wake a core, or to move a cache line
from one core to another, cannot be seen. So sleeping and scattering are measured without a
platform, with the costs of this machine; and sleeping where interrupts go to both cores in turn:
the second core has no rank, and sleeps whenever no handler runs.

One node receives, the generator sends as fast as the paper's hosts did, or as fast as this
machine can. Scattering needs a node of two cores, each with a CPU of its own.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

DISABLED, TIMEOUT = {"coalescing": "disabled"}, {"coalescing": "timeout"}
PLATFORM, OWN = {"platform": "myri10g-2009"}, {"platform": "none"}
SCATTERED = {"irq_binding": "round-robin"}

scenario = Scenario(
    name="coalescing/fig4_message_rate",
    title="Message rate: what do interrupts, sleeping cores and scattering cost a stream?",
    source="Goglin and Furmento 2009, section IV-B1 and figure 4",
    shows="A generator streams messages of 128 B to one rank, which blocks while it waits. Each "
    "column is a rule by which the NIC interrupts: for each packet, or when its timer of "
    "rx_usecs runs out. Idle cores may sleep, or are kept awake. Interrupts go to"
    " the node's two cores in turn (round-robin), or all to core 0; the rank is on core 0. On"
    " a platform an interrupt takes a fixed time, whatever its core did before: what sleeping"
    " and scattering cost is seen without one, with this machine's own costs.",
    parameters={
        "workload": "stream",
        "mode": "generator",
        "size_bytes": 128,
        "iterations": 30_000,
        "warmup": 3_000,
        "wait": "block",
    },
    sweep={
        "platform": ("myri10g-2009", "none"),
        "coalescing": ("disabled", "timeout"),
        "idle": ("sleep", "awake"),
        "irq_binding": ("0", "round-robin"),
    },
    without=({**PLATFORM, "idle": "awake"}, {**PLATFORM, **SCATTERED}),
    adjusted=((SCATTERED, {"cores": 2}), (OWN, {"iterations": 400_000, "warmup": 20_000})),
    compare="coalescing",
    rows="idle",
    columns="coalescing",
    repeats=5,
    metrics=("message_rate", "interrupts_per_message", "host_cpu_per_message"),
    expectations=(
        Ratio(
            text="an interrupt per packet costs message rate (paper: more than half)",
            metric="message_rate",
            of={**PLATFORM, **DISABLED},
            to=TIMEOUT,
            at_most=0.95,
        ),
        Ratio(
            text="cores that are kept awake are faster",
            metric="message_rate",
            of={**OWN, **DISABLED, **SCATTERED, "idle": "awake"},
            to={"idle": "sleep"},
            at_least=1.01,
        ),
        Ratio(
            text="interrupts on one core are faster than scattered ones",
            metric="message_rate",
            of={**OWN, **DISABLED, "idle": "sleep", "irq_binding": "0"},
            to=SCATTERED,
            at_least=1.01,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
