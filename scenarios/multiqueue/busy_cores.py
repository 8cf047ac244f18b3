"""MPI's ping-pong between two processes: all other cores wait in a barrier, or they idle.

Paper: Goglin 2010 (multiqueue), 4.3.
What must come out: with a process on each core, 14 of which wait in an MPI barrier, no core
sleeps. With the two alone, interrupts that go to all cores in turn mostly meet one that sleeps:
half a round trip rises from 11 to 15 to 20 us, and the throughput falls by 20 %.

All cores are busy, so that times need a CPU for each of 16, and one for the NICs.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

CORES = 8
# As many round trips of both sizes whoever waits; its table is not for a report of many runs.
ARGUMENTS = "PingPong -msglen /dev/fd/3 -iter 60,24 -iter_policy off"
SCRIPT = (
    "file=$(mktemp) && echo {size_bytes} > $file && exec 3< $file && rm $file &&"
    ' exec "$@" > /dev/null'
)
EMPTY, LARGE = {"size_bytes": 0}, {"size_bytes": 4 << 20}
ALONE, BARRIER = {"ranks": 2}, {"ranks": 2 * CORES}


def longer(text: str, size: dict) -> Ratio:
    """The same round trips take longer where the other cores idle."""
    return Ratio(
        text=text,
        metric="run_time",
        of={**ALONE, **size},
        to=BARRIER,
        at_least=1.01,
        cpus=2 * CORES + 1,
    )


scenario = Scenario(
    name="multiqueue/busy_cores",
    title="The other cores are idle, or their processes wait in a barrier: do these cores sleep?",
    source="Goglin 2010, section 4.3",
    shows="IMB's PingPong, an MPI program, between the first processes of two nodes of eight cores."
    " Its other processes, one for each further core, wait in MPI_Barrier; or there are no others,"
    " and seven cores of each node are idle. Interrupts, one for each packet, go to all cores in"
    " turn. Times are those of the same number of round trips, without start and warm-up. Event"
    " ring and frames are Open-MX 0.9.2's, as the paper's.",
    parameters={
        "workload": "mpi",
        "program": "shrimpmx.applications.imb",
        "arguments": ARGUMENTS,
        "script": SCRIPT,
        "cores": CORES,
        "map_by": "node",
        "coalescing": "disabled",
        "irq_binding": "round-robin",
        "wait": "spin",
        # Open-MX 0.9.2: its frames, and its event ring, whose slots both sides write.
        "mtu": 9000,
        "wire_format": "compatible",
        "event_ring": "reset",
        "deadline_s": 300,
    },
    sweep={"size_bytes": (0, 4 << 20), "ranks": (2, 2 * CORES)},
    compare="ranks",
    rows="size_bytes",
    columns="ranks",
    repeats=3,
    metrics=("run_time", "run_interrupts"),
    expectations=(
        longer("an empty message takes longer where cores idle (paper: 1.36 to 1.82)", EMPTY),
        longer("and so does one of 4 MiB (paper: 1.25)", LARGE),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
