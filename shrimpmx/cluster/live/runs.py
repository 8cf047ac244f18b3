"""The user's runs that are going on, as an onlooker sees them: nothing of a run is mapped or
changed.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from shrimpmx.errors import InputError
from shrimpmx.native.segment import SEGMENT_CONTROL, RunIdentity, Segment, list_segments
from shrimpmx.shared.control import Control


def live_runs() -> list[RunIdentity]:
    """The runs of this user whose supervisor lives, the oldest first."""
    found = [owner for _, owner, what in list_segments() if what == "control"]
    return sorted((o for o in found if o.is_alive()), key=lambda one: (one.start_ticks, one.pid))


def choose_run(
    run_id: str | None, *, or_result: bool = False, to_change: bool = False
) -> RunIdentity:
    """The live run whose id begins with `run_id`; None: the newest.

    InputError if there is none, or more than one; `or_result`: the user might have named a result;
    `to_change`: the newest will do only if no other is live.
    """
    runs = live_runs()
    known = ", ".join(run.run_id for run in runs) or "none"
    if run_id is None:
        if not runs:
            advice = "give a result directory to look at" if or_result else "start one first"
            raise InputError(
                f"no run of yours is live on this machine; {advice} (simulated workloads never are)"
            )
        if to_change and len(runs) > 1:
            raise InputError(
                f"{len(runs)} runs are live; give the id of the one to change ({known})"
            )
        return runs[-1]
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
    """The run that the supervisor of `run` has gone on to, as in a sweep.

    None if there is none after `patience_s` seconds, or the supervisor has ended.
    """
    limit = time.monotonic() + patience_s
    while run.is_alive():
        for one in live_runs():
            if one != run and (one.pid, one.start_ticks) == (run.pid, run.start_ticks):
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
    return shlex.join(["shrimpmx", *words[ours[0] + 1 :]] if ours else words)


def counters_now(run: RunIdentity) -> dict[str, dict[str, int]]:
    """What each agent of `run` has counted so far, by agent; SegmentError if the run has ended."""
    segment = Segment.copy_of(run.segment_name("control"), SEGMENT_CONTROL)
    try:
        return Control.attach(segment).counters()
    finally:
        segment.close()
