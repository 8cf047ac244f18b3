"""The user's runs that are going on, as an onlooker sees them: nothing of a run is mapped or
changed.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from shrimpmx.errors import InputError, OtherBuildError, SegmentError
from shrimpmx.native.segment import (
    SEGMENT_CONTROL,
    RunIdentity,
    Segment,
    is_elsewhere,
    list_segments,
)
from shrimpmx.native.streams import shown_name
from shrimpmx.shared.control import Control

# From the name of a segment to its header.
HEADER_S = 0.5
Found = TypeVar("Found")


def live_runs() -> list[RunIdentity]:
    """The runs of this user, in this pid namespace, whose supervisor lives, the oldest first."""
    found = [owner for name, owner, what in list_segments() if what == "control" and _is_here(name)]
    return sorted((o for o in found if o.is_alive()), key=lambda one: (one.start_ticks, one.pid))


def _is_here(name: str) -> bool:
    return not is_elsewhere(name)


def is_simulated(run: RunIdentity) -> bool:
    """Whether it has a virtual clock, by which no time passes while another process looks; False
    of a run that has ended, or is another build's.
    """
    limit = time.monotonic() + HEADER_S
    while True:
        try:
            return _control_of(run, lambda control: bool(control.is_virtual))
        except OtherBuildError:
            return False
        except SegmentError:
            if time.monotonic() > limit or not run.is_alive():
                return False
            time.sleep(0.01)


def _is_another_builds(run: RunIdentity) -> bool:
    try:
        _control_of(run, lambda control: control)
    except OtherBuildError:
        return True
    except SegmentError:
        pass  # it begins, or has ended
    return False


def choose_run(
    run_id: str | None, *, or_result: bool = False, to_change: bool = False, real: bool = False
) -> RunIdentity:
    """The live run whose id begins with `run_id`; None: the newest real one, and only where there
    is none the newest simulated one, or that of another build.

    InputError if there is none, or more than one; `or_result`: the user might have named a result;
    `to_change`: the newest will do only if no other is live; `real`: a simulated one is refused.
    """
    runs = live_runs()
    if run_id is None:
        chosen = _newest(runs, or_result=or_result, to_change=to_change)
    else:
        chosen = _named(runs, run_id, or_result=or_result)
    if real and is_simulated(chosen):
        raise InputError(
            f"run {chosen.run_id} is simulated, and top shows real runs only: `shrimpmx counters "
            f"{chosen.run_id}` shows its counts so far, --report and --output its figures"
        )
    return chosen


def _newest(runs: list[RunIdentity], *, or_result: bool, to_change: bool) -> RunIdentity:
    if not runs:
        advice = "give a result directory to look at" if or_result else "start one first"
        raise InputError(
            f"no run of yours is live on this machine; {advice} (simulated workloads never are)"
        )
    runs = [run for run in runs if not _is_another_builds(run)] or runs
    runs = [run for run in runs if not is_simulated(run)] or runs
    if to_change and len(runs) > 1:
        known = ", ".join(run.run_id for run in runs)
        raise InputError(f"{len(runs)} runs are live; give the id of the one to change ({known})")
    return runs[-1]


def _named(runs: list[RunIdentity], run_id: str, *, or_result: bool) -> RunIdentity:
    known = ", ".join(run.run_id for run in runs) or "none"
    fitting = [run for run in runs if run.run_id.startswith(run_id)]
    exact = [run for run in fitting if run.run_id == run_id]
    fitting = exact or fitting
    if not fitting:
        missing = f"no result {run_id!r} and no live run of that id"
        if not or_result:
            missing = f"no live run whose id begins with {run_id!r}"
        raise InputError(f"there is {missing} (live: {known})")
    if len(fitting) > 1:
        raise InputError(f"{run_id!r} fits {len(fitting)} live runs; give the whole id ({known})")
    return fitting[0]


def next_run(run: RunIdentity, patience_s: float) -> RunIdentity | None:
    """The real run that the supervisor of `run` has gone on to, as in a sweep.

    None if there is none after `patience_s` seconds, or the supervisor has ended.
    """
    limit = time.monotonic() + patience_s
    while run.is_alive():
        for one in live_runs():
            own = (one.pid, one.start_ticks) == (run.pid, run.start_ticks)
            if one != run and own and not is_simulated(one):
                return one
        if time.monotonic() > limit:
            break
        time.sleep(0.02)
    return None


def command_of(run: RunIdentity) -> str:
    """The command line that `run` was started by; empty once its supervisor has ended."""
    try:
        words = Path(f"/proc/{run.pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return ""
    ours = [index for index, word in enumerate(words) if Path(word).name == "shrimpmx"][:1]
    return shown_name(shlex.join(["shrimpmx", *words[ours[0] + 1 :]] if ours else words))


def counters_now(run: RunIdentity) -> dict[str, dict[str, int]]:
    """What each agent of `run` has counted so far, by agent; SegmentError if the run has ended."""
    return _control_of(run, lambda control: control.counters())


def _control_of(run: RunIdentity, read: Callable[[Control], Found]) -> Found:
    """The result of `read` on a copy of its control segment; SegmentError if there is none."""
    segment = Segment.copy_of(run.segment_name("control"), SEGMENT_CONTROL)
    try:
        return read(Control.attach(segment))
    finally:
        segment.close()
