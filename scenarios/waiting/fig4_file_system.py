"""A distributed file service alone, beside processes of a lower priority and beside CPU hogs.

Paper: Damianakis, Chen and Felten 1997 (waiting), figure 4, section 5.2.
What must come out: spin-block is best or equal in all three; alone spin is as good; with company
spin and block lose, since a rank that gives up its CPU or time slice waits for the hog's to end.
"""

from shrimpmx.experiment.scenario import Order, Ratio, Scenario

scenario = Scenario(
    name="waiting/fig4_file_system",
    title="A file service and competing processes, by waiting strategy",
    source="Damianakis, Chen and Felten 1997, figure 4",
    shows="The file service of node 0 reads blocks of 4 KiB that the one of node 1 has in its "
    "cache; every eighth access is a write, which invalidates copies. In each process run four "
    "clients and a server for each client of the other process, as user-level threads over "
    "stream sockets; it waits for all their sockets at once. Beside it runs nothing, a process at "
    "niceness 19 on each CPU, or one at normal priority; raised is the latter with the service at "
    "niceness -20, as in the paper.",
    parameters={
        "nic": "vmmc",
        "workload": "file-service",
        "size_bytes": 4096,
        "threads": 4,
        # On the platform a turn lasts up to 210 ms, and twice as long at niceness -20: several of
        # them. What is compared is of one length.
        "iterations": 6000,
        "warmup": 100,
        "deadline_s": 60,
    },
    sweep={
        "platform": ("none", "shrimp-1996"),
        "company": ("alone", "nice", "raised", "hog"),
        "wait": ("spin", "block", "spin-block"),
    },
    adjusted=(
        # Blocks take a tenth of the time at this machine's own costs.
        ({"platform": "none"}, {"iterations": 8000, "warmup": 500}),
    ),
    compare="wait",
    rows="wait",
    columns="company",
    repeats=4,
    metrics=("block_time", "block_cpu", "block_user", "block_system"),
    expectations=(
        Order(
            text="alone, block is slower than spin and spin-block",
            metric="block_time",
            tiers=(
                ({"platform": "shrimp-1996", "company": "alone", "wait": "block"},),
                (
                    {"platform": "shrimp-1996", "company": "alone", "wait": "spin-block"},
                    {"platform": "shrimp-1996", "company": "alone", "wait": "spin"},
                ),
            ),
        ),
        *(
            Ratio(
                text=f"with {company}, spin-block is not slower than {wait}",
                metric="block_time",
                of={"company": company, "wait": "spin-block"},
                to={"wait": wait},
                at_most=1.1,
            )
            for company in ("nice", "raised", "hog")
            for wait in ("spin", "block")
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
