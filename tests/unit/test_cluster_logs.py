"""The log of a run: not written through a link, and quiet where the disk is full."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest
from support.users import needs_namespaces, with_own_mounts

from shrimpmx.cluster.engine.logs import LOGGER, run_log
from shrimpmx.errors import MachineError


def test_a_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("old")
    (tmp_path / "shrimpmx.log").symlink_to("precious")
    with pytest.raises(MachineError, match="cannot be written"), run_log(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "old"


def test_the_log_of_one_process_needs_no_thread(tmp_path: Path) -> None:
    threads = threading.active_count()
    with run_log(tmp_path, forks=False) as path:
        LOGGER.info("a line")
        assert threading.active_count() == threads
    assert path.read_text().endswith("a line\n")
    assert not LOGGER.handlers


@pytest.mark.parametrize("forks", [True, False])
def test_handlers_of_the_caller_stay_as_they_are(forks: bool, tmp_path: Path) -> None:
    """The suite looks at the descriptors, of which a queue of records takes some."""
    theirs = [logging.FileHandler(tmp_path / name) for name in ("one", "two")]
    for handler in theirs:
        LOGGER.addHandler(handler)
    try:
        for line in ("a line", "another"):
            with run_log(tmp_path, forks=forks) as path:
                LOGGER.info(line)
        assert LOGGER.handlers == theirs
        assert path.read_text().endswith("another\n")
        assert (tmp_path / "two").read_text() == "a line\nanother\n"
    finally:
        for handler in theirs:
            LOGGER.removeHandler(handler)
            handler.close()


@needs_namespaces
def test_a_log_that_finds_no_room_says_nothing(tmp_path: Path) -> None:
    said = os.memfd_create("said")

    def work() -> None:
        os.dup2(said, 2)
        with run_log(tmp_path) as path:
            for _ in range(50):
                LOGGER.info("x" * 1000)
        assert path.stat().st_size > 0
        assert os.fstat(said).st_size == 0

    try:
        with_own_mounts(work, ("tmpfs", "size=16k", str(tmp_path)))
    finally:
        os.close(said)
