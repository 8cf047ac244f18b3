"""What `shrimpmx doctor` finds of things that are optional."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrimpmx.bench.checkup import CHECKS, valgrind


def test_valgrind_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert valgrind in CHECKS
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert valgrind(Path("/")).as_dict()["found"] == "/usr/bin/valgrind"
    assert valgrind(Path("/")).state == "good"
    monkeypatch.setattr("shutil.which", lambda name: None)
    absent = valgrind(Path("/"))
    assert absent.state == "missing"
    assert "shrimpmx caches" in absent.follows
    assert "apt install valgrind" in absent.enable
