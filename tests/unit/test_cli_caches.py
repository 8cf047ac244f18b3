"""`shrimpmx caches`: its table, and input that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import assert_refused

from shrimpmx.bench.caches import simulation
from shrimpmx.bench.caches.callgrind import Cost
from shrimpmx.bench.caches.simulation import CacheFigures, SizeFigures
from shrimpmx.cli import main

FIGURES = CacheFigures(
    ["D1 cache: 32768 B, 64 B, 8-way associative"],
    [SizeFigures(128, 100, 100, Cost(131_100, 62_000, 762, 629), Cost(150_000, 86_000, 0, 0))],
)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "check_valgrind", lambda: None)
    monkeypatch.setattr(simulation, "simulate", lambda *_: FIGURES)


@pytest.mark.usefixtures("simulated")
def test_the_table_has_handler_and_library_per_packet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caches", "--size", "128"]) == 0
    printed = capsys.readouterr()
    lines = [line.split() for line in printed.out.splitlines()]
    assert ["128", "B", "handler", "1311", "620", "7.62", "6.29", "82.5", "%"] in lines
    assert ["128", "B", "library", "1500", "860", "0.00", "0.00", "—"] in lines
    assert "D1 cache: 32768 B" in printed.out


@pytest.mark.usefixtures("simulated")
def test_the_figures_are_kept_as_json(tmp_path: Path) -> None:
    assert main(["caches", "--json", str(tmp_path / "caches.json")]) == 0
    kept = json.loads((tmp_path / "caches.json").read_text())
    assert kept["machine"] == "clovertown-2007"
    assert kept["sizes"][0]["handler"]["last_misses"] == 629


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--size", "-1"], "--size 0 -1"),
        (["--size", "1000000000"], "--size 0 1000000000"),
        (["--packets", "0"], "--packets 1 0"),
        (["--packets", "1000000"], "65536; --packets"),
        (["--machine", "clovertown"], "--machine clovertown-2007 this"),
        (["--machine", "3K,4M"], "3072 cache"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["caches", *arguments]) == 2
    assert_refused(capsys, words)


def test_without_valgrind_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["caches"]) == 2
    assert_refused(capsys, "install package valgrind")
