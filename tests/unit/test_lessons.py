"""Lessons: what they run, what they say, and one sentence per mistake."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import assert_refused
from support.lessons import small
from support.page import Page

from shrimpmx.cli import lesson as command
from shrimpmx.cli import main
from shrimpmx.experiment.execute import checked_points
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.native.trace import TraceRecord, kind_names
from shrimpmx.nic.strategies import CAUSE_NAMES
from shrimpmx.page.lessons import write
from shrimpmx.page.lessons.compute import runs_of, settings_of
from shrimpmx.page.lessons.lesson import Lesson
from shrimpmx.page.lessons.why import CAUSES, why
from shrimpmx.page.lessons.write import LESSONS, lesson_page
from shrimpmx.results.metrics import METRICS
from shrimpmx.show.lanes import STATES

HOSTILE = "</script><script>alert(1)</script>&\"'"


def silent(_made: int, _of: int) -> None: ...


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_every_setting_can_be_run(lesson: Lesson) -> None:
    base = load_scenario(find_scenario(lesson.scenario)).on(real=False)
    usual = {slider.parameter: slider.values[slider.start] for slider in lesson.sliders}
    for _, settings in settings_of(lesson):
        if sum(settings[name] != value for name, value in usual.items()) > 1:
            continue
        scenario = base.changed(f"{name}={value}" for name, value in settings.items())
        assert len(checked_points(scenario)) == 1


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_it_has_questions_sliders_and_metrics_that_exist(lesson: Lesson) -> None:
    assert len(lesson.questions) == 5
    for question in lesson.questions:
        assert 0 <= question.right < len(question.answers)
    assert len({question.right for question in lesson.questions}) > 1
    for slider in lesson.sliders:
        assert len(slider.values) == len(slider.words) > slider.start
    assert set(lesson.metrics) <= set(METRICS)
    names = {slider.parameter for slider in lesson.sliders}
    assert all(rule.ignores <= names for rule in lesson.rules)
    assert {*lesson.first} <= set(range(len(lesson.rules)))
    assert lesson.name in command.NAMES


def test_rules_share_the_runs_of_what_they_ignore() -> None:
    lesson = small(LESSONS["waiting"], {"tx_gap_ns": (0, 1), "spin_ns": (0, 2)})
    told: list[tuple[int, int]] = []
    runs, places = runs_of(lesson, lambda made, of: told.append((made, of)))
    # Two gaps; spin and block once each, spin-block with two limits.
    assert len(runs) == 2 * (1 + 1 + 2)
    assert told == [(number, len(runs)) for number in range(1, len(runs) + 1)]
    spin, block, both = places[0], places[1], places[2]
    assert places[3:6] == [spin, block, places[5]]
    assert places[5] != both
    assert (runs[spin].figures[1] or 0) < (runs[block].figures[1] or 0)
    assert "--set wait=block" in runs[block].command


# By wake-up: the number of the spin limit that is what a sleep costs.
@pytest.mark.parametrize(("wake_up", "limit"), [(0, 0), (1, 2)])
def test_with_a_limit_of_what_a_sleep_costs_no_wait_pays_more_than_twice_the_best(
    wake_up: int, limit: int
) -> None:
    gaps = (30, 300, 1000)
    lesson = LESSONS["waiting"]
    [limit_ns] = (s.values[limit] for s in lesson.sliders if s.parameter == "spin_ns")
    kept = {"tx_gap_ns": (0, 1, 2), "spin_ns": (limit,), "idle_exit_ns": (wake_up,)}
    runs, places = runs_of(small(lesson, kept), silent)
    costs, times = (
        [[(runs[place].figures[column] or 0) for place in places[at : at + 3]] for at in (0, 3, 6)]
        for column in (-2, -1)
    )
    # The interrupt of each message takes the core for 6.3 µs.
    assert [spin for spin, _, _ in costs] == pytest.approx([gap - 6.3 for gap in gaps], abs=0.1)
    for gap, (_, block, _) in zip(gaps, costs, strict=True):
        # Several messages share a sleep that is longer than the gap.
        sleep_us = limit_ns / 1000
        assert block == pytest.approx(sleep_us, rel=5e-3) if gap > sleep_us else block < sleep_us
    assert [spin < block for spin, block, _ in costs] == [wake_up == 1, False, False]
    assert all(both <= 2 for *_, both in times)
    assert all(both > 1.8 for *_, both in times[1:])


def test_waits_are_those_of_measured_messages() -> None:
    runs, places = runs_of(small(LESSONS["coalescing"], {}), silent)
    figures = [runs[place].figures for place in places]
    # Of half a round trip all but the sender's part is the wait: the first message, which finds no
    # rank, is not among them.
    assert all(0 < figure[0] - figure[-1] < 4 for figure in figures)
    assert figures[1][-1] - figures[0][-1] == pytest.approx(75, abs=0.1)


def test_a_gap_leaves_a_timer_nothing_to_gather() -> None:
    lesson = small(LESSONS["coalescing"], {"workload": (1,), "tx_gap_ns": (0, 1)})
    runs, places = runs_of(lesson, silent)
    gathered, alone = (
        [runs[places[gap * 3 + rule]].figures[2] or 0 for rule in range(2)] for gap in range(2)
    )
    assert gathered[1] < gathered[0] / 2
    assert alone[1] == pytest.approx(alone[0], rel=0.2)


def test_a_gap_hides_a_timer_that_is_shorter_than_its_part_of_a_round_trip() -> None:
    lesson = small(LESSONS["coalescing"], {"tx_gap_ns": (1,), "rx_usecs": (0, 1, 2)})
    runs, places = runs_of(lesson, silent)
    without, *delayed = (runs[places[at]].figures[0] or 0 for at in (0, 1, 4, 7))
    assert delayed[:2] == pytest.approx([without] * 2, rel=1e-3)
    assert delayed[2] > 75 + 10


def test_a_timer_delays_a_ping_pong_and_not_a_streams_rate() -> None:
    lesson = small(LESSONS["coalescing"], {"workload": (0, 1), "size_bytes": (0, 2)})
    runs, places = runs_of(lesson, silent)
    assert len(places) == 2 * 2 * 3
    figures = [dict(zip(lesson.metrics, runs[place].figures[:-2], strict=True)) for place in places]
    small_, large, stream = figures[:3], figures[3:6], figures[6:9]
    assert (small_[1]["half_round_trip"] or 0) > (small_[0]["half_round_trip"] or 0) + 70
    assert all(each["half_round_trip"] is None for each in stream)
    assert all(each["message_rate"] is None for each in small_)
    assert (stream[1]["message_rate"] or 0) > 2 * (stream[0]["message_rate"] or 0)
    # A rank that seldom gets its core finds a pile.
    delays = [runs[place].figures[-1] or 0 for place in places[6:9]]
    assert delays[2] > 3 * delays[1] > 9 * delays[0]
    assert large[0]["interrupts_per_message"] == pytest.approx(25, abs=1)
    assert (large[2]["half_round_trip"] or 0) > (large[0]["half_round_trip"] or 0)


def test_queues_help_bound_processes_and_not_one_core_or_one_pair() -> None:
    kept = {"rx_queues": (0, 1, 2), "pairs": (0, 2), "size_bytes": (1,)}
    runs, places = runs_of(small(LESSONS["queues"], kept), silent)
    # By queues and pairs: in turn, one core, bound.
    trips = [
        [runs[place].figures[0] or 0 for place in places[at : at + 3]] for at in range(0, 18, 3)
    ]
    single, several = trips[::2], trips[1::2]
    assert single[0] == single[1] == single[2]
    assert several[0][2] > 1.5 * several[1][2] > 1.8 * several[2][2]
    assert [each[1] for each in several] == pytest.approx([several[0][1]] * 3, rel=0.1)


def test_interrupts_in_turn_find_sleeping_cores_and_cold_caches() -> None:
    kept = {"pairs": (0,), "size_bytes": (0,), "idle_exit_ns": (0, 1)}
    runs, places = runs_of(small(LESSONS["queues"], kept), silent)
    (turn, one, _), (turn_late, one_late, _) = (
        [runs[place].figures[0] or 0 for place in places[at : at + 3]] for at in (0, 3)
    )
    assert turn > one
    assert turn_late - one_late > turn - one + 5


def test_each_cause_and_common_record_has_a_sentence() -> None:
    assert set(CAUSES) == set(CAUSE_NAMES) - {"none"}
    unsaid = {kind for kind in kind_names() if not why(TraceRecord(0, 0, kind, 0, 1), "spin")}
    assert unsaid == {
        *("note", "irq_wished", "isend_throttled", "resend", "acked", "ack_sent", "unexpected"),
        *("rndv_matched", "pull_start", "pull_request", "pull_again", "block_done", "pull_done"),
        "notified",
    }
    timer = why(TraceRecord(0, 0, "irq_timer", 0, 75_000), "spin")
    assert "75 µs" in timer
    for waiting in ("spin", "block", "spin-block", "sched"):
        assert why(TraceRecord(0, 0, "wait_begin", 0, 0), waiting)
        assert why(TraceRecord(0, 0, "sleep_begin", 0, 0), waiting)


def test_a_page_has_everything_and_loads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lesson = small(LESSONS["queues"], {})
    monkeypatch.setattr(write, "LESSONS", {"queues": lesson})
    place = tmp_path / "lesson.html"
    assert main(["lesson", "queues", "-o", str(place)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{place}\n"
    assert "3 of 3 simulated runs made" in said.err
    page = Page.read(place)
    assert page.unbalanced == []
    assert page.headings[0] == 1
    assert lesson.questions[4].text in page.text
    assert re.findall(r"https?:|\bimport\b|innerHTML|eval\(", page.source) == []
    assert lesson_page(lesson, silent) == place.read_bytes()


@pytest.mark.nightly("every run of each lesson", but=1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["waiting", "queues", "coalescing"])
def test_a_whole_lesson_is_below_5_mb(name: str) -> None:
    assert len(lesson_page(LESSONS[name], silent)) < 5_000_000


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    lesson = small(LESSONS["queues"], {})
    rules = tuple(replace(rule, label=f"{HOSTILE}{rule.label}") for rule in lesson.rules)
    place = tmp_path / "lesson.html"
    place.write_bytes(lesson_page(replace(lesson, rules=rules, title=HOSTILE), silent))
    page = Page.read(place)
    assert page.unbalanced == []
    assert page.source.count("<script") == 3
    assert f"<h1>{HOSTILE}" not in page.source


def test_mistakes_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "queue"]) == 2
    assert_refused(capsys, "coalescing, waiting, queues, not 'queue'; did you mean 'queues'?")
    assert main(["lesson", "queues", "-o", str(tmp_path)]) == 2
    assert_refused(capsys, f"{tmp_path} is a directory; give a file with --output")


def test_every_state_has_a_colour_in_either_light() -> None:
    style = (Path(write.__file__).parents[1] / "templates" / "timeline.css").read_text()
    for state in STATES:
        assert style.count(f"--state-{state.replace(' ', '-')}:") == 2
