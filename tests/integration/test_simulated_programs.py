"""Programs on simulated hosts: real processes, one of which runs at a time."""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import resends
from support.clusters import run
from support.conditions import patient
from support.mpi_programs import JOINED, MPI4PY, mpi_program

from shrimpmx.cli import main
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import DeadlineError
from shrimpmx.experiment import measuring
from shrimpmx.native.segment import list_segments
from shrimpmx.results.disturbance import QUIET, Figures, Outside
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation.engine import Simulated

pytest.importorskip("mpi4py")

SIMULATED = ("mpirun", "--engine", "simulated")
COLLECTIVES = """
    begin = MPI.Wtime()
    total = np.zeros(1000)
    world.Allreduce(np.full(1000, float(rank)), total)
    assert (total == sum(range(size))).all()
    assert world.alltoall([(rank, to) for to in range(size)]) == [(of, rank) for of in range(size)]
    large = np.zeros(50_000)
    world.Sendrecv(np.full(50_000, float(rank)), right, recvbuf=large, source=left)
    assert (large == left).all()
    print(rank, f"{MPI.Wtime() - begin:.9f}", flush=True)
    """
LARGE = """
    large = np.zeros(25_000)
    for _ in range(10):
        if rank == 0:
            world.Send(large, 1)
        else:
            world.Recv(large, 0)
    if rank == 0:
        print(MPI.Wtime(), flush=True)
    """
PINGPONG = """
    buffer, partner = np.zeros(1), rank ^ 1
    for _ in range(20):
        if rank < partner:
            world.Send(buffer, partner)
        world.Recv(buffer, partner)
        if rank > partner:
            world.Send(buffer, partner)
    """

# Rank 0 waits while its neighbour exchanges messages.
NEIGHBOURS = """
    buffer = np.zeros(1)
    for _ in range(100):
        if rank == 1:
            world.Send(buffer, 3)
        if rank in (1, 3):
            world.Recv(buffer, 4 - rank)
        if rank == 3:
            world.Send(buffer, 1)
    if rank in (0, 2):
        world.Recv(buffer, {0: 2, 2: 3}[rank])
    if rank in (2, 3):
        world.Send(buffer, {2: 0, 3: 2}[rank])
    """


def program_pair(command: list[str], **more: Any) -> ClusterSpec:
    return ClusterSpec(
        ranks=tuple(
            RankSpec(node, "program", command=tuple(command), launch=Launch()) for node in range(2)
        ),
        nic=NicParameters(coalescing="disabled"),
        wait=WaitParameters(strategy="block"),
        **more,
    )


def points_of(path: Path) -> object:
    points = json.loads(path.read_text())["points"]
    return [{name: each for name, each in point.items() if name != "took_s"} for point in points]


def test_a_program_of_mpi_gives_the_same_each_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = mpi_program(tmp_path, COLLECTIVES, MPI4PY)
    printed, kept = [], []
    for number in range(2):
        path = tmp_path / f"{number}.json"
        assert main([*SIMULATED, "-n", "4", "--nodes", "2", "--json", str(path), *command]) == 0
        printed.append(capfd.readouterr().out)
        kept.append(points_of(path))
    assert len(printed[0].splitlines()) == 4
    assert printed[0] == printed[1]
    assert kept[0] == kept[1]
    assert json.loads(path.read_text())["engine"] == "simulated"


def test_nothing_of_this_machine_disturbs_a_program_on_simulated_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Figures] = []

    def outside(figures: Figures, clock: Callable[[], float]) -> Outside:
        looked.append(figures)
        return Outside(figures, clock)

    monkeypatch.setattr(measuring, "Outside", outside)
    command = mpi_program(tmp_path, PINGPONG, MPI4PY)
    assert main([*SIMULATED, "-n", "2", "--json", str(tmp_path / "r"), *command]) == 0
    assert looked == [QUIET]


def test_a_timer_of_the_driver_may_take_longer_than_anything_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing happens meanwhile, and both ranks sleep."""
    command = mpi_program(tmp_path, LARGE, MPI4PY)
    faults = ("--set", "loss=0.05", "--set", "pull_resend_delay_ns=10000000000")
    words = ("-n", "2", "--nodes", "2", "--set", "wait=block", *faults)
    assert main([*SIMULATED, *words, *command]) == 0
    assert float(capfd.readouterr().out) > 10


def test_both_engines_count_the_same_messages_of_a_program(tmp_path: Path) -> None:
    spec = program_pair(mpi_program(tmp_path, PINGPONG, MPI4PY))
    spec = replace(spec, mx=resends.MX, host=resends.HOST)
    real, simulated = run(spec), Simulated().run(spec)
    for rank in ("rank0", "rank1"):
        counted = [
            {name: result.counters[rank][name] for name in ("recv_messages", "send_tiny")}
            for result in (real, simulated)
        ]
        assert counted[0] == counted[1]


@pytest.mark.nightly("each number of messages", but=1)
@pytest.mark.parametrize("strategy", ["notify", "spin-notify"])
@pytest.mark.parametrize("pairs", [1, 2])
def test_a_program_that_is_notified_pays_for_each_handler(
    pairs: int, strategy: str, tmp_path: Path
) -> None:
    pair = program_pair(mpi_program(tmp_path, PINGPONG, MPI4PY))
    spec = replace(pair, ranks=pair.ranks * pairs)
    # A spin shorter than any message takes, so that each of them notifies.
    free, dear = (
        Simulated().run(
            replace(
                spec,
                wait=WaitParameters(strategy=strategy, spin_ns=500, handler_cost_ns=handler_ns),
            )
        )
        for handler_ns in (0, 50_000)
    )
    for rank in (f"rank{number}" for number in range(2 * pairs)):
        # Of 20 messages; some others pass before the work.
        assert 20 <= free.accounts[rank]["notifications"] <= 20 + 10 * pairs
        more_ns = dear.usage[rank]["task_clock_ns"] - free.usage[rank]["task_clock_ns"]
        # Each of its sleeps was ended by one; it has slept for all messages but one at most. It may
        # have spun less.
        slept, spun_ns = dear.accounts[rank]["blocks"], free.accounts[rank]["spin_ns"]
        assert slept >= 19
        assert more_ns >= slept * 50_000 - spun_ns


def test_a_program_that_joins_has_the_virtual_clock_and_leaves_samples(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import shrimpmx\n"
        "with shrimpmx.join() as rank:\n"
        "    begin = rank.now_ns()\n"
        "    rank.host.burn(1_000_000)\n"
        "    rank.host.sleep(2_000_000)\n"
        "    rank.samples['took'] = [rank.now_ns() - begin]\n"
    )
    ranks = tuple(RankSpec(node, "idle", command=(sys.executable, str(path))) for node in (0, 1))
    result = Simulated().run(ClusterSpec(ranks=ranks))
    # A look at the clock takes some nanoseconds.
    assert 3_000_000 <= result.samples["rank1"]["took"][0] <= 3_001_000
    assert 1_000_000 <= result.usage["rank1"]["task_clock_ns"] <= 1_001_000


WORKLOAD = """
import shrimpmx
from shrimpmx.cluster.nics.kind import kind_of
with shrimpmx.join() as rank:
    rank.samples.update(kind_of(rank.seat.run.nic).workloads["pingpong"](rank))
"""


@pytest.mark.parametrize("nic", ["ethernet", "vmmc"])
def test_a_workload_takes_as_long_as_a_program(nic: str) -> None:
    options = {"iterations": 20, "warmup": 2, "size_bytes": 64}
    found = []
    for command in ((), (sys.executable, "-c", WORKLOAD)):
        spec = ClusterSpec(
            ranks=tuple(
                RankSpec(node, "pingpong", options=options, command=command) for node in (0, 1)
            ),
            nic=NicParameters(nic_kind=nic),
            wait=WaitParameters(strategy="block"),
        )
        found.append([int(each) for each in _half_round_trips(Simulated().run(spec))])
    assert found[0] == found[1]


def _half_round_trips(result: ClusterResult) -> Any:
    return result.samples["rank0"]["half_round_trip_ns"]


WAITS_FOR_A_TIME = """
    if rank == 0:
        begin = MPI.Wtime()
        while MPI.Wtime() < begin + 0.001:
            pass
        world.Send(np.zeros(1), 1)
    else:
        request = world.Irecv(np.zeros(1), 0)
        while not request.Test():
            pass
    print(f"{MPI.Wtime() - 0:.6f}", flush=True)
    """


def test_programs_that_only_look_get_on(tmp_path: Path) -> None:
    command = mpi_program(tmp_path, WAITS_FOR_A_TIME, MPI4PY)
    result = Simulated().run(program_pair(command))
    assert all(each > 1_000_000 for each in result.elapsed_ns.values())


COMPUTES = """
    for _ in range(10):
        world.Barrier()
        sum(range(20_000))
    """


def test_what_a_program_computes_takes_time_if_it_is_to(tmp_path: Path) -> None:
    command = mpi_program(tmp_path, COMPUTES, MPI4PY)
    took = {
        compute: Simulated().run(program_pair(command, compute=compute)).elapsed_ns["rank0"]
        for compute in ("none", "measured", 100_000)
    }
    # Ten times some hundred microseconds, measured; ten times 100 here.
    assert took["measured"] > took["none"] + 100_000
    assert took[100_000] > took["none"] + 1_000_000
    slower = program_pair(command, compute="measured", compute_factor=100.0)
    assert Simulated().run(slower).elapsed_ns["rank0"] > 10 * took["measured"]


COMPUTES_BETWEEN_WAITS = """
    other = rank.partners[1 - number]
    took = []
    for turn in range(10):
        request = rank.endpoint.irecv(bytearray(1), turn)
        rank.endpoint.send(b"x", other, turn)
        rank.endpoint.wait(request)
        begin = rank.now_ns()
        sum(range(200_000))
        took.append(rank.now_ns() - begin)
    assert min(took) > 100_000, took
    session.__exit__(None, None, None)
    """


def test_what_is_computed_behind_a_wait_takes_time(tmp_path: Path) -> None:
    command = mpi_program(tmp_path, COMPUTES_BETWEEN_WAITS)
    Simulated().run(program_pair(command, compute="measured"))


COMPUTES_BEFORE = """
    import time
    while time.thread_time() < 1:
        pass
"""


def test_what_is_computed_before_a_program_joins_takes_no_time(tmp_path: Path) -> None:
    text = "assert rank.now_ns() < 500_000_000, rank.now_ns()\nsession.__exit__(None, None, None)"
    command = mpi_program(tmp_path, text, COMPUTES_BEFORE + JOINED)
    Simulated().run(program_pair(command, compute="measured"))


def test_compute_is_refused_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mpirun", "-n", "1", "--set", "compute=5", sys.executable, "-c", ""]) == 2
    assert "--engine simulated" in capsys.readouterr().err.splitlines()[-1]


ENDS = {
    "a wait for ever": (
        "world.Recv(np.zeros(1), source=right, tag=5 + rank)",
        3,
        r"rank0: MPI_Recv from rank 1, tag 5.*rank1: MPI_Recv from rank 0, tag 6",
    ),
    "a loop": (
        "while rank: pass",
        124,
        "did not end within [0-9.]+ s: rank1 is outside MPI: it computes",
    ),
}


@pytest.mark.nightly("each end", but=1)
@pytest.mark.parametrize("how", ENDS)
def test_a_program_that_fails_ends_the_run(
    how: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    act, code, words = ENDS[how]
    command = mpi_program(tmp_path, f"import os\n{act}\nworld.Barrier()", MPI4PY)
    limit = ("--timeout", str(patient(9.0))) if how == "a loop" else ()
    assert main([*SIMULATED, "-n", "2", *limit, *command]) == code
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("shrimpmx: ")]
    assert re.search(words, said[-1])
    assert not [name for name, owner, _ in list_segments() if owner.pid == os.getpid()]


@pytest.mark.nightly("each call", but=1)
@pytest.mark.parametrize("strategy", ["spin", "sched", "spin-block"])
def test_a_rank_that_spins_does_not_look_at_what_its_neighbours_do(
    strategy: str, tmp_path: Path
) -> None:
    """Each look of a program is a turn of its process, as each wake-up of one that blocks is."""
    pair = program_pair(mpi_program(tmp_path, NEIGHBOURS, MPI4PY), host=HostParameters(cores=2))
    seats = [(node, core) for node in (0, 1) for core in (0, 1)]
    ranks = tuple(replace(pair.ranks[0], node=node, core=core) for node, core in seats)
    blocking = replace(pair, ranks=ranks)
    spinning = replace(blocking, wait=WaitParameters(strategy=strategy))
    assert turns_of_processes(spinning) < 2 * turns_of_processes(blocking)


def turns_of_processes(spec: ClusterSpec) -> int:
    """How often the processes of a run have given their CPUs up."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
    Simulated().run(spec)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before


@pytest.mark.nightly("seconds of a limit")
def test_a_rank_that_computes_for_too_long_is_named(tmp_path: Path) -> None:
    """By the deadline of a scenario, which else is one of virtual time."""
    command = mpi_program(tmp_path, "while rank: pass\nworld.Barrier()", MPI4PY)
    spec = replace(program_pair(command), deadline_s=patient(8.0))
    with pytest.raises(DeadlineError, match=r"^rank1 has made no call for .*: it .*computes"):
        Simulated().run(spec)


@pytest.mark.nightly("seconds of a limit")
def test_a_run_that_takes_too_long_here_is_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Though no rank computes for long, and little virtual time passes: a barrier of eight ranks on
    one node takes some microseconds of it, and many more here.
    """
    command = mpi_program(tmp_path, "while True:\n    world.Barrier()", MPI4PY)
    limit = ("--nodes", "1", "--timeout", f"{patient(5):g}")
    assert main([*SIMULATED, "-n", "8", *limit, *command]) == 124
    assert f"did not end within {patient(5):g} s" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "free"),
    [
        ((), 2),
        (("platform=myri10g-2009",), 1),
        (("platform=myri10g-2009", "compute=1000"), 0),
    ],
)
def test_what_takes_no_time_is_said(
    settings: tuple[str, ...], free: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of the hosts' own work, and of what programs compute."""
    words = [f"--set={each}" for each in settings]
    assert main([*SIMULATED, "-n", "1", *words, "true"]) == 0
    assert capfd.readouterr().err.count("takes no time") == free


def test_a_program_ends_without_a_wait_for_late_acknowledgements(tmp_path: Path) -> None:
    """A message that nothing answers is acknowledged by a timer while its receiver works on, which
    no run of this program is long enough for.
    """
    times = []
    for delay_ms in (16, 100):
        output = tmp_path / str(delay_ms)
        words = ["-n", "2", "--set", f"ack_delay_ns={delay_ms}000000", "--output", str(output)]
        assert main([*SIMULATED, *words, *mpi_program(tmp_path, PINGPONG, MPI4PY)]) == 0
        (point,) = json.loads((output / "run.json").read_text())["points"]
        times += point["metrics"]["run_time"]["samples"]
    assert times[0] == times[1]


def test_a_program_without_mpi_runs(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*SIMULATED, "-n", "2", "echo", "here"]) == 0
    assert capfd.readouterr().out.splitlines() == ["here", "here"]


def test_what_arrives_while_a_program_pays_for_its_events_is_seen_at_its_next_look(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    crossing = """
    longest = 0.0
    for _ in range(40):
        begin = MPI.Wtime()
        world.allreduce(1.0)
        longest = max(longest, MPI.Wtime() - begin)
    print(longest, flush=True)
    """
    for wait in ("spin", "sched"):
        settings = ["--set", "platform=myri10g-2009", "--set", f"wait={wait}"]
        command = mpi_program(tmp_path, crossing, MPI4PY)
        assert main([*SIMULATED, "-n", "2", *settings, *command]) == 0
        # Virtual seconds: a few packets' way, and not the quarter of one after which a wait that
        # has missed its message looks for what to show.
        assert all(0 < float(longest) < 1e-3 for longest in capfd.readouterr().out.split())


def test_a_pause_disturbs_no_simulated_result(tmp_path: Path) -> None:
    text = """
        import os
        import signal

        world.Barrier()
        if rank == 0:
            os.kill(os.getppid(), signal.SIGCONT)
        world.Barrier()
        """
    spec = program_pair(mpi_program(tmp_path, text, MPI4PY))
    assert Simulated().run(spec).pauses == 0
