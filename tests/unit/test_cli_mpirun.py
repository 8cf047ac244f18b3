"""The command line of `shrimpmx mpirun`: the cluster that it describes, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import assert_refused

from shrimpmx.cli import main, mpirun, parse
from shrimpmx.cli.mpi_options import check_mpirun, program_of
from shrimpmx.cli.mpirun import _described, inputs_of, launch_of
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import InputError
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.program_executor import ProgramExecutor
from shrimpmx.show.terminal import say

TWO_CPUS = Topology.from_synthetic("core:2 pu:1")


def spec_of(*words: str) -> ClusterSpec:
    options = parse(["mpirun", *words])
    check_mpirun(options)
    return cluster_spec(program_of(options).point()[0].parameters, 1)


def places(*words: str) -> list[tuple[int, int]]:
    """(node, core) of each rank."""
    return [(rank.node, rank.core) for rank in spec_of(*words, "prog").ranks]


def test_ranks_are_in_blocks_on_two_nodes_with_a_core_each() -> None:
    assert places("-n", "5") == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert places("-np", "4", "--nodes", "3") == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert places("-n", "2", "--nodes", "4") == [(0, 0), (1, 0)]
    assert places("-n", "1") == [(0, 0)]
    spec = spec_of("-n", "5", "prog")
    assert (spec.nodes, spec.host.cores) == (2, 3)
    assert spec_of("-n", "1", "prog").nodes == 1


def test_a_dilation_is_not_said_of_what_the_program_computes() -> None:
    line = _described(spec_of("-n", "2", "--set", "time_dilation=6", "prog"))
    assert "of NIC, link and protocol are dilated 6 times, the program's own are not" in line
    assert "dilated" not in _described(spec_of("-n", "2", "prog"))


def test_ranks_are_mapped_as_was_asked_for() -> None:
    cores = ("--set", "cores=2")
    assert places("-n", "3", "--map-by", "node") == [(0, 0), (1, 0), (0, 1)]
    assert places("-n", "3", "--map-by", "core", *cores) == [(0, 0), (0, 1), (1, 0)]
    assert places("-n", "4", "--map-by", "slot", *cores, "--nodes", "4") == [
        (node, 0) for node in range(4)
    ]
    assert places("-n", "6", "--map-by", "core", *cores) == [
        *((0, 0), (0, 1), (0, 0)),
        *((1, 0), (1, 1), (1, 0)),
    ]


def test_nothing_that_only_a_result_needs_delays_the_start() -> None:
    text = (
        "import sys; from shrimpmx.cli import parse; parse(['mpirun', '-n', '1', 'prog']); "
        "print(*sorted({'numpy', 'rich', 'shrimpmx.experiment.sweep'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_rank_is_bound_to_one_core_or_to_none() -> None:
    bound = spec_of("-n", "4", "prog")
    assert [bound.home_cores(rank) for rank in range(4)] == [(0,), (1,), (0,), (1,)]
    free = spec_of("-n", "4", "--bind-to", "none", "prog")
    assert [free.home_cores(rank) for rank in range(4)] == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_a_burst_of_all_ranks_fits_into_half_of_the_rings() -> None:
    def limits(*words: str) -> tuple[int, int]:
        spec = spec_of(*words, "prog")
        return spec.mx.send_window, spec.mx.pulls_max

    assert limits("-n", "2") == (512, 4)
    assert limits("-n", "8") == (32, 1)
    assert limits("-n", "2", "--set", "event_ring_entries=64") == (32, 4)
    assert limits("-n", "2", "--set", "rx_ring_entries=256") == (128, 1)
    assert limits("-n", "1") == (512, 4)
    assert limits("-n", "2", "--set", "send_window=0", "--set", "pulls_max=0") == (0, 0)


def test_settings_are_those_of_run() -> None:
    settings = ("--set", "nic=mx", "--set", "loss=0.01", "--set", "wait=block")
    spec = spec_of("-n", "2", *settings, "prog")
    assert spec.nic.nic_kind == "mx"
    assert spec.link_faults is not None
    assert spec.link_faults.loss == 0.01
    assert spec.wait.strategy == "block"


def test_ranks_that_share_cpus_give_them_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(cpus: int, *words: str) -> str:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cpus)))
        return spec_of("-n", *words, "prog").wait.strategy

    # On one node ranks count alone, on several their NICs too.
    assert [wait(cpus, "3", "--nodes", "1") for cpus in (2, 3)] == ["sched", "spin-block"]
    assert [wait(cpus, "3") for cpus in (2, 4, 5)] == ["block", "block", "spin-block"]
    assert [wait(cpus, "3", "--nodes", "3") for cpus in (5, 6)] == ["block", "spin-block"]
    assert [wait(cpus, "1", "--nodes", "2") for cpus in (1, 2)] == ["spin-block"] * 2
    one_node = ("--map-by", "core", "--set", "cores=3")
    assert [wait(cpus, "3", *one_node) for cpus in (2, 3)] == ["sched", "spin-block"]
    assert wait(5, "4", *one_node) == "block"


def test_ranks_have_the_cpus_that_were_named() -> None:
    cpu = min(os.sched_getaffinity(0))
    assert spec_of("-n", "1", "--set", f"cpus={cpu}", "prog").wait.strategy == "spin-block"
    assert spec_of("-n", "2", "--set", f"cpus={cpu}", "prog").wait.strategy == "block"
    chosen = spec_of("-n", "2", "--set", f"cpus={cpu}", "--set", "wait=spin", "prog")
    assert chosen.wait.strategy == "spin"


def test_words_behind_the_program_are_its_own() -> None:
    spec = spec_of("-n", "2", "prog", "-n", "3", "--set", "a b", "--", "x")
    assert spec.ranks[0].command == ("prog", "-n", "3", "--set", "a b", "--", "x")
    assert spec.ranks[1].launch is not None
    assert spec_of("-n", "2", "--", "prog", "-x").ranks[0].command == ("prog", "-x")
    # Several options of mpirun's begin so.
    assert spec_of("-n", "2", "prog", "-m", "-e").ranks[0].command == ("prog", "-m", "-e")


@pytest.mark.parametrize(("paused_s", "words"), [(0, ""), (61.5, "for 61.5 s")])
def test_times_that_hold_a_pause_are_marked(
    paused_s: float, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    executor = ProgramExecutor(
        Forked(), ClusterExecutor(Forked()), [], 1.0, 1.0, "", paused_s=paused_s
    )
    for sentence in executor.notes():
        say(sentence)
    said = capsys.readouterr().err
    assert words in said
    assert bool(said) == bool(paused_s)


def test_what_the_program_is_given() -> None:
    options = parse(["mpirun", "-n", "2", "-x", "A=1=2", "-x", "B=", "--tag-output", "prog"])
    launch = launch_of(options)
    assert launch.environment == {"A": "1=2", "B": ""}
    assert launch.tagged
    with inputs_of(options) as inputs:
        assert inputs == ["", os.devnull]
    options = parse(["mpirun", "-n", "1", "--stdin", "none", "--wdir", "/tmp", "prog"])
    launch = launch_of(options)
    assert (launch.directory, launch.tagged) == ("/tmp", False)
    with inputs_of(options) as inputs:
        assert inputs == [os.devnull]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("prog", "the following arguments are required: -n"),
        ("-n 2", "name the program to run: shrimpmx mpirun -n 2 PROGRAM ARGS"),
        ("-n 0 prog", "-n must be at least 1, not 0"),
        ("-n two prog", "invalid int value: 'two'"),
        ("-n 2 --nodes 0 prog", "nodes must be at least 1, not 0"),
        ("-n 2 --fast prog", "unrecognized arguments: --fast"),
        (
            "-n 2 --hostfile hosts prog",
            "--hostfile is not an option here: all nodes are emulated on",
        ),
        (
            "-n 2 -host a,b prog",
            "-host is not an option here: all nodes are emulated on this machine",
        ),
        ("-hosts a,b -n 2 prog", "-hosts is not an option here: all nodes are emulated on this"),
        ("-n 2 -f hosts prog", "-f is not an option here: all nodes are emulated on this machine"),
        (
            "-n 2 -ppn 2 prog",
            "-ppn is not an option here: the nodes get their ranks by -n, --nodes",
        ),
        ("-n 2 --oversubscribe prog", "--oversubscribe is not an option here: leave it out"),
        (
            "-n 2 --mca btl self prog",
            "--mca is not an option here: set parameters by --set KEY=VALUE",
        ),
        ("-n 2 -genv A 1 prog", "-genv is not an option here: use -x NAME=VALUE"),
        ("-n 2 -l prog", "-l is not an option here: use --tag-output"),
        ("-n 1 a : -n 1 b", "all ranks run one program, so there is no ':' between several"),
        ("-n 2 --timeout 0 prog", "--timeout must be more than 0 seconds, not 0"),
        ("-n 2 --timeout nan prog", "--timeout must be more than 0 seconds, not nan"),
        ("-n 2 --silence -1 prog", "--silence must be 0 seconds or more, not -1"),
        ("-n 2 --grace -1 prog", "--grace must be 0 seconds or more, not -1"),
        ("-n 2 --runs 2 --draws 2 prog", "--draws"),
        ("-n 2 --runs 2 --profile p prog", "--profile shows one run"),
        ("-n 2 --map-by socket prog", "invalid choice: 'socket'"),
        ("-n 2 -x =1 prog", "-x takes NAME or NAME=VALUE, not '=1'"),
        ("-n 2 --set loss prog", "loss"),
        ("-n 2 --set los=1 prog", "there is no parameter 'los'; did you mean"),
        ("-n 2 --set ranks=3 prog", "set ranks by -n here, not by --set"),
        ("-n 2 --set nodes=3 prog", "set nodes by --nodes here, not by --set"),
        ("-n 2 --set map-by=node prog", "set map-by by --map-by here, not by --set"),
        ("-n 2 --set bind_to=none prog", "set bind_to by --bind-to here, not by --set"),
        ("-n 2 --set program=x prog", "set program by PROGRAM here, not by --set"),
        ("-n 2 --set size-bytes=8 prog", "size_bytes applies to shrimpmx's own workloads"),
        ("-n 2 --set workload=stream prog", "set workload by PROGRAM here, not by --set"),
        ("-n 2 --set wait=block,spin prog", "give each parameter one value"),
        ("-n 2 --set repeats=3 prog", "set repeats by --runs here, not by --set"),
        ("-n 2 --set nic=vmmc prog", "MPI runs over the MX library, which nic 'vmmc' lacks"),
        ("-n 2 --set pairs=2 prog", "pairs and rank_core do not apply to workload 'mpi'"),
        ("-n 2 --set mode=generator prog", "mode 'generator' plays a stream only"),
    ],
)
def test_what_cannot_be_used_is_refused(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mpirun", *words.split()]) == 2
    assert_refused(capsys, sentence)


def test_options_are_taken_with_one_dash_as_other_mpiruns_have_them() -> None:
    spec = spec_of("-np", "3", "-map-by", "node", "-bind-to", "none", "prog")
    assert [rank.node for rank in spec.ranks] == [0, 1, 0]
    assert not spec.ranks[0].bound
    options = parse(["mpirun", "-n", "1", "-wdir", "/tmp", "-timeout", "3", "prog"])
    assert (options.wdir, options.timeout) == ("/tmp", 3)


def test_a_mistyped_option_names_the_help_of_mpirun(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mpirun", "-n", "2", "--taq-output", "prog"]) == 2
    assert_refused(capsys, "--taq-output (see shrimpmx mpirun --help)")


def test_what_describes_simulated_hosts_is_refused_for_real_ranks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mpirun", "-n", "1", "--set", "poll_ns=10", sys.executable, "-c", "pass"]) == 2
    assert "--engine simulated" in capsys.readouterr().err


@pytest.mark.parametrize("size", [0, 1 << 20, (1 << 20) + 1])
def test_an_input_for_all_ranks_has_an_end(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpirun, "LARGEST_INPUT_BYTES", 1 << 20)
    own = os.dup(0)
    given = os.memfd_create("given")
    os.ftruncate(given, size)
    os.dup2(given, 0)
    try:
        if size > 1 << 20:
            with pytest.raises(InputError, match="more than 1 MiB"), mpirun._copy_of_input():
                pass
        else:
            with mpirun._copy_of_input() as copy:
                assert Path(copy).stat().st_size == size
    finally:
        os.dup2(own, 0)
        for descriptor in (own, given):
            os.close(descriptor)
