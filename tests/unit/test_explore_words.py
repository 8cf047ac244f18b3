"""What `explore` recommends: commands, sentences, the picture; and the options that it refuses."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from support.cli import assert_refused
from support.exploring import Program, exploration, scenario_of
from support.results import a_document, a_point

from shrimpmx.cli import main, parse
from shrimpmx.cli.explore import print_findings, print_unfinished, question_of
from shrimpmx.errors import InputError
from shrimpmx.experiment.explore.advice import advice_of
from shrimpmx.experiment.explore.findings import Findings
from shrimpmx.experiment.explore.grid import PLACEMENTS, setting_name
from shrimpmx.experiment.explore.picture import chart_of
from shrimpmx.experiment.explore.words import (
    closing,
    counted_words,
    recommendation,
    rests_on,
    rests_on_simulated,
    texts_of,
    unit_of,
)
from shrimpmx.papers.charts import charts_of
from shrimpmx.settings.strategies import COALESCING_NAMES, WAIT_NAMES
from shrimpmx.show.plot.chart import MapPanel

# Of which a vmmc NIC has the timer.
WAITS = tuple(name for name in WAIT_NAMES if name != "watchdog")


def commands(**names: str) -> list[str]:
    """The commands for one setting."""
    every = {"coalescing": "timeout", "placement": "per-queue", "wait": "block", **names}
    (point,) = scenario_of(4, **{name: [value] for name, value in every.items()}).points()
    return [command for advice in advice_of(point) for command in advice.commands]


def findings(*, budget_s: float = 100.0, marks: bool = True) -> Findings:
    """Of a program for which marks are best, or alike; and which fails with `sched`."""

    def cost(shown: dict[str, str]) -> tuple[float, float, int] | None:
        marked = shown["coalescing"] == "stream"
        return None if shown["wait"] == "sched" else (2.0 - 0.9 * (marked and marks), 1.0, 7)

    scenario = scenario_of(1, coalescing=["timeout", "stream"], wait=["block", "spin", "sched"])
    explored = exploration(Program(cost, noise=0.01), scenario, budget_s)  # type: ignore[arg-type]
    explored.run()
    found = explored.findings()
    assert found is not None
    return found


def test_a_setting_becomes_what_a_machine_takes() -> None:
    assert "ethtool -C IF adaptive-rx off rx-usecs 75 rx-frames 0" in commands()
    assert "ethtool -C IF adaptive-rx off rx-usecs 0 rx-frames 1" in commands(coalescing="disabled")
    assert "ethtool -L IF combined 4" in commands()
    assert any("smp_affinity_list" in each for each in commands())
    assert any(each.startswith("echo 0 > ") for each in commands(placement="one-core"))
    assert any(each.startswith("echo 0-3 > ") for each in commands(placement="round-robin"))
    assert any("mpi_yield_when_idle 1" in each for each in commands(wait="sched"))
    assert any("busy_poll=0" in each for each in commands(wait="block"))
    assert any("busy_poll=50" in each for each in commands(wait="spin"))


def test_a_setting_that_needs_marks_is_a_comment_beside_the_best_that_does_not() -> None:
    found = findings()
    assert found.ordinary is not None
    ordinary = advice_of(found.settings[found.ordinary].point)
    advice = found.advice()
    assert advice[:-1] == ordinary
    assert not advice[-1].commands
    assert found.settings[found.best].name in advice[-1].heading
    plain = dataclasses.replace(found, best=found.ordinary, ordinary=None)
    assert plain.advice() == ordinary


def test_advice_on_waiting_says_where_it_holds() -> None:
    for wait in WAITS:
        scenario = scenario_of(2, coalescing=["timeout"], placement=["one-core"], wait=[wait])
        (point,) = scenario.points()
        assert "share CPUs" in advice_of(point, crowded=True)[2].note
        assert "share CPUs" not in advice_of(point)[2].note


@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
def test_there_is_advice_on_every_coalescing_strategy(coalescing: str) -> None:
    (point,) = scenario_of(
        2, coalescing=[coalescing], placement=["one-core"], wait=["spin"]
    ).points()
    advice = advice_of(point)[0]
    assert coalescing in advice.heading
    assert advice.commands or advice.note


@pytest.mark.parametrize("wait", WAITS)
def test_there_is_advice_on_every_way_to_wait(wait: str) -> None:
    (point,) = scenario_of(2, coalescing=["timeout"], placement=["one-core"], wait=[wait]).points()
    assert wait in advice_of(point)[2].heading
    assert advice_of(point)[2].commands


def test_the_recommendation_names_what_is_alike_and_what_needs_no_marks() -> None:
    found = findings()
    words = "\n".join(recommendation(found))
    assert all(name in words for name in ("stream, block", "stream, spin"))
    assert found.settings[found.best].name.startswith("stream")
    ratio = re.search(r"take timeout, \w+: (\d\.\d+) times", words)
    assert ratio is not None
    assert 1.6 < float(ratio[1]) < 2.0
    plain = findings(marks=False)
    assert plain.best in plain.contenders


def test_the_recommendation_says_what_decided_and_whether_it_is_decided() -> None:
    found = dataclasses.replace(findings(), near=0.6)
    several = dataclasses.replace(found, contenders=[0, 1], as_good=[0, 1], best=0)
    alone = dataclasses.replace(several, as_good=[0], decided_by="time")
    assert "shortest median run time" in "\n".join(recommendation(alone))
    for figure, said, unsaid in (
        ("cpu", "CPU time decides: ", "tie"),
        ("interrupts", "tie in CPU time, too; interrupts decide: ", "least"),
        ("", "tie in CPU time and interrupts", "decide"),
    ):
        words = "\n".join(recommendation(dataclasses.replace(several, decided_by=figure)))
        assert re.search(said, words)
        assert unsaid not in words
    for near, chance in ((0.3, 0.9), (None, None)):
        unsure = dataclasses.replace(alone, near=near, chance=chance)
        assert "Not decided" in "\n".join(recommendation(unsure))
    assert "Not decided" not in "\n".join(recommendation(alone))


def test_figures_that_do_not_vary_are_not_called_hard_to_tell_apart() -> None:
    noisy = findings()
    exact = dataclasses.replace(noisy, is_exact=True, contenders=[0, 1], as_good=[0, 1], best=0)
    for found, words in ((exact, ("within 2 %", "exact", "ratio")), (noisy, ("may be", "95 %"))):
        page = io.StringIO()
        print_findings(found, Console(file=page, width=100), texts_of(found, "", []))
        assert all(each in page.getvalue() for each in words)
        unsure = ("likely", "may be as good", "probability")
        assert any(each in page.getvalue() for each in unsure) == (found is noisy)


def test_the_last_line_says_what_to_take_or_how_to_decide() -> None:
    found = dataclasses.replace(findings(), near=0.9)
    assert found.ordinary is not None
    names = [found.settings[index].name for index in (found.best, found.ordinary)]
    assert all(name in closing(found) for name in names)
    alone = dataclasses.replace(found, ordinary=None)
    assert names[0] in closing(alone)
    assert names[1] not in closing(alone)
    for near in (0.3, None):
        unsure = closing(dataclasses.replace(found, near=near))
        assert names[0] in unsure
        assert found.next_step in unsure


@pytest.mark.parametrize(
    ("times_us", "unit"),
    [([2e6, 3e5], "s"), ([2e4, 0.0], "ms"), ([300.0, 1e6], "ms"), ([30.0], "µs")],
)
def test_times_are_written_in_a_unit_that_shows_the_least_of_them(
    times_us: list[float], unit: str
) -> None:
    assert unit_of(times_us)[0] == unit
    assert unit_of([])[0] == unit_of([0.0])[0] == "s"


def test_many_tied_settings_are_not_all_named() -> None:
    found = findings()
    settings = {
        index: dataclasses.replace(found.settings[found.best], index=index, name=f"name{index}")
        for index in range(7)
    }
    many = dataclasses.replace(found, settings=settings, best=0, contenders=range(7), ordinary=None)
    words = "\n".join(recommendation(many))
    assert "name1; name2; name3 and 3 others (marked so among the settings)" in words
    assert "name4" not in words
    five = "\n".join(recommendation(dataclasses.replace(many, contenders=range(5))))
    assert "name4" in five


def test_settings_that_are_not_all_run_are_shown_without_a_recommendation() -> None:
    found = findings()
    page = io.StringIO()
    print_unfinished(found, Console(file=page, width=80))
    for setting in found.usable:
        assert re.search(rf"^ +{setting.name} ", page.getvalue(), re.M)
    assert "→" not in page.getvalue()
    assert "ommended" not in page.getvalue()


def test_the_table_fits_80_columns_and_breaks_no_figure() -> None:
    def cost(_shown: object) -> tuple[float, float, int]:
        return 1234.5, 123.4, 1234567

    scenario = scenario_of(2, coalescing=["disabled"], wait=["spin-block", "spin"])
    explored = exploration(Program(cost, noise=0.3), scenario, 1e6, most=6)
    explored.run()
    found = explored.findings()
    assert found is not None
    page = io.StringIO()
    print_unfinished(found, Console(file=page, width=80))
    assert max(map(len, page.getvalue().splitlines())) <= 80
    figures = r" 1,\d{3}( \[1,\d{3}, 1,\d{3}\])? +111\.1 +12\.34 +1,234,570 +\d+ *$"
    rows = [match[1] for match in re.finditer(figures, page.getvalue(), re.M)]
    assert len(rows) == len(found.usable) == 6
    assert any(rows)


def test_what_simulated_times_rest_on_is_said() -> None:
    none, measured, given = (
        " ".join(rests_on_simulated(platform, compute, cores, {"packet": 700, "event": 0}))
        for platform, compute, cores in (
            ("none", "none", 1),
            ("mine", "measured", 4),
            ("mine", 9, 4),
        )
    )
    assert "--set platform=NAME" in none
    assert "--set compute=measured" in none
    assert "platform mine. It has no cost of events or sends: these are free." in measured
    assert "free" not in none
    assert "no two runs are equal" in measured
    assert "9 ns for each call" in given
    assert "1 core " in none
    assert "4 cores " in given


@pytest.mark.parametrize("computes", [False, True])
@pytest.mark.parametrize("marked", [False, True])
def test_it_is_said_what_figures_are_of(marked: bool, computes: bool) -> None:
    found = findings()
    best = found.settings[found.best]
    measured = dataclasses.replace(best.measured, marked=marked)
    settings = {**found.settings, found.best: dataclasses.replace(best, measured=measured)}
    words = counted_words(dataclasses.replace(found, settings=settings), computes=computes)
    assert ("MPI_Pcontrol" in words) == marked
    assert ("MPI.Pcontrol(1)" in words) != marked
    # Imports take time where computing does, and count unless sections leave them out.
    assert ("import MPI last" in words) == (computes and not marked)
    assert ("MPI_Init" in words) != marked
    assert "50 %" in words


def test_exact_figures_are_told_by_their_ratios() -> None:
    def cost(shown: dict[str, str]) -> tuple[float, float, int]:
        return (
            {"disabled": 1.0, "open-mx": 1.0, "stream": 1.01, "timeout": 1.5}[shown["coalescing"]],
            1.0,
            1,
        )

    explored = exploration(
        Program(cost, drawn=()),  # type: ignore[arg-type]
        scenario_of(1, wait=["block"]),
    )
    explored.run()
    found = explored.findings()
    assert found is not None
    words = " ".join(recommendation(found))
    assert "(the same)" in words
    assert "stream, block (1.010 times" in words
    assert "timeout, block (1.500 times" in words
    assert not any(each in words for each in ("probability", "decided", "--budget", "--runs"))


def test_ties_are_broken_alike_for_all_choices_and_settings_are_listed_by_time() -> None:
    costs = {
        ("open-mx", "spin"): (1.0, 3.0, 1),
        ("open-mx", "block"): (1.001, 2.0, 1),
        ("stream", "block"): (1.015, 2.5, 1),
        ("stream", "spin"): (1.01, 2.5, 1),
        ("disabled", "spin"): (1.2, 3.0, 2),
        # As good as the one before, within 2 %.
        ("disabled", "block"): (1.207, 2.0, 2),
        ("timeout", "spin"): (1.5, 3.0, 1),
        ("timeout", "block"): (1.5, 1.0, 1),
    }
    explored = exploration(
        Program(lambda shown: costs[shown["coalescing"], shown["wait"]], drawn=()),
        scenario_of(1, wait=["spin", "block"]),
    )
    explored.run()
    found = explored.findings()
    assert found is not None
    names = {index: each.name for index, each in found.settings.items()}
    assert names[found.best] == "open-mx, block"
    assert found.ordinary is not None
    assert names[found.ordinary] == "disabled, block"
    others = ["open-mx, spin", "stream, spin", "stream, block"]
    assert [names[index] for index in found.contenders] == ["open-mx, block", *others]
    words = " ".join(recommendation(found))
    assert sorted(others, key=words.index) == others


def test_times_of_shared_cpus_and_of_dilated_hosts_are_called_so() -> None:
    assert any("9 processes" in line and "2 CPUs: " in line for line in rests_on(9, 2, 1.0, []))
    assert any("24 times" in line for line in rests_on(9, 16, 24.0, ["a limit"]))


def test_the_report_has_each_setting_once_and_what_failed() -> None:
    found = findings()
    page = io.StringIO()
    print_findings(
        found,
        Console(file=page, width=80),
        texts_of(found, "", rests_on(5, 2, 1.0, []), crowded=True),
    )
    for setting in found.usable:
        assert re.search(rf"^[→= *]+ {setting.name} ", page.getvalue(), re.M)
    assert all(f"failed: {setting.name}" in page.getvalue() for setting in found.failed)


def test_the_picture_names_the_frontier_and_the_recommended_setting() -> None:
    found = findings()
    (panel,) = chart_of({**found.as_dict(), "program": "prog"}).panels
    assert isinstance(panel, MapPanel)
    assert len(panel.spots) == len(found.usable)
    named = {spot.label for spot in panel.spots if spot.label}
    assert named == {found.settings[index].name for index in {*found.frontier, found.best}}


def test_the_picture_tells_of_intervals_only_where_figures_have_some() -> None:
    found = {**findings().as_dict(), "program": "prog"}
    for exact in (False, True):
        (caption,) = chart_of({**found, "exact": exact}).caption
        assert ("intervals" in caption, "exact" in caption) == (not exact, exact)


def test_the_result_of_an_exploration_is_drawn_as_this_picture() -> None:
    found = findings()
    kept = {**found.as_dict(), "program": "prog", "texts": []}
    points = [a_point({"coalescing": name}, {"run_time": 1.0}) for name in ("timeout", "stream")]
    document = a_document("explore", points, "coalescing", explore=kept)
    assert charts_of(document) == [chart_of(kept)]
    with pytest.raises(InputError, match=r"damaged: explore\.program"):
        charts_of({**document, "explore": found.as_dict()})


def test_no_name_of_a_setting_is_cut() -> None:
    found = findings()
    long = {
        index: dataclasses.replace(setting, name=f"a_file_of_my_own.py:MyClass{index}, block")
        for index, setting in found.settings.items()
    }
    page = io.StringIO()
    print_unfinished(dataclasses.replace(found, settings=long), Console(file=page, width=80))
    lines = page.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    # Of each line, the part in the column of names.
    begin = next(line for line in lines if "setting" in line).index("setting")
    end = next(line for line in lines if "setting" in line).index("time")
    names = "".join(line[begin:end].split("  ")[0].strip() for line in lines)
    assert all(f"MyClass{each.index}" in names for each in found.usable)


def test_the_options_are_those_of_mpirun_and_the_settings() -> None:
    words = "explore -n 4 --coalescing stream,dim --wait adaptive --set rx_usecs=20,75 prog 1"
    scenario = question_of(parse(words.split())).scenario()
    points = scenario.points()
    assert len(points) == (2 + 1) * len(PLACEMENTS) * 1  # dim heeds no rx_usecs
    assert {point.parameters.host.cores for point in points} == {2}
    assert points[0].parameters.workload.arguments == "1"


def test_what_a_coalescing_strategy_does_not_heed_makes_no_setting() -> None:
    words = "explore -n 2 --coalescing disabled,open-mx,timeout --wait block --placement one-core "
    words += "--set rx_usecs=20,75 --set rx_frames=0,4 --set ack_delay_ns=10,20 prog"
    scenario = question_of(parse(words.split())).scenario()
    names = [setting_name(scenario, point) for point in scenario.points()]
    assert len(set(names)) == len(names) == 2 * (1 + 2 + 4)
    assert "disabled, block, ack_delay_ns 10 ns" in names
    assert "open-mx, block, rx_usecs 75 µs, ack_delay_ns 20 ns" in names
    assert "timeout, block, rx_usecs 75 µs, rx_frames 4, ack_delay_ns 20 ns" in names


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("-n 2", "shrimpmx explore -n 2 PROGRAM ARGS"),
        ("prog", "-n/-np"),
        ("-n 2 --budget 0 prog", "--budget must be more than 0 seconds, not 0"),
        ("-n 2 --budget nan prog", "--budget"),
        ("-n 2 --coalescing streem prog", "did you mean 'stream'"),
        ("-n 2 --coalescing stream, prog", "--coalescing takes names"),
        ("-n 2 --wait spin,spin prog", "'spin' twice"),
        ("-n 2 --wait watchdog prog", "vmmc"),
        ("-n 2 --placement per-core prog", "--placement must be one of round-robin, one-core"),
        ("-n 2 --placement per-queue,per-queue prog", "twice"),
        ("-n 2 --set wait=spin prog", "--wait"),
        ("-n 2 --set rx-queues=2 prog", "--placement"),
        ("-n 2 --set repeats=2 prog", "--runs"),
        ("-n 2 --set cores=1,2 prog", "give cores one value"),
        ("-n 2 --set nic=mx prog", "nic 'mx'"),
        ("-n 2 --runs 0 prog", "--runs must be 1 to 50, not 0"),
        ("-n 1 prog", "explore needs at least two nodes"),
        ("-n 2 --for speed prog", "'time', 'cpu', 'interrupts'"),
        ("-n 2 --resume prog", "--resume needs --output"),
        ("-n 2 --timeout 0 prog", "--timeout"),
        ("-n 2 no-such-program", "no program 'no-such-program'"),
        ("-n 2 --set switch_ns=3 true", "switch_ns describes simulated hosts"),
        ("-n 2 --engine simulated --set realtime=false true", "needs --engine forked"),
        ("-n 2 --engine simulated --set cpus=0 true", "has CPUs of its own"),
    ],
)
def test_what_cannot_be_explored_is_refused(
    words: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["explore", *words.split()]) == 2
    assert_refused(capsys, sentence)
    assert list(tmp_path.iterdir()) == []
