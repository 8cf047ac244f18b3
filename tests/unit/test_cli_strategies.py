"""Strategies on the command line: the list, and settings that make no sense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import assert_refused

from shrimpmx.cli import main
from shrimpmx.settings.strategies import COALESCING_NAMES, WAIT_NAMES


def test_list_shows_each_strategy_and_when_it_wins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "list.json"
    assert main(["list", "--strategies", "--json", str(kept)]) == 0
    out = capsys.readouterr().out
    rows = json.loads(kept.read_text())["strategies"]
    of_waiting = [row["name"] for row in rows if row["of"] == "wait"]
    assert [row["name"] for row in rows if row["of"] == "coalescing"] == list(COALESCING_NAMES)
    assert of_waiting == list(WAIT_NAMES)
    assert "wins when" in out
    for row in rows:
        assert row["name"] in out
        assert row["rule"]
        assert row["wins when"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["coalescing=fast"], "coalescing"),
        (["rx_usecs=-1"], "rx_usecs 0 -1"),
        (["coalescing=watchdog", "rx_usecs=0"], "rx_usecs 0 watchdog"),
        (["coalescing=watchdog", "mark_resets_timer=false"], "mark_resets_timer false"),
    ],
)
def test_a_bad_setting_is_one_sentence_and_exit_2(
    settings: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word for setting in settings for word in ("--set", setting)]
    assert main(["run", "smoke/pingpong", *given]) == 2
    assert_refused(capsys, words)
