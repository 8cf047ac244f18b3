"""The NAS Parallel Benchmarks on 16 ranks of 2 nodes under each way to coalesce interrupts.

Paper: Goglin and Furmento 2009 (coalescing), IV-D and table IV; adaptive coalescing: VI.
What must come out, in seconds of class C (FT: B) with the timeout, without coalescing, with Open-MX
and with Stream: BT 271.2, 272.8, 273.3, 272.6; CG 90.04, 91.50, 90.76, 90.70; EP 31.30, 31.45,
31.49, 31.36; FT 24.24, 24.86, 24.21, 24.20; IS 32.75, 37.03, 30.51, 31.96; LU 203.8, 202.4, 203.2,
206.6; MG 43.91, 43.63, 43.75, 43.72; SP 549.1, 551.1, 546.8, 546.1.
"""

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario

KERNELS = ("bt W", "cg A", "ep A", "ft A", "is A", "lu W", "mg A", "sp W")
# A CPU for each of 16 ranks and for the NIC of each node.
CPUS = 18
IS = {"arguments": "is A"}

scenario = Scenario(
    name="coalescing/table4_nas",
    title="NAS: does an application run faster without coalescing?",
    source="Goglin and Furmento 2009, section IV-D and table IV",
    shows="The time is that of NPB's timed part, of the slowest rank. It counts where each rank and"
    " each NIC has a CPU of its own; interrupts can be counted anywhere. Classes are smaller than "
    "the paper's, since these ranks compute in numpy.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "mpi",
        "program": "shrimpmx.applications.nas",
        "ranks": 16,
        "cores": 8,
        "wait": "sched",
        # The link loses nothing: see table5_interrupts.
        "resend_delay_ns": 60_000_000_000,
        "pull_resend_delay_ns": 60_000_000_000,
        "deadline_s": 3600,
    },
    sweep={
        "arguments": KERNELS,
        "coalescing": (*PAPER_COALESCING_NAMES, "adaptive"),
    },
    compare="coalescing",
    rows="arguments",
    columns="coalescing",
    repeats=3,
    metrics=("run_time", "run_interrupts"),
    expectations=(
        Ratio(
            text="disabling coalescing makes IS slower (paper: by 13 % and 5 %)",
            metric="run_time",
            of={**IS, "coalescing": "disabled"},
            to={"coalescing": "timeout"},
            at_least=1.01,
            cpus=CPUS,
        ),
        Ratio(
            text="Open-MX makes IS faster (paper: by 7 and 8 %)",
            metric="run_time",
            of={**IS, "coalescing": "open-mx"},
            to={"coalescing": "timeout"},
            at_most=0.99,
            cpus=CPUS,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
