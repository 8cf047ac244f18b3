"""What `shrimpmx fit` reads beside benchmarks: counters around a run, a NIC's coalescing, a host's
topology; and its recipe, followed to its end on a made-up cluster.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shrimpmx.cli import main
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.errors import InputError
from shrimpmx.experiment.fit.measurements import Measurement, read_measurements
from shrimpmx.experiment.fit.recipe import RECIPE
from shrimpmx.experiment.fit.topology import on_topology, synthetic_of
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.platform_files import read_platform

ONE = """\
# Benchmarking PingPong
# #processes = 2
          128        10000        12.50         0.00
"""
UNIBAND = """\
# Benchmarking Uniband
          128        10000       100.00       292968
"""
COALESCE = """\
Coalesce parameters for eth0:
Adaptive RX: off  TX: off
stats-block-usecs:\tn/a

rx-usecs: 25
rx-frames: 0
tx-usecs: 25
"""
BEFORE = """\
            CPU0       CPU1
   0:         44          0   IO-APIC    2-edge      timer
  24:       1000          0   PCI-MSI 524288-edge      eth0-TxRx-0
  25:          0         50   PCI-MSI 524289-edge      eth0-TxRx-1
  26:          7          7   PCI-MSI 524290-edge      eth01-TxRx-1
 NMI:          1          1   Non-maskable interrupts
 ERR:          0
"""
AFTER = BEFORE.replace("1000 ", "9000 ").replace(" 50 ", "1050 ").replace(" 44 ", "9999 ")
STATISTICS = "NIC statistics:\n     rx_packets: 100\n     tx_packets: 7\n"
STATISTICS_AFTER = STATISTICS.replace("100", "10100")
FILES = {
    "one.txt": ONE,
    "uni.txt": UNIBAND,
    "c.txt": COALESCE,
    "b.txt": BEFORE,
    "a.txt": AFTER,
    "sb.txt": STATISTICS,
    "sa.txt": STATISTICS_AFTER,
}
GIVEN: dict[str, Any] = {
    "path": "one.txt",
    "coalesce": "c.txt",
    "interrupts": ["b.txt", "a.txt"],
    "interface": "eth0",
    "round_trips": 10000,
}


def written(directory: Path, given: dict[str, Any], **files: str) -> Path:
    """The description of a benchmark's output with what lies around it."""
    for name, text in {**FILES, **{f"{key}.txt": each for key, each in files.items()}}.items():
        (directory / name).write_text(text)
    path = directory / "runs.toml"
    path.write_text("[[file]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in given.items()))
    return path


def counted(directory: Path, given: dict[str, Any], **files: str) -> Measurement:
    """The last figure, that of interrupts."""
    return read_measurements([written(directory, given, **files)])[-1]


# -- counters --------------------------------------------------------------------------


def test_snapshots_of_interrupts_around_a_ping_pong_are_interrupts_per_message(
    tmp_path: Path,
) -> None:
    one = counted(tmp_path, GIVEN)
    assert (one.metric, one.value) == ("interrupts_per_message", 0.9)
    assert dict(one.settings)["rx_usecs"] == "25"
    assert dict(one.settings)["coalescing"] == "timeout"
    assert one.group == "coalescing=timeout rx_usecs=25"
    assert one.size_bytes == 128


def test_with_packets_counted_they_are_interrupts_per_packet(tmp_path: Path) -> None:
    given = {**GIVEN, "statistics": ["sb.txt", "sa.txt"]}
    del given["round_trips"]
    one = counted(tmp_path, given)
    assert (one.metric, one.value) == ("interrupts_per_packet", 0.9)
    del given["interrupts"], given["interface"]
    mellanox = "     ch_events: {}\n     ch0_events: 1\n"
    own = {"sb": STATISTICS + mellanox.format(5), "sa": STATISTICS_AFTER + mellanox.format(2505)}
    assert counted(tmp_path, given, **own).value == 0.25


def test_a_stream_needs_the_counters_of_both_nodes(tmp_path: Path) -> None:
    given = {**GIVEN, "path": "uni.txt", "statistics": ["sb.txt", "sa.txt"]}
    with pytest.raises(InputError, match="needs four snapshots"):
        counted(tmp_path, given)
    for name in ("interrupts", "statistics"):
        given[name] = 2 * given[name]
    one = counted(tmp_path, given)
    assert (one.metric, one.value) == ("interrupts_per_packet", 0.9)


@pytest.mark.parametrize(
    "names",
    [
        ("rx_queue_0_packets", "rx_queue_1_packets"),
        ("rx0_packets", "rx1_packets"),
        ("queue_0_rx_cnt", "queue_1_rx_cnt"),
        ("[0]: rx_ucast_packets", "[1]: rx_ucast_packets"),
        ("rxq0: rx_pkts", "rxq1: rx_pkts"),
    ],
)
def test_packets_of_queues_are_added(tmp_path: Path, names: tuple[str, str]) -> None:
    given = {**GIVEN, "statistics": ["sb.txt", "sa.txt"], "round_trips": 0}
    before, after = (
        "NIC statistics:\n" + "".join(f"     {name}: {count}\n" for name in names)
        for count in (5, 5005)
    )
    assert counted(tmp_path, given, sb=before, sa=after).value == 0.9


@pytest.mark.parametrize(
    ("usecs", "frames", "settings"),
    [
        (0, "0", {"coalescing": "disabled"}),
        (0, "1", {"coalescing": "disabled"}),
        (0, "32", {"coalescing": "timeout", "rx_usecs": "0", "rx_frames": "32"}),
        (8, "n/a", {"coalescing": "timeout", "rx_usecs": "8"}),
    ],
)
def test_the_nics_coalescing_is_the_setting(
    tmp_path: Path, usecs: int, frames: str, settings: dict[str, str]
) -> None:
    text = COALESCE.replace("25", str(usecs)).replace("rx-frames: 0", f"rx-frames: {frames}")
    found = dict(counted(tmp_path, {"path": "one.txt", "coalesce": "c.txt"}, c=text).settings)
    names = ("coalescing", "rx_usecs", "rx_frames")
    assert {name: found[name] for name in names if name in found} == settings


BAD: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({}, {"a": AFTER[:-1]}, "a.txt was cut short"),
    ({}, {"a": ""}, "a.txt was cut short"),
    ({}, {"a": AFTER.split("PCI-MSI 524289")[0].rsplit(" ", 4)[0] + "\n"}, "at interrupt 25"),
    ({"interrupts": ["a.txt", "b.txt"]}, {}, "b.txt are lower than those in"),
    ({"interrupts": ["b.txt", "b.txt"]}, {}, "have equal counts"),
    ({"interrupts": ["b.txt"]}, {}, "before and after"),
    ({"interrupts": "b.txt"}, {}, "before and after"),
    ({"interrupts": 2 * ["b.txt", "a.txt"]}, {}, "two snapshots of one node"),
    ({"interrupts": ["b.txt", "none.txt"]}, {}, "none.txt cannot be read"),
    ({"interrupts": ["b.txt", "c.txt"]}, {}, "copy of /proc/interrupts"),
    ({"interface": "mlx5"}, {}, "no interrupt of mlx5"),
    ({"interface": ""}, {}, "give interface"),
    ({}, {"a": AFTER.replace("25:", "27:")}, "without a reboot in between"),
    ({"round_trips": 0}, {}, "give statistics"),
    ({"round_trips": "many"}, {}, "whole number"),
    ({"round_trips": 0, "statistics": ["sb.txt", "a.txt"]}, {}, "output of ethtool -S"),
    ({"round_trips": 0, "statistics": ["sa.txt", "sb.txt"]}, {}, "sb.txt are lower than those in"),
    (
        {"round_trips": 0, "statistics": ["sb.txt", "sa.txt"]},
        {"sb": "NIC statistics:\n     rx_foo: 5\n"},
        "rx_queue_N_packets",
    ),
    (
        {"round_trips": 0, "statistics": ["sb.txt", "sa.txt"]},
        {"sb": STATISTICS.replace(": 7", "")},
        "cut short, at 'tx_packets'",
    ),
    ({"interrupts": [], "statistics": ["sb.txt", "sa.txt"]}, {}, "give interrupts"),
    ({}, {"one": ONE + ONE.splitlines()[-1].replace("128", "256") + "\n"}, "one figure, not 2"),
    ({"coalesce": "a.txt"}, {}, "output of ethtool -c"),
    ({}, {"c": COALESCE.replace("RX: off", "RX: on")}, "adapts its coalescing"),
    ({}, {"c": COALESCE.replace("rx-usecs: 25", "rx-usecs: n/a")}, "has no rx-usecs"),
    ({}, {"c": COALESCE[:60]}, "cut short"),
]


@pytest.mark.parametrize(("change", "files", "words"), BAD)
def test_counters_that_cannot_be_used_are_told_in_a_sentence_and_nothing_is_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, Any],
    files: dict[str, str],
    words: str,
) -> None:
    path = written(tmp_path, {**GIVEN, **change}, **files)
    before = sorted(tmp_path.iterdir())
    assert main(["fit", str(path), "-o", str(tmp_path / "out.toml")]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


def test_interrupts_are_those_of_pingpongs_and_streams(tmp_path: Path) -> None:
    exchange = ONE.replace("PingPong", "PingPing")
    with pytest.raises(InputError, match="interrupts are counted for PingPong"):
        counted(tmp_path, GIVEN, one=exchange)


# -- the topology of a host ------------------------------------------------------------

LSCPU = """\
Architecture:                         x86_64
CPU(s):                               32
On-line CPU(s) list:                  0-31
Thread(s) per core:                   2
Core(s) per socket:                   8
Socket(s):                            2
L1d cache:                            512 KiB (16 instances)
L1i cache:                            512 KiB (16 instances)
L2 cache:                             8 MiB (16 instances)
L3 cache:                             64 MiB (4 instances)
"""
SYNTHETIC = "package:2 l3:2 l2:4 l1:1 core:1 pu:2"


def as_json(text: str) -> str:
    rows = [line.split(":", 1) for line in text.splitlines()]
    fields = [{"field": f"{name}:", "data": data.strip()} for name, data in rows]
    return json.dumps({"lscpu": [{**fields[0], "children": fields[1:]}]}) + "\n"


def as_xml(packages: str) -> str:
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
        f'<topology version="2.0"><object type="Machine">{packages}</object></topology>\n'
    )


def inside(kind: str, *below: str) -> str:
    return f'<object type="{kind}">{"".join(below)}</object>'


CORE = inside(
    "L2Cache", inside("L1Cache", inside("L1iCache", inside("Core", *2 * ['<object type="PU"/>'])))
)
PACKAGE = inside(
    "Package", *2 * [inside("L3Cache", inside("NUMANode"), inside("Group", *4 * [CORE]))]
)
OLD_CORE = (
    '<object type="Cache" depth="2" cache_type="0"><object type="Cache" depth="1" cache_type="2">'
    '<object type="Core"><object type="PU"/></object></object></object>'
)


@pytest.mark.parametrize(
    ("text", "synthetic"),
    [
        (LSCPU, SYNTHETIC),
        (as_json(LSCPU), SYNTHETIC),
        (as_xml(2 * PACKAGE), SYNTHETIC),
        (as_xml(inside("Socket", OLD_CORE)), "package:1 l2:1 core:1 pu:1"),
        (as_xml(2 * CORE), "package:1 l2:2 l1:1 core:1 pu:2"),
    ],
)
def test_a_host_is_described_alike_by_each_command(text: str, synthetic: str) -> None:
    found = synthetic_of(Path("host.txt"), text)
    assert found == synthetic
    cores = Topology.from_synthetic(found).cores_count
    platform = on_topology(PLATFORMS["xeon-100g"], Path("host.txt"), text)
    assert platform.host["cores"].value == cores
    assert "cores" not in platform.on(real=True).host
    assert platform.model["host_topology"].value == synthetic


def test_a_topology_without_caches_and_one_of_many_cores_are_read() -> None:
    bare = "".join(line for line in LSCPU.splitlines(True) if "cache" not in line)
    assert synthetic_of(Path("h"), bare) == "package:2 core:8 pu:2"
    many = bare.replace("32\n", "256\n", 1).replace("socket:                   8", "socket: 64")
    assert on_topology(PLATFORMS["xeon-100g"], Path("h"), many).host["cores"].value == 64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LSCPU[:-1], "cut short"),
        (LSCPU[:120], "cut short"),
        (LSCPU.split("Socket")[0], "has no Socket(s)"),
        ("hello\n", "output of LC_ALL=C lscpu"),
        (LSCPU.replace("  32\n", "  28\n"), "cores differ"),
        (LSCPU.replace("(4 instances)", "(3 instances)"), "cannot share"),
        (LSCPU.replace(" (4 instances)", ""), "old lscpu"),
        (as_json(LSCPU)[:200] + "\n", "complete output of lscpu -J"),
        ('{"cpus": []}\n', "complete output of lscpu -J"),
        (as_xml(PACKAGE)[:300], "complete XML"),
        ("<html></html>", "topology of hwloc"),
        (as_xml(PACKAGE + inside("Package", CORE)), "differ"),
    ],
)
def test_a_topology_that_cannot_be_used_is_told_in_a_sentence_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    path, host = written(tmp_path, GIVEN), tmp_path / "host.txt"
    host.write_text(text)
    before = sorted(tmp_path.iterdir())
    command = ["fit", str(path), "--topology", str(host), "-o", str(tmp_path / "out.toml")]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


# -- the recipe ------------------------------------------------------------------------

# Commands of a cluster, which answer as if its NIC were set as it was last told to be.
FAKES = {
    "sudo": 'exec "$@"',
    "ssh": 'shift; case "$*" in "cat /proc/interrupts") exec interrupts;; esac; exec env "$@"',
    "ethtool": 'case $1 in -C) for last; do :; done; echo "$last" > usecs;; '
    '-c) sed "s/rx-usecs: 25/rx-usecs: $(cat usecs)/" coalesce;; esac',
    "lscpu": "cat lscpu",
    "interrupts": 'n=$(( $(cat taken) + 9000 )); echo $n > taken; sed "s/1000/$n/" before',
    "mpirun": 'sed "s/12.50/$((12 + $(cat usecs)))/" one; case "$*" in *Uniband*) cat uni;; esac',
    "shrimpmx": 'for each; do echo "$each"; done > arguments',
}


def test_the_recipe_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in FAKES.items():
        path = commands / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    kept = {"coalesce": COALESCE, "lscpu": LSCPU, "before": BEFORE, "one": ONE, "uni": UNIBAND}
    kept |= {"usecs": "3", "taken": "0"}
    for name, text in kept.items():
        (tmp_path / name).write_text(text)
    script = tmp_path / "recipe.sh"
    script.write_text(f"set -e\n{RECIPE}")
    path = {"PATH": f"{commands}:{os.environ['PATH']}"}
    subprocess.run(["bash", script], cwd=tmp_path, env={**os.environ, **path}, check=True)
    monkeypatch.chdir(tmp_path)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert shlex.join(["shrimpmx", *arguments]) == RECIPE.splitlines()[-1]
    groups = [one.group for one in read_measurements([Path(arguments[1])])]
    assert list(dict.fromkeys(groups)) == [
        "coalescing=disabled",
        "coalescing=timeout rx_usecs=25",
        "coalescing=timeout rx_usecs=100",
    ]
    assert len(groups) == 4 * 3
    assert main([*arguments, "--vary", "link_delay_ns", "--workers", "1"]) == 0
    platform = read_platform("cluster.toml")
    assert platform.host["cores"].value == 16
    assert platform.nic["link_delay_ns"].fitted_by == tuple(dict.fromkeys(groups))
