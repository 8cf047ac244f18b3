"""`shrimpmx fit`: measurements that are read, costs that are found, groups that are predicted."""

from __future__ import annotations

import json
import math
import random
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.conditions import patient

import shrimpmx
from shrimpmx.cli import main
from shrimpmx.errors import InputError
from shrimpmx.experiment.fit.fitted import Fit
from shrimpmx.experiment.fit.held_out import (
    FITTED,
    HOCKNEY,
    LOGGP,
    Prediction,
    orders,
    predictions_of,
    without_each,
)
from shrimpmx.experiment.fit.measurements import Measurement, read_measurements
from shrimpmx.experiment.fit.predictor import Predictor, simulated_value, with_values
from shrimpmx.experiment.fit.simple import hockney, loggp
from shrimpmx.experiment.fit.solve import solve
from shrimpmx.experiment.fit.varied import completed, varied_of
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.platform_files import read_platform
from shrimpmx.results.json_file import read_json
from shrimpmx.settings.platform import Platform

BASE = completed(PLATFORMS["myri10g-2009"])
IMB = """\
# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000        12.50         0.00
         1024         1000        15.00        68.27

# Benchmarking Uniband
       #bytes #repetitions   Mbytes/sec      Msg/sec
            0         1000         0.00       400000
         1024         1000       300.00       292968
"""
OSU = """\
# OSU MPI Latency Test v5.7
# Size          Latency (us)
0                      11.02
8                      11.10
"""


def measurement(metric: str, value: float, group: str = "a", **settings: Any) -> Measurement:
    given = tuple(sorted((name, str(each)) for name, each in settings.items()))
    return Measurement(given, metric, value, 0.03, group, "here")


# -- what is read ----------------------------------------------------------------------


def test_a_table_has_a_column_for_each_parameter(tmp_path: Path) -> None:
    path = tmp_path / "lab.csv"
    path.write_text(
        "workload,size_bytes,coalescing,metric,value,unit,uncertainty,group\n"
        "pingpong,0,disabled,half_round_trip,12,us,5%,\n"
        "pingpong,1024,timeout,half_round_trip,90,,0.9,slow\n"
    )
    first, second = read_measurements([path], ["rx_usecs=75"])
    assert dict(first.settings)["rx_usecs"] == "75"
    assert (first.value, first.uncertainty, first.group) == (12.0, 0.05, "lab")
    assert (second.size_bytes, second.uncertainty, second.group) == (1024, 0.01, "slow")
    assert second.point().parameters.nic.coalescing == "timeout"


def test_outputs_of_benchmarks_are_read_under_their_settings(tmp_path: Path) -> None:
    (tmp_path / "imb.txt").write_text(IMB)
    (tmp_path / "osu.txt").write_text(OSU)
    path = tmp_path / "runs.toml"
    path.write_text(
        '[[file]]\npath = "imb.txt"\ncoalescing = "disabled"\ngroup = "off"\n'
        '[[file]]\npath = "osu.txt"\ncoalescing = "timeout"\n'
        '[[measurement]]\nworkload = "stream"\nmetric = "message_rate"\nvalue = 300\n'
    )
    found = read_measurements([path])
    assert [(one.group, one.metric, one.value) for one in found] == [
        ("runs", "message_rate", 300.0),
        ("off", "half_round_trip", 12.5),
        ("off", "half_round_trip", 15.0),
        ("off", "message_rate", 400.0),
        ("off", "message_rate", pytest.approx(293.0, rel=1e-3)),
        ("coalescing=timeout", "half_round_trip", 11.02),
        ("coalescing=timeout", "half_round_trip", 11.1),
    ]
    assert dict(found[1].settings)["coalescing"] == "disabled"


COLLECTIVE = """\
# Benchmarking Alltoall
# #processes = 4
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.05         0.06         0.05
         1024         1000        60.11        60.21        60.15

# Benchmarking Exchange
# #processes = 2
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
         1024         1000        30.11        30.21        30.15       136.00
# OSU MPI Multiple Bandwidth / Message Rate Test v5.7
# [ pairs: 2 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1024                  300.00         292968.75
"""


def test_tables_of_several_processes_name_them(tmp_path: Path) -> None:
    path = tmp_path / "more.txt"
    path.write_text(COLLECTIVE)
    alltoall, exchange, pairs = read_measurements([path], ["coalescing=disabled"])
    assert (alltoall.metric, alltoall.value) == ("run_time", pytest.approx(20 * 60.15))
    assert alltoall.point().parameters.cluster.ranks == 4
    assert exchange.point().parameters.workload.arguments.startswith("Exchange ")
    assert pairs.point().parameters.cluster.pairs == 2
    for one in (exchange, pairs):
        assert simulated_value(one, BASE, 1) > 1


ROW = "workload,size_bytes,metric,value,unit,uncertainty\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", ROW, "has no measurement"),
        ("a.csv", ROW + "pingpong,0,half_round_trip,12,ms,\n", "unit us, not ms"),
        ("a.csv", ROW + "pingpong,0,half_round,12,us,\n", "did you mean"),
        ("a.csv", ROW + "pingpong,0,half_round_trip,-1,us,\n", "from 1e-06"),
        ("a.csv", ROW + "pingpong,0,half_round_trip,much,us,\n", "not a number"),
        ("a.csv", ROW + "pingpong,0,half_round_trip,12,us,0\n", "uncertainty"),
        ("a.csv", ROW + "pingpong,0,half_round_trip\n", "other columns"),
        ("a.csv", ROW.replace("size_bytes", "size") + "pingpong,0,half_round_trip,1,us,\n", "size"),
        (
            "a.csv",
            ROW + "pingpong,0,half_round_trip,12,us,\npingpong,0,half_round_trip,24,us,\n",
            "for the same settings",
        ),
        ("a.csv", ROW + "pingpong,0,half_round_trip,nan,us,\n", "from 1e-06"),
        ("a.csv", ROW + "pingpong,0,half_round_trip,1e400,us,\n", "from 1e-06"),
        ("a.csv", ROW + "pingpong,0,half_round_trip,1e-300,us,\n", "from 1e-06"),
        ("a.toml", "measurement = 1\n", "[[measurement]]"),
        ("a.toml", "[[file]]\n", "[[file]] 1 lacks path"),
        ("a.toml", '[[file]]\npath = "none.txt"\n', "cannot be read"),
        ("a.txt", "hello\n", "output of IMB-MPI1"),
        ("a.txt", "# Benchmarking PingPong\n", "cut short"),
        ("a.txt", IMB[:-1], "in its last line"),
        ("a.txt", IMB.replace("        68.27", ""), "lacks some of its 4 figures"),
        ("a.txt", OSU.replace("11.10", ""), "lacks some of its 2 figures"),
        ("a.txt", "# Benchmarking Bcast\n 1 2 3 4 5\n", "it knows IMB-MPI1"),
        ("a.txt", "# OSU MPI Broadcast Latency Test v5\n 1 2\n", "it knows IMB-MPI1"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, words: str
) -> None:
    path, target = tmp_path / name, tmp_path / "out.toml"
    path.write_text(text)
    under = ["--set", "coalescing=disabled"] if name.endswith(".txt") else []
    assert main(["fit", str(path), *under, "-o", str(target)]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_what_is_read_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "in.toml"
    path.write_text('[[measurement]]\nmetric = "half_round_trip"\nvalue = 12\n')
    text = path.read_text()
    assert main(["fit", str(path), "-o", str(path)]) == 2
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "mine"\ntitle = "mine"\nbase = "xeon-100g"\n')
    assert main(["fit", str(path), "--platform", str(mine), "-o", str(mine)]) == 2
    (tmp_path / "out.part").mkdir()
    assert main(["fit", str(path), "-o", str(tmp_path / "out.toml")]) == 2
    assert path.read_text() == text


def test_an_output_needs_its_setting_and_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "imb.txt").write_text(IMB)
    twice = tmp_path / "twice.toml"
    twice.write_text(
        '[[file]]\npath = "imb.txt"\ncoalescing = "disabled"\n'
        '[[file]]\npath = "imb.txt"\ncoalescing = "timeout"\n'
    )
    for given in ("imb.txt", "twice.toml"):
        assert main(["fit", str(tmp_path / given), "-o", str(tmp_path / "out.toml")]) == 2
    assert not (tmp_path / "out.toml").exists()


def test_a_fit_without_scipy_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert main(["fit", "a.csv", "-o", "x.toml"]) == 2
    assert "shrimpmx[fit]" in capsys.readouterr().err


def test_no_hosts_have_packets_for_free() -> None:
    bare = PLATFORMS["xeon-100g"]
    keys = {one.key for one in varied_of(completed(bare), ["costs.handler_per_packet"])}
    assert keys == {"costs.handler_per_packet"}
    assert {"costs.rank_event", "mx.send_cost_ns"} <= {
        one.key for one in varied_of(completed(bare))
    }
    assert completed(BASE) == BASE


@pytest.mark.parametrize(
    "arguments",
    [[], ["a.csv"], ["a.csv", "-o", "x.json"], ["a.csv", "-o", "x.toml", "--workers", "0"]],
)
def test_a_fit_without_what_it_needs_is_refused(arguments: list[str]) -> None:
    assert main(["fit", *arguments]) == 2


# -- what is found ---------------------------------------------------------------------

NAMES = ("send_cost_ns", "copy_bytes_per_second", "dma_latency_ns")
PLACES: list[dict[str, Any]] = [
    {
        "metric": "half_round_trip",
        "workload": "pingpong",
        "size_bytes": size,
        "coalescing": rule,
        "iterations": 5,
        "warmup": 1,
    }
    for rule in ("disabled", "open-mx")
    for size in (0, 1024, 16_384)
] + [
    {"metric": "message_rate", "workload": "stream", "size_bytes": 0, "iterations": 150},
]


def drawn(seed: int, noise: float = 0.03) -> tuple[dict[str, float], list[Measurement]]:
    """Hidden costs, and noisy measurements of hosts with them."""
    rng = random.Random(seed)
    truth = {
        one.key: math.exp(one.middle + rng.gauss(0, 0.5 * one.deviation))
        for one in varied_of(BASE, NAMES)
    }
    hosts = with_values(BASE, truth)
    found = []
    for place in PLACES:
        group = str(place.get("coalescing", "stream"))
        metric = place["metric"]
        settings = {name: value for name, value in place.items() if name != "metric"}
        exact = simulated_value(measurement(metric, 1.0, group, **settings), hosts, 1)
        value = exact * math.exp(rng.gauss(0, noise))
        found.append(measurement(metric, value, group, **settings))
    return truth, found


def fitted(measurements: list[Measurement], base: Platform = BASE) -> Fit:
    varied = varied_of(base, NAMES)
    predictor = Predictor(measurements, base)
    solution = solve(predictor, varied, range(len(measurements)))
    without = without_each(predictor, varied, solution, lambda _group: lambda _error: None)
    predictions = list(predictions_of(measurements, without))
    return Fit(base, measurements, solution, predictions, predictor.simulated)


@pytest.mark.nightly("fits of other hidden costs", but=1)
@pytest.mark.parametrize("seed", range(1, 11))
def test_hidden_costs_predict_unseen_groups_better_than_simple_models(seed: int) -> None:
    """The copies of seeds 1 and 8, at 13 and 39 GB/s, cost too little to be told; with the sends of
    seed 2, which take 5 µs, copies of 2 to 30 GB/s explain the measurements alike.
    """
    _, measurements = drawn(seed)
    fit = fitted(measurements)
    assert fit.solution.is_determined(0)
    assert fit.solution.is_determined(1) == (seed not in (1, 2, 8))
    errors = {
        name: np.median([one.error(name) for one in fit.predictions])
        for name in (FITTED, HOCKNEY, LOGGP)
    }
    assert errors[FITTED] < min(errors[HOCKNEY], errors[LOGGP])


@pytest.mark.nightly("fits of many other hidden costs")
@pytest.mark.timeout(patient(600))
def test_determined_costs_lie_in_their_intervals_and_open_ones_are_called_so() -> None:
    """43 of 45 do; the latency of DMA is mostly open."""
    varied = varied_of(BASE, [*NAMES, "reply_ns"])
    determined = inside = 0
    for seed in range(101, 121):
        truth, measurements = drawn(seed)
        solution = solve(Predictor(measurements, BASE), varied, range(len(measurements)))
        assert not solution.is_determined(len(NAMES))
        for index, one in enumerate(varied[: len(NAMES)]):
            if solution.is_determined(index):
                low, high = solution.interval(index)
                determined += 1
                inside += low <= truth[one.key] <= high
    assert determined > 40
    assert inside >= 0.9 * determined


def test_a_cost_that_no_figure_depends_on_is_called_open_and_keeps_its_value() -> None:
    _, measurements = drawn(1)
    varied = varied_of(BASE, ["send_cost_ns", "interrupt_exit_ns", "handover_ns"])
    spinning = [one for one in measurements if dict(one.settings)["workload"] == "pingpong"]
    at_one_core = [
        measurement(one.metric, one.value, one.group, **dict(one.settings), irq_binding=0)
        for one in spinning
    ]
    solution = solve(Predictor(at_one_core, BASE), varied, range(len(at_one_core)))
    assert not solution.is_determined(2)
    before = BASE.model["handover_ns"].value
    assert solution.values["model.handover_ns"] == pytest.approx(before, rel=0.01)


def check_in_python(path: Path, first: Path, document: Path) -> None:
    """The same fit by shrimpmx.fit(), whose result has tables and pictures."""
    tmp_path = first.parent
    found = shrimpmx.fit(path, tmp_path / "mine.toml", vary=NAMES[:2], workers=2)
    assert first.read_text().replace('"first"', '"mine"') == found.platform.read_text()
    kept = json.loads(document.read_text())
    assert {**found.document, "origin": {}} == {**kept, "origin": {}}
    assert (tmp_path / "mine.html").exists()
    assert not (tmp_path / "mine.part").exists()
    if find_spec("pandas"):
        assert len(found.to_pandas()) == 2
        measured = [one["measured"] for one in kept["measurements"]]
        assert list(found.to_pandas("measurements")["measured"]) == measured
    assert "<svg" in found.figure().svg()
    with pytest.raises(InputError, match="has pictures 0 to"):
        found.figure(99)
    with pytest.raises(InputError, match=r"output=cluster\.toml"):
        shrimpmx.fit(path, tmp_path / "mine")


def test_the_same_measurements_give_the_same_bytes_and_an_interrupted_fit_goes_on(
    tmp_path: Path,
) -> None:
    _, (one, two, _, three, four, *_) = drawn(2)
    measurements = [one, two, three, four]
    path = tmp_path / "runs.csv"
    names = ["workload", "size_bytes", "coalescing", "iterations", "warmup"]
    names += ["metric", "value", "group"]
    rows = [
        {**dict(one.settings), "metric": one.metric, "value": str(one.value), "group": one.group}
        for one in measurements
    ]
    path.write_text(
        "\n".join([",".join(names), *(",".join(row.get(n, "") for n in names) for row in rows)])
    )
    command = ["fit", str(path), "--vary", ",".join(NAMES[:2]), "--workers"]
    first, other = tmp_path / "first.toml", tmp_path / "other.toml"
    document = tmp_path / "fit.json"
    assert main([*command, "1", "-o", str(first), "--json", str(document)]) == 0
    assert main([*command, "2", "-o", str(other)]) == 0
    assert first.read_text().replace('"first"', '"other"') == other.read_text()
    check_in_python(path, first, document)
    assert sorted(each.name for each in tmp_path.glob("*.part")) == []
    platform = read_platform(str(first))
    entry = platform.mx["send_cost_ns"]
    assert entry.origin == "fitted"
    assert entry.fitted_by == ("disabled", "open-mx")
    assert entry.interval is not None
    assert entry.interval[0] < entry.value < entry.interval[1]
    assert len(set(entry.draws)) > 10
    inside = [entry.interval[0] <= value <= entry.interval[1] for value in entry.draws]
    assert np.mean(inside) > 0.8
    sweep = ["run", "smoke/pingpong", "--engine", "simulated", "--set", f"platform={first}"]
    few = [
        "--set",
        "size_bytes=0",
        "--set",
        "coalescing=open-mx",
        "--set",
        "iterations=3",
        "--set",
        "warmup=1",
        "--output",
        str(tmp_path / "drawn"),
    ]
    assert main([*sweep, *few, "--set", "draw=0,1,2"]) == 0
    points = read_json(tmp_path / "drawn" / "run.json", "result")["points"]
    drawn_times = {point["metrics"]["half_round_trip"]["median"] for point in points}
    assert len(drawn_times) == 3
    assert main([*sweep, *few[:8], "--set", "draw=51"]) == 2
    assert main([*sweep, *few[:8], "--set", "draw=1", "--set", "platform=myri10g-2009"]) == 2
    assert read_json(document, "fit")["held_out"]["figures"] == len(measurements)
    page = tmp_path / "again.html"
    assert main(["report", str(document), "--output", str(page)]) == 0
    assert first.with_suffix(".html").read_bytes() == page.read_bytes()
    assert page.read_text().count("<svg") == 2
    assert main(["report", str(document.rename(tmp_path / "other.json"))]) == 0


def test_what_was_simulated_is_not_simulated_again(tmp_path: Path) -> None:
    _, measurements = drawn(3)
    kept = tmp_path / "kept"
    values = {one.key: one.value for one in varied_of(BASE, NAMES)}
    first = Predictor(measurements, BASE, kept=kept)
    (found,) = first.logs([values], range(3))
    kept.write_text(kept.read_text() + '["cut')
    again = Predictor(measurements, BASE, kept=kept)
    (same,) = again.logs([values], range(3))
    assert (first.simulated, again.simulated) == (3, 0)
    assert list(found) == list(same)


# -- the simple predictors -------------------------------------------------------------


def test_hockney_has_a_line_for_each_setting() -> None:
    known = [
        measurement("half_round_trip", alpha + 0.01 * size, size_bytes=size, coalescing=rule)
        for rule, alpha in (("disabled", 10.0), ("timeout", 80.0))
        for size in (0, 100, 1000)
    ]
    predict = hockney(known)
    for rule, value in (("disabled", 15.0), ("timeout", 85.0)):
        new = measurement("half_round_trip", 1.0, size_bytes=500, coalescing=rule)
        assert predict(new) == pytest.approx(value, rel=0.01)
    other = measurement("half_round_trip", 1.0, size_bytes=0, coalescing="stream")
    assert 10 < predict(other) < 80


def test_loggp_has_a_latency_a_gap_and_a_time_per_byte_for_all() -> None:
    known = [
        measurement("half_round_trip", 10 + 0.002 * size, size_bytes=size)
        for size in (0, 1000, 10_000, 100_000)
    ]
    known += [
        measurement("message_rate", 1e3 / max(2.0, 0.002 * size), size_bytes=size)
        for size in (0, 100, 10_000)
    ]
    predict = loggp(known)
    assert predict(measurement("half_round_trip", 1.0, size_bytes=50_000)) == pytest.approx(
        110, rel=0.02
    )
    assert predict(measurement("message_rate", 1.0, size_bytes=20_000)) == pytest.approx(
        25, rel=0.02
    )


def test_orders_count_pairs_that_measurements_tell_apart() -> None:
    def prediction(value: float, said: float) -> Prediction:
        return Prediction(measurement("half_round_trip", value), {FITTED: said}, (0.0, 1.0))

    some = [prediction(10, 11), prediction(10.1, 9), prediction(20, 30), prediction(40, 25)]
    assert orders(some, FITTED) == (5, 4)
