"""What cannot be asked of queues, steering, binding and ranks: one sentence each, exit 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrimpmx.cli import main
from shrimpmx.errors import InputError
from shrimpmx.experiment.point import PointParameters
from shrimpmx.experiment.scenario import Scenario

EIGHT = "cores=8"


def parameters(settings: str) -> PointParameters:
    """Those of a scenario with these settings, which blanks separate."""
    (point,) = (
        Scenario(
            name="a/b", title="t", source="s", shows="s", metrics=("round_trip",), rows="warmup",
            sweep={"warmup": (1,)},
        )
        .changed(settings.split())
        .points()
    )  # fmt: skip
    return point.parameters


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("rx_queues=3 cores=2", "rx_queues is 3, more than the node's 2 cores, and each"),
        ("rx_queues=33", "rx_queues must be at most 32, not 33"),
        (f"{EIGHT} rx_queues=3 irq_binding=0/1", "'0/1' has 2 affinity lists, but there are 3"),
        (f"{EIGHT} irq_binding=0/1", "'0/1' has 2 affinity lists, but there is 1 rx queue"),
        (f"{EIGHT} irq_binding=8", "names core 8, but a node's cores are 0-7"),
        (f"{EIGHT} rx_queues=2 irq_binding=0/", "an affinity list names at least one core"),
        (f"{EIGHT} rx_queues=2 steering=rps", "rx_queues must be 1, not 2"),
        ("steering=xps", "steering must be 'endpoint', 'rss', 'rps' or 'arfs', not 'xps'"),
        ("steering=rps copy_offload=true", "copy_offload leaves them to the dma agent"),
        ("steering=rps coalescing=watchdog", "coalescing 'watchdog' leaves them to ranks"),
        ("rps_cpus=0", "rps_cpus needs steering 'rps'"),
        ("steering=rps rps_cpus=1", "rps_cpus: affinity list '1' names core 1"),
        ("steering=rss nic=mx", "steering 'rss' needs nic 'ethernet': the mx NIC has no rx queues"),
        ("steering=arfs nic=vmmc", "steering 'arfs' needs nic 'ethernet'"),
        (
            f"{EIGHT} rx_queues=2 steering=arfs coalescing=irq-suspend",
            "steering 'arfs' lacks: set steering=endpoint or rx_queues=1",
        ),
        ("nic=mx copy_offload=true", "copy_offload needs nic 'ethernet'"),
        ("nic=mx coalescing=irq-suspend", "coalescing 'irq-suspend' needs nic 'ethernet'"),
        ("nic=mx irq_binding=0", "irq_binding needs nic 'ethernet'"),
        ("nic=mx distance=SC", "nic 'mx' has none: set distance=any"),
        (f"nic=mx {EIGHT} rx_queues=2", "rx_queues needs nic 'ethernet'"),
    ],
)
def test_queues_and_steering(settings: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parameters(settings)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("distance=XX", "distance must be 'any', 'SC', 'S$', 'SP' or 'OP', not 'XX'"),
        ("distance=SP steering=arfs", "and steering 'arfs' moves them: set distance=any"),
        ("distance=SP steering=rps", "and steering 'rps' moves them: set distance=any"),
        ("rank_core=1", "rank_core is 1, but a node's cores are 0 to 0: set cores to at least 2"),
        ("rank_core=64 cores=64", "rank_core must be at most 63, not 64"),
        ("pairs=256", "pairs must be at most 64, not 256"),
        ("pairs=2 nodes=4", "pairs need 2 nodes, not 4"),
        ("pairs=2 mode=generator workload=stream", "mode 'generator' has one rank"),
        ("pairs=2 workload=anatomy", "pairs must be 1, not 2"),
        ("process_binding=near", "process_binding is none, auto, a core per endpoint"),
        ("process_binding=1", "process_binding names core 1, but node 0 has cores 0"),
        ("process_binding=all:64 cores=64", "names core 64, but node 0 has cores 0-63"),
        ("process_binding=0 pairs=2", "process_binding names no core for endpoint 1"),
        ("process_binding=auto nic=vmmc", "process_binding belongs to the Open-MX library"),
        ("move_every=5", "move_every needs cores to move to"),
        (f"move_every=5 {EIGHT} workload=stream", "move_every needs workload 'pingpong'"),
        (f"move_every=5 {EIGHT} nic=vmmc", "move_every needs nic 'ethernet' or 'mx'"),
        (f"move_every=5 {EIGHT} distance=SC", "set distance=any"),
        (f"move_every=5 {EIGHT} coalescing=watchdog", "move_every must be 0"),
        ("move_every=-1", "move_every must be at least 0, not -1"),
    ],
)
def test_ranks_and_where_they_run(settings: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parameters(settings)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        f"{EIGHT} rx_queues=3 irq_binding=0/1/2-7",
        f"{EIGHT} rx_queues=8 process_binding=auto pairs=8 rank_core=7",
        f"{EIGHT} rx_queues=2 coalescing=irq-suspend",
        f"{EIGHT} rx_queues=2 copy_offload=true steering=arfs move_every=10",
        f"{EIGHT} steering=rps rps_cpus=1+3",
        f"{EIGHT} irq_binding=1 rank_core=2 distance=SP hardware_counters=true",
        f"{EIGHT} nic=mx process_binding=auto move_every=10 pairs=2",
        f"{EIGHT} nic=vmmc pairs=5 rank_core=3",
        f"{EIGHT} process_binding=0+2+4 pairs=3",
        "process_binding=file:/absent",
        "pairs=64 workload=stream",
    ],
)
def test_what_goes_together_is_accepted(settings: str) -> None:
    assert parameters(settings).workload.warmup == 1


def test_the_command_line_says_it_in_one_sentence_and_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    for setting in ("rx_queues=2", "distance=XX", "process_binding=3", "rank_core=9"):
        words = ["run", "smoke/pingpong", "--set", setting, "--output", str(output)]
        assert main(words) == 2
        said = capsys.readouterr().err
        assert said.startswith("shrimpmx: ")
        assert len(said.splitlines()) == 1
    assert not output.exists()
