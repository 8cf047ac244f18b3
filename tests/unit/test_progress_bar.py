"""The progress bar: what varies, what a run waits for, and how long, in one line."""

from __future__ import annotations

from shrimpmx.commands import sweeping
from shrimpmx.commands.progress import Bar, point_words
from shrimpmx.study.scenario import RunPlan, Scenario, plan_runs


def test_progress_shows_what_varies_by_name_in_one_line() -> None:
    declared = Scenario(
        name="x",
        title="t",
        metrics=("half_round_trip",),
        parameters={"iterations": 3000, "rx_usecs": 20},
        sweep={"size_bytes": (0, 1024), "coalescing": ("timeout", "stream"), "mtu": (1500,)},
    )
    axes = sweeping.varying_axes(declared)
    plan = plan_runs(declared, declared.points(), 1)[0]
    words = point_words(plan, axes)
    assert words in {
        f"messages of {size}, coalescing {way}"
        for size in ("0 B", "1 KiB")
        for way in ("timeout", "stream")
    }
    for columns in (30, 50, 200):
        bar = Bar("smoke/pingpong", axes, columns)
        bar.begin(8, 3)
        bar.running(plan, "point 2 of 4, run 1 of 2")
        for _ in range(2):
            lines = bar.lines()
            assert len(lines) == 1
            assert len(lines[0]) <= columns
            assert "3/8" in lines[0]
            assert words[:8] in lines[0]
            bar.waits_for("rank0 to finish")
        bar.end()


def test_progress_says_what_a_run_waits_for_and_how_long() -> None:
    now_s = [100.0]
    plan = RunPlan(0, Scenario(name="x", title="t", metrics=("round_trip",)).points()[0], 0)
    bar = Bar("x", (), 200, clock=lambda: now_s[0])
    bar.begin(6, 0)
    bar.running(plan, "point 1 of 2, run 1 of 3")
    assert "run 1 of 3" in bar.lines()[0]
    now_s[0] += 12
    bar.waits_for("rank1 to finish")
    assert "run 1 of 3, 12 s, waits for rank1 to finish" in bar.lines()[0]
    bar.again("time stolen by the hypervisor")
    now_s[0] += 3
    bar.waits_for("rank1 to finish")
    assert "again (time stolen by the hypervisor), 3 s, waits" in bar.lines()[0]
    bar.end()
    assert bar.position == "point 1 of 2, run 1 of 3"
