"""Declaring a scenario: points, settings, order, and one sentence per kind of mistake."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.errors import InputError
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario, plan_runs
from shrimpmx.nic.policy import Policy
from shrimpmx.settings.names import parameter_name
from shrimpmx.settings.sentences import validation_sentence
from shrimpmx.wait.waiting_strategy import WaitingStrategy

BASE: dict[str, Any] = {
    "name": "x",
    "title": "t",
    "metrics": ("half_round_trip",),
    "parameters": {"wait": "spin", "iterations": 10},
    "sweep": {"size_bytes": (0, 128), "coalescing": PAPER_COALESCING_NAMES},
    "compare": "coalescing",
}


class Idle(Policy):
    """Overrides nothing."""


class Limited(Policy):
    """Needs an argument."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
        return True


def test_a_factory_makes_a_policy_that_needs_arguments() -> None:
    mine = scenario(policies={"mine": lambda: Limited(3)}, sweep={"coalescing": ("mine",)})
    assert [point.policy for point in mine.points()] == ["mine"]


def test_a_name_that_policies_lack() -> None:
    declared = scenario(policies={"mine": lambda: Limited(3)}, sweep={"coalescing": ("two",)})
    with pytest.raises(InputError) as caught:
        declared.points()
    assert str(caught.value).endswith(
        "'irq-suspend' or 'mine', not 'two'; one of your own is FILE.py:CLASS, or a name in "
        "policies of its scenario"
    )


def scenario(**changes: Any) -> Scenario:
    return Scenario(**{**BASE, **changes})


def test_points_are_every_combination() -> None:
    points = scenario().points()
    assert [point.index for point in points] == list(range(8))
    assert points[5].shown == {
        "wait": "spin",
        "iterations": 10,
        "size_bytes": 128,
        "coalescing": "timeout",
    }
    assert points[5].parameters.workload.size_bytes == 128
    assert points[5].parameters.nic.coalescing == "timeout"
    assert points[5].parameters.wait.strategy == "spin"


def test_runs_are_shuffled_by_seed_and_compared_things_alternate() -> None:
    declared = scenario(repeats=3)
    points = declared.points()
    plans = plan_runs(declared, points, 1)
    assert sorted(plan.index for plan in plans) == list(range(24))
    assert plans == plan_runs(declared, points, 1)
    assert plans != plan_runs(declared, points, 2)
    for start in range(0, 24, 4):
        group = plans[start : start + 4]
        assert {plan.point.parameters.nic.coalescing for plan in group} == set(
            PAPER_COALESCING_NAMES
        )
        assert len({plan.point.parameters.workload.size_bytes for plan in group}) == 1
        assert len({plan.repeat for plan in group}) == 1


def test_settings_replace_values_axes_and_repeats() -> None:
    changed = scenario().changed(
        ["size-bytes=0", "coalescing=stream,open-mx", "rx-usecs=30", "repeats=2", "wait=block"]
    )
    points = changed.points()
    assert changed.repeats == 2
    assert [point.parameters.nic.coalescing for point in points] == ["stream", "open-mx"]
    assert all(point.parameters.nic.rx_usecs == 30 for point in points)
    assert all(point.parameters.wait.strategy == "block" for point in points)
    assert points[0].shown["wait"] == "block"


def test_commas_are_part_of_a_programs_arguments() -> None:
    program = scenario(parameters={"workload": "program"}).changed(
        ["program=a,b.py", "arguments=--sizes 1,2 true"]
    )
    works = {point.parameters.workload.arguments for point in program.points()}
    assert works == {"--sizes 1,2 true"}
    assert {point.parameters.workload.program for point in program.points()} == {"a,b.py"}


def test_a_setting_with_several_values_makes_an_axis() -> None:
    assert len(scenario().changed(["mtu=1500,9000"]).points()) == 16


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ("size-bytes=0,128,32768", (0, 128, 32768)),
        ("size-bytes=7B,2KiB,1MiB", (7, 2048, 1 << 20)),
        ("workload.size_bytes=2K,1M", (2048, 1 << 20)),
        ("size_bytes=0 B, 32 KiB", (0, 32768)),
    ],
)
def test_sizes_may_have_binary_units(given: str, sizes: tuple[int, ...]) -> None:
    points = scenario().changed([given, "coalescing=stream", "heap_bytes=1GiB"]).points()
    assert tuple(point.parameters.workload.size_bytes for point in points) == sizes
    assert {point.parameters.mx.heap_bytes for point in points} == {1 << 30}


def test_lists_and_texts_are_taken_whole() -> None:
    points = scenario().changed(["only=tiny,small", "irq-binding=0", "cpus=0"]).points()
    assert len(points) == 8
    assert points[0].parameters.faults.only == ("tiny", "small")
    assert points[0].parameters.host.irq_binding == "0"
    assert points[0].parameters.cluster.cpus == (0,)


def test_points_can_be_left_out() -> None:
    without: dict[str, Any] = {
        "sweep": {"size_bytes": (0, 128), "marks": (("tiny",), ("small",)), "mtu": (1500, 9000)},
        "compare": "mtu",
        "without": ({"size_bytes": 0, "mtu": 9000}, {"marks": ("small",), "size_bytes": 128}),
    }
    points = scenario(**without).points()
    assert [point.index for point in points] == [0, 1, 2, 3]
    assert [tuple(point.shown[axis] for axis in without["sweep"]) for point in points] == [
        (0, ["tiny"], 1500), (0, ["small"], 1500), (128, ["tiny"], 1500), (128, ["tiny"], 9000),
    ]  # fmt: skip
    with pytest.raises(InputError, match="no points: `without` leaves all"):
        scenario(**without).changed(["size-bytes=0", "mtu=9000"]).points()


def test_a_tuple_of_values_means_each_of_them() -> None:
    declared = scenario(
        without=({"size_bytes": (0, 128), "coalescing": "disabled"}, {"coalescing": ("stream",)}),
        adjusted=(({"coalescing": ("timeout", "open-mx")}, {"warmup": 3}),),
    )
    points = declared.points()
    assert {point.parameters.nic.coalescing for point in points} == {"timeout", "open-mx"}
    assert len(points) == 4
    assert {point.parameters.workload.warmup for point in points} == {3}


EXPECTED = Ratio(
    text="t",
    metric="half_round_trip",
    of={"coalescing": "stream", "size_bytes": 128},
    to={"coalescing": "timeout"},
    at_most=1,
)


def test_truth_values_are_the_same_in_each_spelling() -> None:
    spelled = scenario().changed(["copy-offload=False,yes"])
    assert {point.shown["copy_offload"] for point in spelled.points()} == {False, True}


def test_settings_may_leave_out_what_a_file_names() -> None:
    declared = scenario(
        without=({"size_bytes": 128, "coalescing": "disabled"},),
        adjusted=(({"size_bytes": 128}, {"warmup": 3}),),
        timelines=({"coalescing": "stream"},),
        expectations=(EXPECTED,),
    )
    changed = declared.changed(["size_bytes=64", "coalescing=disabled"])
    assert [point.shown["size_bytes"] for point in changed.points()] == [64]


def test_texts_and_lists_may_be_set_to_nothing() -> None:
    program = scenario(parameters={"workload": "program", "program": "p.py", "arguments": "-v"})
    changed = program.changed(["arguments=", "cpus=", "rps_cpus="])
    parameters = changed.points()[0].parameters
    assert parameters.workload.arguments == parameters.host.rps_cpus == ""
    assert parameters.cluster.cpus == ()


@pytest.mark.parametrize(
    "settings", [["wait=spin", "wait=block"], ["mtu=1500", "nic.mtu=9000"], ["repeats=2"] * 2]
)
def test_a_parameter_is_set_once(settings: list[str]) -> None:
    with pytest.raises(InputError, match=r"is set twice; separate several values by commas"):
        scenario().changed(settings)


def test_every_name_of_a_parameter_means_the_same() -> None:
    declared = scenario(
        parameters={"wait.strategy": "spin", "workload.iterations": 10},
        sweep={"workload.size_bytes": (0, 128), "nic.coalescing": ("stream", "timeout")},
        compare="nic.coalescing",
        rows="size-bytes",
        without=({"nic.coalescing": "stream", "size-bytes": 0},),
        adjusted=(({"workload.size_bytes": 0}, {"workload.warmup": 3}),),
        expectations=(EXPECTED,),
    )
    shown = {"wait": "spin", "iterations": 10, "size_bytes": 0, "coalescing": "timeout"}
    assert (declared.compare, declared.rows) == ("coalescing", "size_bytes")
    assert declared.points()[0].shown == shown
    assert len(declared.points()) == 3
    place = {"nic.coalescing": "stream", "workload.size-bytes": 3}
    named = Ratio(text="t", metric="half_round_trip", of=place, to={"wait": "x"}, at_most=1)
    assert named.axes() == {"coalescing", "size_bytes", "wait"}


def test_a_users_policy_is_a_value_of_coalescing() -> None:
    class Mine(Policy):
        def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
            return True

    points = scenario(policies={"mine": Mine}, sweep={"coalescing": ("mine", "stream")}).points()
    assert [point.policy for point in points] == ["mine", ""]


def test_a_users_waiting_strategy_is_a_value_of_wait() -> None:
    class Mine(WaitingStrategy):
        pass

    waits = {"waits": {"mine": Mine}, "sweep": {"wait": ("mine", "block")}, "compare": "wait"}
    mine = scenario(**waits, parameters={})
    points = mine.points()
    assert [point.wait for point in points] == ["mine", ""]
    executor = ClusterExecutor(Forked(), waits={"mine": Mine})
    spec = executor.spec_of(points[0], 1)
    assert (spec.wait.strategy, spec.waits) == ("mine", {"mine": Mine})
    assert executor.spec_of(points[1], 1).wait.strategy == "block"
    assert not spec.wait.nic_timer
    with pytest.raises(
        InputError, match=r"wait must be 'spin', .*, 'watchdog' or 'mine', not 'nap'"
    ):
        mine.changed(["wait=nap"]).points()


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("coalescing=fast", "coalescing must be 'disabled', 'timeout', 'open-mx', 'stream', 'adap"),
        ("wait=nap", "wait must be 'spin', 'sched', 'block'"),
        ("mtu=3", "mtu must be 1500 or 9000, not 3"),
        ("nodes=0", "nodes must be at least 1, not 0"),
        ("nodes=3", "nodes must be even, not 3"),
        ("cpus=99", "cpus names CPU 99, but this process may use only "),
        ("cpus=98-99", "cpus names CPU 98, but this process may use only "),
        ("cpus=0-x", "cpus: '0-x' is not a list of cores"),
        ("cpus=1-0", "cpus: '1-0' is not a list of cores"),
        ("size_bytes=67108865", "size_bytes must be at most 67108864 bytes, not 67108865"),
        ("size_bytes=-1", "size_bytes must be at least 0 bytes, not -1"),
        ("size_bytes=1GiB", "size_bytes must be at most 67108864 bytes, not 1073741824"),
        ("size_bytes=32KiB,32768", "sweep axis 'size_bytes' has the value 32768 twice"),
        *(
            (f"size_bytes={size}", f"KiB, MiB or GiB as in 32KiB, not '{size}'")
            for size in ("32kB", "1.5MiB", "-1KiB", "KiB")
        ),
        (f"iterations={'1' * 5000}", "iterations must be a whole number"),
        ("iterations=4K", "iterations must be a whole number, not '4K'"),
        ("iterations=many", "iterations must be a whole number, not 'many'"),
        ("loss=2", "loss must be at most 1.0, not 2"),
        ("realtime=maybe", "realtime must be true or false, not 'maybe'"),
        ("rx_ring_entries=100", "rx_ring_entries must be a power of two, not 100"),
        ("event_ring_entries=100", "event_ring_entries must be a power of two, not 100"),
        ("gro_flush_timeout_ns=20000001", "irq_suspend_timeout_ns must not be shorter than gro_"),
        ("host_topology=core:2", 'host_topology is written as "package:2 l2:2 core:2 pu:1"'),
        ("workload=mpi", "workload 'mpi' needs a program: set program to an executable"),
        ("repeats=0", "repeats must be at least 1, not 0"),
        ("loss=NaN", "loss must be a finite number, not nan"),
        ("size_bytes=0,32,0", "sweep axis 'size_bytes' has the value 0 twice"),
        ("cpus=0,0", "cpus names a CPU twice: 0, 0"),
        ("cpus=0-0,0", "cpus names a CPU twice: 0, 0"),
        ("mode=generator", "mode 'generator' plays a stream only"),
        ("siez=3", "there is no parameter 'siez'"),
        ("interrupt=0", "there are interrupt_time_ns, interrupt_"),
        ("size_byte=3", "did you mean 'size_bytes'?"),
        ("coalescing=steam", "'irq-suspend', not 'steam'; did you mean 'stream'?"),
        ("time_dilation=aut", "not 'aut'; did you mean 'auto'?"),
        ("size_bytes", "--set takes key=value, not 'size_bytes'"),
        ("size_bytes=,", "needs a value, not ','"),
        ("coalescing=stream,", "coalescing has an empty value next to a comma: 'stream,'"),
        ("size_bytes=0,,32", "size_bytes has an empty value next to a comma: '0,,32'"),
        ("only=tiny,", "only has an empty value next to a comma: 'tiny,'"),
        ("size_bytes=", "needs a value, not ''"),
    ],
)
def test_bad_settings(setting: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        scenario().changed([setting]).points()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"metrics": ("speed",)}, "metrics names 'speed', which is not a metric; there are: "),
        (
            {"metrics": ("half_roundtrip",)},
            "'half_roundtrip', which is not a metric; did you mean 'half_round_trip'?",
        ),
        ({"sections": ("interrupts",)}, "section 'interrupts' needs workload 'anatomy'"),
        ({"metrics": ()}, "metrics must be given with at least one entry"),
        ({"sweep": {"size_bytes": ()}}, "sweep axis 'size_bytes' has no values"),
        ({"without": ({"mtu": 1500},)}, "without names 'mtu', which is not a sweep axis"),
        (
            {"without": ({"size_bytes": 3},)},
            "without names size_bytes=3, which is not a point of the",
        ),
        (
            {"without": ({"size_bytes": (0, 3)},)},
            "without names size_bytes=3, which is not a point",
        ),
        ({"timelines": ({"coalescing": "fast"},)}, "timelines names coalescing='fast'"),
        ({"adjusted": (({"size_bytes": 3}, {}),)}, "adjusted names size_bytes=3"),
        (
            {"expectations": (EXPECTED,), "sweep": {"size_bytes": (0,), "coalescing": ("stream",)}},
            "expectations names size_bytes=128, which is not a point of the sweep; size_bytes has ",
        ),
        ({"compare": "mtu"}, "compare names 'mtu', which is not a sweep axis"),
        (
            {"name": "a b"},
            "name must consist of letters, digits and _ . / -, and begin with a letter",
        ),
        ({"name": ""}, "letters, digits and _ . / -"),
        ({"title": ""}, "title must be a text that is not empty, not ''"),
        ({"metrics": ("half_round_trip",) * 2}, "metrics names 'half_round_trip' twice"),
        ({"repeat": 3}, "repeat is not a field of Scenario; did you mean 'repeats'?"),
        ({"policies": {"stream": dict}}, "policies cannot use the built-in name 'stream'"),
        (
            {"policies": {"mine": int}},
            "must derive from shrimpmx.nic.policy.Policy, which int does",
        ),
        ({"sweep": {"mtu": (1500, 9000, 1500)}, "compare": ""}, "'mtu' has the value 1500 twice"),
        (
            {"policies": {"mine": Idle}},
            "policies['mine'] never asks for an interrupt: Idle overrides none of on_arrival, on_",
        ),
        (
            {"policies": {"mine": Limited}},
            "policies['mine'] is called without arguments, but needs limit",
        ),
        (
            {"policies": {"mine": lambda node, queue=0: Limited(node)}},
            "policies['mine'] is called without arguments, but needs node",
        ),
        ({"policies": {" ": Limited}}, "policies has an empty name; give the policy one"),
        ({"policies": {"mine": 3}}, "policies['mine'] must be a policy class, not 3"),
        ({"waits": {"spin-sched": dict}}, "waits cannot use the built-in name 'spin-sched'"),
        ({"waits": {"mine": Policy}}, "waiting_strategy.WaitingStrategy, which Policy does not"),
        ({"waits": {"mine": 3}}, "waits['mine'] must be a strategy class, not 3"),
        (
            {"parameters": {"iterations": 20, "workload.iterations": 30}},
            "iterations is set twice, as 'iterations' and as 'workload.iterations'",
        ),
        ({"parameters": {"rx_usecs": 20, "rx-usecs": 75}}, "rx_usecs is set twice, as 'rx_usecs'"),
        ({"sweep": {"mtu": (1500,), "nic.mtu": (9000,)}, "compare": ""}, "mtu is set twice, as"),
        ({"sweep": {"wait.strategy": ("spin",)}}, "wait is set twice, in parameters and in sweep"),
        (
            {"expectations": EXPECTED},
            "expectations must be a tuple of expectations, not a single Ratio; write (Ratio(...),)",
        ),
        (
            {"expectations": (EXPECTED, {"text": "t"})},
            "expectations[1] must be one of Ratio, Growth, Difference, Between, Equals, Bound, "
            "Within, Near, Order, not {'text': 't'}",
        ),
        ({"expectations": 3}, "expectations must be a list of values, not 3"),
        ({"sweep": 3}, "sweep must be a mapping of names to values, not 3"),
        (
            {
                "expectations": (
                    Ratio(text="t", metric="round_trip", of={}, to={"mtu": 1}, at_most=1),
                )
            },
            "expectations names 'round_trip', which is not a metric of this scenario",
        ),
    ],
)
def test_bad_declarations(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        scenario(**changes)
    assert sentence in validation_sentence(caught.value)
    assert "\n" not in validation_sentence(caught.value)


def test_a_misspelt_axis_is_told_before_what_names_the_right_one() -> None:
    with pytest.raises(InputError, match="no parameter 'coalescin'; did you mean 'coalescing'"):
        scenario(sweep={"coalescin": ("timeout",)}, compare="coalescing")


def test_a_misspelt_field_is_told_before_the_one_that_is_missing() -> None:
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate({"name": "s", "titel": "t"})
    sentence = validation_sentence(caught.value)
    assert sentence == "titel is not a field of Scenario; did you mean 'title'?"


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ValidationError) as caught:
        Scenario(name="x", metrics=("round_trip",))  # type: ignore[call-arg]
    assert validation_sentence(caught.value) == "title is missing and has no default; add it"


def test_sweeps_have_a_limit() -> None:
    with pytest.raises(InputError, match="the sweep has 40000 points; 10000 are the most"):
        scenario(sweep={"warmup": tuple(range(1, 40_001))}, compare="").points()


@pytest.mark.parametrize(
    ("given", "name"), [("rx-usecs", "rx_usecs"), ("nic.mtu", "mtu"), ("faults.seed",) * 2]
)
def test_parameter_names(given: str, name: str) -> None:
    assert parameter_name(given) == name


def test_no_name_is_offered_that_is_not_alike() -> None:
    with pytest.raises(InputError) as caught:
        parameter_name("name")
    assert "did you mean" not in str(caught.value)


def test_the_sweeps_seed_is_no_parameter() -> None:
    with pytest.raises(InputError, match=r"no parameter 'seed'; did you mean 'faults\.seed'"):
        parameter_name("seed")


def test_adjusted_parameters_hold_at_their_points_and_are_no_axis() -> None:
    declared = scenario(adjusted=(({"size_bytes": 128}, {"iterations": 77}),))
    found = {p.parameters.workload.size_bytes: p.parameters.workload for p in declared.points()}
    assert found[0].iterations == BASE["parameters"]["iterations"]
    assert found[128].iterations == 77
    assert all("iterations" not in point.shown for point in declared.points())


def test_a_setting_beats_what_is_adjusted() -> None:
    declared = scenario(adjusted=(({"size_bytes": 128}, {"iterations": 77, "warmup": 3}),))
    points = declared.changed(["workload.iterations=5"]).points()
    assert {point.parameters.workload.iterations for point in points} == {5}
    assert points[-1].parameters.workload.warmup == 3


def test_what_is_of_simulated_hosts_is_theirs_alone_and_a_setting_beats_it() -> None:
    declared = scenario(simulated=(({"size_bytes": 128}, {"cores": 8}),))

    def cores(of: Scenario) -> set[tuple[int, int]]:
        return {(each.shown["size_bytes"], each.parameters.host.cores) for each in of.points()}

    assert {count for _, count in cores(declared.on(real=True))} == {1}
    assert {size for size, count in cores(declared.on(real=False)) if count == 8} == {128}
    assert {count for _, count in cores(declared.on(real=False).changed(["cores=2"]))} == {2}
    with pytest.raises(ValueError, match="simulated names 'mtu'"):
        scenario(simulated=(({"mtu": 1500}, {"cores": 1}),))


def test_adjusted_names_axes_and_parameters() -> None:
    with pytest.raises(ValueError, match="adjusted names 'mtu'"):
        scenario(adjusted=(({"mtu": 1500}, {"iterations": 1}),))
    with pytest.raises(InputError, match="there is no parameter 'iteration'"):
        scenario(adjusted=(({"size_bytes": 0}, {"iteration": 1}),))
