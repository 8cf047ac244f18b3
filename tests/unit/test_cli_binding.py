"""`shrimpmx binding`: the file that it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import assert_refused

from shrimpmx.cli import main

TABLE = """\
            CPU0       CPU1
  24:          9          0   PCI-MSI 524288-edge      eth1-rx-0
  25:          0          9   PCI-MSI 524289-edge      eth1-rx-1
"""
ASK = ["--interface", "eth1", "--mac", "00:60:DD:47:00:01"]
LINES = [
    "board 00:60:dd:47:00:01 ep 0 irq 24 mask 00000001",
    "board 00:60:dd:47:00:01 ep 1 irq 25 mask 00000002",
    "board 00:60:dd:47:00:01 ep 2 irq 24 mask 00000001",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What holds proc, with two rx queues."""
    for irq, mask in ((24, "1"), (25, "2")):
        folder = tmp_path / "proc" / "irq" / str(irq)
        folder.mkdir(parents=True)
        (folder / "smp_affinity").write_text(f"{mask}\n")
    (tmp_path / "proc" / "interrupts").write_text(TABLE)
    return tmp_path


def test_it_writes_a_line_for_each_endpoint(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = root / "bindings"
    words = ["binding", "--root", str(root), *ASK, "--endpoints", "3", "--output", str(output)]
    assert main(words) == 0
    assert output.read_text().splitlines() == LINES
    assert capsys.readouterr().out == f"wrote the bindings of 3 endpoints of eth1 to {output}\n"


def test_by_default_it_writes_where_process_binding_looks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(root))
    assert main(["binding", "--root", str(root), *ASK]) == 0
    assert (root / "shrimpmx" / "open-mx.bindings.dat").read_text().splitlines() == LINES[:2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mac", "1:2"], "--mac '1:2' address 02:5a:00:00:00:01"),
        (["--endpoints", "0"], "--endpoints 1 255 '0'"),
        (["--endpoints", "256"], "--endpoints 1 255 '256'"),
        (["--endpoints", "x"], "--endpoints 1 255 'x'"),
        (["--interface", "eth7"], "interrupt 'eth7'"),
        (["--root", "/absent"], "/absent/proc/interrupts"),
        (["--output", "/proc/absent/file"], "/proc/absent/file No such file"),
    ],
)
def test_bad_input_is_one_sentence(
    options: list[str], words: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["binding", "--root", str(root), *ASK, "--output", str(root / "bindings"), *options]
    assert main(given) == 2
    assert_refused(capsys, words)
    assert not (root / "bindings").exists()


def test_interface_and_address_must_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["binding"]) == 2
    assert "required: --interface, --mac" in capsys.readouterr().err
