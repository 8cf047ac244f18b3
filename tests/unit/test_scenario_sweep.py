"""Sweeps with a fake executor: what is kept, resumed, repeated, and how results look."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from shrimpmx.errors import AgentError, InputError
from shrimpmx.experiment.measuring import RETRIES
from shrimpmx.experiment.outcome import per_message_ns
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.run_data import merged, run_data
from shrimpmx.experiment.scenario import Ratio, Scenario
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.disturbance import QUIET
from shrimpmx.results.metrics import METRICS, Outcome, shown_figures
from shrimpmx.results.result import load_result
from shrimpmx.results.runs import DISTANCE_DILATION, ONE_CPU
from shrimpmx.show.report import notes, print_report

SCENARIO = Scenario(
    name="x",
    title="A title",
    shows="What it shows.",
    parameters={"wait": "spin"},
    sweep={"size_bytes": (0, 32768), "coalescing": ("timeout", "open-mx")},
    compare="coalescing",
    rows="size_bytes",
    columns="coalescing",
    repeats=2,
    metrics=("half_round_trip", "interrupts_per_message", "cpu_per_message"),
    expectations=(
        Ratio(
            text="the timeout is slow",
            metric="half_round_trip",
            of={"coalescing": "timeout"},
            to={"coalescing": "open-mx"},
            at_least=2,
        ),
    ),
)


def near(_cpus: Sequence[int]) -> tuple[str, float | None]:
    return "near", 100.0


class Fake:
    """An executor that counts its calls and may fail at one of them."""

    def __init__(self, fail_at: int | None = None, error: BaseException | None = None) -> None:
        self.calls: list[tuple[dict[str, Any], int]] = []
        self.fail_at = fail_at
        self.error = error or AgentError("rank0 was killed by SIGKILL", "rank0")

    def __call__(self, point: Point, seed: int) -> Outcome:
        if len(self.calls) == self.fail_at:
            raise self.error
        self.calls.append((point.shown, seed))
        base = 95_000 if point.parameters.nic.coalescing == "timeout" else 18_000
        samples = np.random.default_rng(seed).normal(base, 100, 50)
        counters = {"node0.nic": {"irq_raised": 60}, "rank0": {"recv_messages": 50}}
        return Outcome(samples, counters, {}, {}, {"processes": []}, ("rank0",))


def sweep(executor: Fake, output: Path | None = None, **options: Any) -> Sweep:
    options = {"figures": QUIET, **options}
    return Sweep(SCENARIO, executor, output=output, prober=near, **options)


def test_the_document_is_as_promised() -> None:
    document = sweep(Fake()).run()
    assert document["schema"] == 1
    assert document["scenario"] == "x"
    assert {"environment", "placement", "points"} <= set(document)
    assert len(document["points"]) == 4
    point = document["points"][0]
    assert point["params"] == {"wait": "spin", "size_bytes": 0, "coalescing": "timeout"}
    metric = point["metrics"]["half_round_trip"]
    assert metric["unit"] == "us"
    assert len(metric["samples"]) == 100
    assert metric["ci95"][0] <= metric["median"] <= metric["ci95"][1]
    assert metric["median"] == pytest.approx(95, rel=0.01)
    assert point["metrics"]["cpu_per_message"] == {"unavailable": "the kernel reported no CPU time"}
    assert point["metrics"]["interrupts_per_message"]["samples"] == [1.2, 1.2]
    assert point["counters"]["node0.nic"] == {"irq_raised": 120}
    assert point["states"] == ["near", "near"]
    assert document["expectations"][0]["verdict"] == "as expected"
    json.dumps(document, allow_nan=False)


def test_runs_to_compare_have_the_same_seeds_and_order_follows_the_sweeps() -> None:
    one, same, other = Fake(), Fake(), Fake()
    sweep(one).run()
    sweep(same).run()
    sweep(other, seed=2).run()
    assert one.calls == same.calls
    assert [shown for shown, _ in one.calls] != [shown for shown, _ in other.calls]
    seeds: dict[str, set[int]] = {}
    for shown, seed in one.calls:
        seeds.setdefault(str(shown), set()).add(seed)
    assert list(seeds.values()) == [{1, 2}] * 4


@pytest.mark.parametrize("error", [AgentError("rank0 died"), KeyboardInterrupt()])
def test_a_failure_keeps_what_was_measured_and_resumes(
    tmp_path: Path, error: BaseException
) -> None:
    output = tmp_path / "r"
    failing = Fake(fail_at=3, error=error)
    interrupted = sweep(failing, output)
    with pytest.raises(type(error)):
        interrupted.run()
    assert interrupted.runs_done == 3
    kept = load_result(output)
    assert kept["complete"] is False
    assert kept["points"]
    rest = Fake()
    document = sweep(rest, output, resume=True).run()
    assert len(rest.calls) == 5
    assert document["complete"]
    whole = sweep(Fake(), tmp_path / "whole").run()
    assert document["points"] == whole["points"]


def test_resuming_needs_the_same_sweep(tmp_path: Path) -> None:
    with pytest.raises(AgentError):
        sweep(Fake(fail_at=1), tmp_path / "r").run()
    with pytest.raises(InputError, match="another seed"):
        sweep(Fake(), tmp_path / "r", seed=2, resume=True).run()
    other = dataclasses.replace(sweep(Fake(), tmp_path / "r", resume=True))
    other.scenario = SCENARIO.changed(["repeats=3"])
    with pytest.raises(InputError, match="holds a result of other settings than asked for"):
        other.run()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"params": {"wait": "spin"}}, "its parameters are those of another point"),
        ({"metrics": {}}, "it has other metrics than the scenario"),
        ({"state": 7}, "a point's 'state' is not a state of the CPUs"),
    ],
)
def test_a_damaged_run_is_told_before_anything_goes_on(
    change: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(AgentError):
        sweep(Fake(fail_at=1), tmp_path / "r").run()
    [path] = (tmp_path / "r" / "points").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    rest = Fake()
    with pytest.raises(InputError, match=f"^point {path} is damaged: {sentence}$"):
        sweep(rest, tmp_path / "r", resume=True).run()
    assert rest.calls == []


def test_a_run_beyond_the_sweep_is_damage(tmp_path: Path) -> None:
    with pytest.raises(AgentError):
        sweep(Fake(fail_at=1), tmp_path / "r").run()
    [path] = (tmp_path / "r" / "points").iterdir()
    path.rename(path.with_name("0008.json"))
    with pytest.raises(InputError, match=r"0008\.json is damaged: the sweep has only 8 runs$"):
        sweep(Fake(), tmp_path / "r", resume=True).run()


def test_a_mixed_sample_is_taken_again() -> None:
    states = iter(["near", "far"] * 1000)
    fake = Fake()
    flipping = Sweep(SCENARIO, fake, prober=lambda _cpus: (next(states), 100.0), figures=QUIET)
    document = flipping.run()
    assert len(fake.calls) == 8 * (RETRIES + 1)
    assert all(set(point["states"]) == {"mixed"} for point in document["points"])


def test_a_time_is_summarised_from_the_runs_of_one_state() -> None:
    point = SCENARIO.points()[0]
    runs = [
        run_data(
            point,
            Outcome(np.full(20, ns), {"n": {"irq_raised": count}, "r": {"recv_messages": 10}}),
            ("half_round_trip", "interrupts_per_message"),
            state,
            [1.0, 1.0],
        )
        for state, ns, count in (("near", 1e3, 10), ("far", 5e3, 20), ("far", 6e3, 30))
    ]
    found = merged(point, runs)
    assert found["state"] == "far"
    assert found["states"] == ["near", "far", "far"]
    time, count = (found["metrics"][name] for name in runs[0]["metrics"])
    assert (time["state"], time["median"], time["ci95"][0]) == ("far", 5.5, 5.0)
    assert len(time["samples"]) == 60
    assert "state" not in count
    assert (count["median"], count["ci95"]) == (2.0, [1.0, 3.0])


def test_percentiles_are_those_of_the_runs_that_the_median_is_of() -> None:
    point = SCENARIO.points()[0]
    near, far = (np.arange(1.0, 201) * 1e3 * factor for factor in (1, 10))
    outcomes = [(Outcome(near, {}, dilation=2.0), "near")] * 2
    outcomes.append((Outcome(far, {}, dilation=2.0), "far"))
    runs = [run_data(point, one, ("half_round_trip",), way, [1.0]) for one, way in outcomes]
    metric = merged(point, runs)["metrics"]["half_round_trip"]
    assert metric["p99"] == pytest.approx(np.percentile([*near, *near], 99) / 1000)
    assert "p99.9" not in metric  # of 400 samples
    assert metric["max"] == 200
    assert metric["scaled"]["max"] == 100
    many = [run_data(point, Outcome(np.tile(near, 5), {}), ("half_round_trip",), "near", [1.0])]
    assert merged(point, many)["metrics"]["half_round_trip"]["p99.9"] == pytest.approx(
        200, rel=0.01
    )
    few = [run_data(point, Outcome(near[:30], {}), ("half_round_trip",), "near", [1.0])]
    assert "p99" not in merged(point, few)["metrics"]["half_round_trip"]


def test_the_longest_of_repeats_is_no_sum() -> None:
    point = SCENARIO.points()[0]
    nics = [{"irq_deferred": n, "irq_deferred_longest_ns": 1000 * n} for n in (3, 5, 2)]
    outcomes = [Outcome(np.full(20, 1e3), {"node0.nic": nic, "rank0": {}}) for nic in nics]
    runs = [run_data(point, one, ("deferral_longest",), "near", [1.0, 1.0]) for one in outcomes]
    found = merged(point, runs)
    assert found["counters"]["node0.nic"] == {"irq_deferred": 10, "irq_deferred_longest_ns": 5000}
    assert found["metrics"]["deferral_longest"]["samples"] == [3.0, 5.0, 2.0]
    none = Outcome(np.full(20, 1e3), {"node0.nic": {"irq_deferred": 0}})
    assert METRICS["deferral_longest"].compute(none) == "no interrupt was put off"


def test_a_figure_of_another_state_is_starred_and_no_rival() -> None:
    document = sweep(Fake()).run()
    odd = document["points"][1]
    odd["state"] = odd["metrics"]["half_round_trip"]["state"] = "far"
    odd["states"] = ["far", "far"]
    console = Console(width=80)
    with console.capture() as capture:
        print_report(document, console)
    text = capture.get()
    assert len(re.findall(r"\d\*", text)) == 2, "the median, and the tail"
    assert "* measured at another distance of the CPUs than most" in " ".join(text.split())
    assert re.search(r"\d\* │", text)
    assert "near unless starred (*)" in " ".join(text.split())


def test_a_single_row_keeps_its_name() -> None:
    document = Sweep(SCENARIO.changed(["size_bytes=0"]), Fake(), prober=near, figures=QUIET).run()
    console = Console(width=80)
    with console.capture() as capture:
        print_report(document, console)
    assert "message" in capture.get()
    assert "0 B" in capture.get()


def printed(document: dict[str, Any], width: int = 100) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        print_report(document, console)
    return capture.get()


def test_an_axis_with_one_value_is_in_the_title_and_numbers_have_their_axis_and_unit() -> None:
    scenario = Scenario(
        name="x",
        title="t",
        sweep={"size_bytes": (4096,), "rx_usecs": (10, 25), "coalescing": ("timeout", "stream")},
        columns="rx_usecs",
        metrics=("half_round_trip",),
    )
    text = printed(Sweep(scenario, Fake(), prober=near, figures=QUIET).run())
    assert "Half round trip, µs — messages of 4 KiB — lower is better" in text
    assert "rx_usecs 10 µs" in text
    assert "rx_usecs 25 µs" in text
    single = printed(Sweep(scenario.changed(["rx_usecs=10", "coalescing=stream"]), Fake(),
                           prober=near, figures=QUIET).run())  # fmt: skip
    for words in ("4 KiB", "rx_usecs 10 µs", "coalescing stream"):
        assert words in single


def test_a_verdict_says_what_it_covers() -> None:
    document = sweep(Fake()).run()
    assert document["expectations"][0]["scope"] == "all sizes"
    assert "as expected: the timeout is slow (all sizes)" in printed(document)
    one = Sweep(SCENARIO.changed(["size_bytes=0"]), Fake(), prober=near, figures=QUIET).run()
    assert one["expectations"][0]["scope"] == "messages of 0 B"


def test_placement_limits_reach_point_and_verdict() -> None:
    class OneCpu(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            crowded = {"processes": [{"cpu": 0}, {"cpu": 0}]}
            return dataclasses.replace(super().__call__(point, seed), placement=crowded)

    document = sweep(OneCpu()).run()
    assert document["points"][0]["limits"] == [ONE_CPU]
    assert document["expectations"][0]["verdict"] == "not measurable here"
    assert document["expectations"][0]["detail"].startswith(ONE_CPU)


def test_a_binding_file_that_fits_no_nic_is_a_note_of_the_result() -> None:
    class Unbound(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            outcome = super().__call__(point, seed)
            words = "the binding file fits none" if len(self.calls) == 1 else ""
            return dataclasses.replace(
                outcome, placement={**outcome.placement, "binding_note": words}
            )

    document = sweep(Unbound()).run()
    assert sorted(point["binding_notes"] for point in document["points"]) == [
        [], [], [], ["the binding file fits none"],
    ]  # fmt: skip
    assert notes(document).count("the binding file fits none") == 1


def test_a_point_whose_interrupts_were_steered_is_not_judged() -> None:
    class Steered(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            outcome = super().__call__(point, seed)
            return dataclasses.replace(outcome, steered=(0,) if len(self.calls) == 1 else ())

    document = sweep(Steered()).run()
    words = "interrupts of node 0 were redirected during the run (shrimpmx affinity)"
    assert sorted(point["steered"] for point in document["points"]) == [[], [], [], [0]]
    [point] = [point for point in document["points"] if point["steered"]]
    assert point["limits"] == [words]
    assert document["expectations"][0]["verdict"] == "not measurable here"
    assert document["expectations"][0]["detail"].startswith(words)
    assert f"{words}, so nothing is judged there: messages of" in "\n".join(notes(document))


def test_a_steered_run_is_kept_although_its_sample_is_mixed() -> None:
    class Steered(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            outcome = super().__call__(point, seed)
            return dataclasses.replace(outcome, steered=(1,) if len(self.calls) == 2 else ())

    states, fake = iter(["near", "far"] * 1000), Steered()
    document = Sweep(
        SCENARIO, fake, prober=lambda _cpus: (next(states), 100.0), figures=QUIET
    ).run()
    assert len(fake.calls) == 2 + 7 * (RETRIES + 1), "not measured again once it was steered"
    assert sorted(point["steered"] for point in document["points"]) == [[], [], [], [1]]
    [point] = [point for point in document["points"] if point["steered"]]
    assert point["limits"] == [
        "interrupts of node 1 were redirected during the run (shrimpmx affinity)"
    ]


def test_dilated_times_are_given_raw_and_scaled() -> None:
    class Slow(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            costs = {"interrupt": 9_000, "packet": 0}
            outcome = super().__call__(point, seed)
            return dataclasses.replace(outcome, dilation=10.0, host_costs_ns=costs)

    document = sweep(Slow()).run()
    point = document["points"][0]
    assert point["time_dilation"] == 10.0
    half = point["metrics"]["half_round_trip"]
    assert half["scaled"]["median"] == pytest.approx(half["median"] / 10)
    assert half["scaled"]["ci95"] == pytest.approx([end / 10 for end in half["ci95"]])
    assert shown_figures(half) is half["scaled"]
    interrupts = point["metrics"]["interrupts_per_message"]
    assert "scaled" not in interrupts
    assert shown_figures(interrupts) is interrupts
    assert METRICS["message_rate"].scale(10.0) == 10.0
    console = Console(width=200)
    with console.capture() as capture:
        print_report(document, console)
    text = capture.get()
    assert "divided by 10" in text
    assert "0.900 µs" in text  # an interrupt of the emulated host
    assert "9.5" in text


def test_the_distance_of_the_cpus_is_no_matter_where_times_are_dilated() -> None:
    class Slow(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            return dataclasses.replace(super().__call__(point, seed), dilation=DISTANCE_DILATION)

    probed = itertools.cycle(["near", "far", "far"])
    executor = Slow()
    slow = Sweep(SCENARIO, executor, prober=lambda _cpus: (next(probed), 100.0), figures=QUIET)
    document = slow.run()
    assert len(executor.calls) == 8, "no run is repeated for its distance"
    assert document["points"][0]["states"] == ["any", "any"]
    assert document["expectations"][0]["verdict"] == "as expected"
    assert "CPUs" not in document["expectations"][0]["detail"]


def test_a_sweep_of_platforms_says_whose_times_they_are() -> None:
    class Slow(Fake):
        def __call__(self, point: Point, seed: int) -> Outcome:
            outcome = super().__call__(point, seed)
            emulated = point.shown["platform"] != "none"
            return dataclasses.replace(outcome, dilation=10.0 if emulated else 1.0)

    scenario = Scenario(
        name="x",
        title="t",
        sweep={
            "platform": ("myri10g-2009", "none"),
            "size_bytes": (0, 128),
            "coalescing": ("timeout", "disabled"),
        },
        without=({"platform": "myri10g-2009", "size_bytes": 128},),
        rows="size_bytes",
        columns="coalescing",
        metrics=("half_round_trip",),
    )
    document = Sweep(scenario, Slow(), prober=near, figures=QUIET).run()
    text = printed(document, 200)
    assert "With platform myri10g-2009: Times are those of the emulated hosts" in text
    assert "With no platform: Times are as measured: this machine's own." in text
    assert "Half round trip, µs — platform myri10g-2009 — lower is better" in text
    assert "Half round trip, µs — no platform — lower is better" in text
    columns = printed({**document, "layout": {"rows": "size_bytes", "columns": "platform"}}, 200)
    assert re.search(r"platform myri10g-2009 ┃ +no platform", columns)
    # What has no distance is neither of another state nor a change of it.
    assert {point["state"] for point in document["points"]} == {"any", "near"}
    assert "*" not in text
    assert "changed distance" not in text


def test_a_streams_rate_is_one_figure_per_run() -> None:
    # Bursts: half of the batches take 1 ns per message, the others 3.
    stamps = np.cumsum([0, *([10, 30] * 10)])
    assert per_message_ns(stamps, 10, 0).tolist() == [2.0]
    assert per_message_ns(stamps, 10, 10).tolist() == pytest.approx([390 / 190])
    assert per_message_ns(stamps, 10, 10_000).tolist() == [3.0]
    assert per_message_ns(stamps[:1], 10, 0).size == 0
    rate = METRICS["message_rate"].compute(Outcome(per_message_ns(stamps, 10, 0), {}))
    assert not isinstance(rate, str)
    assert rate.tolist() == [500_000.0]


def test_the_report_says_what_a_newcomer_needs() -> None:
    document = sweep(Fake()).run()
    console = Console(width=120, record=True, file=None, quiet=False)
    with console.capture() as capture:
        print_report(document, console)
    text = capture.get()
    for words in (
        "A title",
        "Half round trip, µs",
        "lower is better",
        "Interrupts per message",
        "0 B",
        "32 KiB",
        "timeout",
        "open-mx",
        "What it shows.",
        "  as expected: the timeout is slow",
        "  ratio 5.2",
        "cpu_per_message is not available: the kernel reported no CPU time",
    ):
        assert words in text
    assert "CPU µs of the ranks" not in text


def test_notes_name_what_limits_the_figures() -> None:
    document = sweep(Fake()).run()
    document["environment"]["realtime"] = {"permitted": False, "reason": "no CAP_SYS_NICE"}
    document["environment"]["topology"]["cpus"] = [0]
    document["points"][0]["states"] = ["near", "far"]
    text = "\n".join(notes(document))
    assert "no real-time priority (no CAP_SYS_NICE)" in text
    assert "one CPU only" in text
    assert "changed distance during the sweep (runs: far 1, near 7)" in text
