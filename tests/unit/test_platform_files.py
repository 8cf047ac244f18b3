"""A user's own platform: a TOML file that is read, checked, kept and sent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.bad_inputs import make_bad_input
from support.cli import assert_refused
from support.users import ANOTHER, needs_two_users

from shrimpmx.cli import main
from shrimpmx.errors import InputError
from shrimpmx.experiment.clusters import needed_costs
from shrimpmx.experiment.platform import PLATFORMS, emulated
from shrimpmx.experiment.platform_files import platform_text, read_platform, write_platform
from shrimpmx.experiment.remote.messages import Task
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.settings.platform import KNOWN, Platform

MINE = """\
name = "mine"
title = "two boards on a desk"
dilation = 2
dilation_source = "this machine is quick"

[costs.handler_per_packet]
value = 300
origin = "measured"
source = "perf, 2 million packets"

[nic.link_bits_per_second]
value = 25_000_000_000
origin = "public"
source = "its data sheet"

[mx.send_cost_ns]
value = 900
origin = "measured"
source = "perf"

[model.idle_exit_ns]
value = 6500
origin = "derived"
source = "what the paper gives"
calibrated_by = ["MQ-4"]
"""
# On real hosts there is one core.
CORES = """\
[host.cores]
value = 8
origin = "ours"
source = "a guess"
hosts = "simulated"

[host.irq_binding]
value = "4-7"
origin = "ours"
source = "a guess"

"""
SCENARIO = """\
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(
    name="s", title="T", metrics=("half_round_trip",), repeats=2,
    parameters={"iterations": 20, "warmup": 2}, sweep={"coalescing": ("disabled", "stream")},
)
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(MINE)
    Path("s.py").write_text(SCENARIO)


def tiny(**parameters: object) -> Scenario:
    return Scenario(name="s", title="T", metrics=("half_round_trip",), parameters=parameters)


def refused(capsys: pytest.CaptureFixture[str], command: list[str], *words: str) -> None:
    assert main(command) == 2
    assert_refused(capsys, " ".join(words))


def test_a_file_gives_what_it_says() -> None:
    mine = read_platform("mine.toml")
    assert (mine.name, mine.dilation) == ("mine", 2)
    assert mine.model["idle_exit_ns"].calibrated_by == ("MQ-4",)
    (point,) = tiny().changed(["platform=mine.toml"]).points()
    assert point.shown == {"platform": "mine.toml"}
    assert needed_costs([point]) == {"handler_per_packet"}
    made = emulated(point.parameters, {"handler_per_packet": {"median": 50.0}})
    assert made.dilation == 2
    assert (made.host.packet_cost_ns, made.mx.send_cost_ns) == (550, 1800)
    assert (made.nic.link_bits_per_second, made.model.idle_exit_ns) == (12_500_000_000, 13_000)


def test_cores_may_sleep_more_and_more_deeply() -> None:
    deep = MINE.replace("value = 6500", "value = [500, 6500]").replace("idle_exit", "idle_after")
    Path("mine.toml").write_text(
        MINE.replace("value = 6500", "value = [20, 30]") + deep[deep.index("[model") :]
    )
    (point,) = tiny().changed(["platform=mine.toml"]).points()
    made = emulated(point.parameters, {"handler_per_packet": {"median": 50.0}}).model
    assert made.idle_states() == [(1000, 40), (13_000, 60)]
    (point,) = tiny().changed(["platform=mine.toml", "idle_exit_ns=900"]).points()
    with pytest.raises(InputError, match=r"has 1 values and idle_after_ns 2: give both"):
        emulated(point.parameters, {"handler_per_packet": {"median": 50.0}})
    (point,) = tiny().changed(["platform=mine.toml", "idle_exit_ns=0"]).points()
    awake = emulated(point.parameters, {"handler_per_packet": {"median": 50.0}}).model
    assert awake.idle_states() == [(0, 0)]


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_written_is_read(name: str) -> None:
    changed = {"name": "its-copy", "title": 'a "b" \\ é\x7f\n'}
    platform = PLATFORMS[name].merged().model_copy(update=changed)
    write_platform(Path("its.toml"), platform)
    assert read_platform("its.toml") == platform
    assert platform_text(read_platform("its.toml")) == Path("its.toml").read_text()


def test_a_base_gives_what_a_file_leaves_out() -> None:
    entry = '[model.idle_exit_ns]\nvalue = 1\norigin = "ours"\nsource = "a guess"\n'
    Path("on.toml").write_text('name = "on"\ntitle = "T"\nbase = "myri10g-2009"\n' + entry)
    on, base = read_platform("on.toml"), PLATFORMS["myri10g-2009"]
    assert on.model["idle_exit_ns"].value == 1
    assert on.model["idle_exit_ns"].calibrated_by == ()
    assert on.model["line_cache_ns"] == base.model["line_cache_ns"]
    assert (on.costs, on.nic, on.title) == (base.costs, base.nic, "T")
    Path("on.toml").write_text('name = "on"\ntitle = "T"\nbase = "shrimp-1996"\ndilation = 3\n')
    with pytest.raises(InputError, match="dilation_source"):
        read_platform("on.toml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("dilation = 2", "dilation = 0", ("dilation", "0.1")),
        ("dilation = 2", f"dilation = {'9' * 5000}", ("no TOML", "digits")),
        ("dilation = 2", f"dilation = 0x{'f' * 5000}", ("no TOML", "digits")),
        ("dilation = 2", f"dilation = {'[' * 5000}", ("no TOML", "recursion")),
        ("dilation = ", "dilatoin = ", ("dilatoin", "'dilation'")),
        ("dilation = ", "bsae = ", ("bsae", "'base'")),
        ("dilation = ", "xyz = ", ("xyz", "there are: name, title, base, dilation,")),
        ('name = "mine"', 'name = "a/b"', ("name", "a/b")),
        ('name = "mine"', 'name = "myri10g-2009"', ("name", "myri10g-2009")),
        ('name = "mine"\n', "", ("name", "missing")),
        ('name = "mine"', 'name = "mine"\nbase = "xeon"', ("base", "xeon")),
        ("[costs.handler_per_packet]", "[costs.handler_packet]", ("costs.handler_packet",)),
        ("value = 300\n", "value = 0\n", ("costs.handler_per_packet", "0")),
        ("value = 300\n", 'value = "300"\n', ("costs.handler_per_packet", "'300'")),
        ("value = 300\n", "", ("costs.handler_per_packet", "value", "missing")),
        ('"measured"', '"guessed"', ("costs.handler_per_packet", "guessed", "measured")),
        ("value = 900", "value = -1", ("mx.send_cost_ns", "-1")),
        ("value = 900", "value = 0.5", ("mx.send_cost_ns", "0.5")),
        ("[mx.send_cost_ns]", "[mx.send_cost]", ("mx.send_cost", "send_cost_ns")),
        ("[mx.send_cost_ns]", "[mx.event_cost_ns]", ("mx.event_cost_ns", "costs.rank_event")),
        ("[mx.send_cost_ns]", "[mx.notacked_max]", ("mx.notacked_max",)),
        ("[mx.send_cost_ns]", "[mxx.send_cost_ns]", ("mxx",)),
        ("[mx.send_cost_ns]", "[mx]\nsend_cost_ns = 3\n[model.poll_ns]", ("mx.send_cost_ns",)),
        ("value = 6500", "value = []", ("model.idle_exit_ns", "least one entry")),
        ("value = 6500", "value = [1, -2]", ("model.idle_exit_ns", "least 0 ns, not -2")),
        ("value = 6500", "value = [1, 2]", ("idle_after_ns", "equally many values")),
        ("value = 6500", f"value = {[1] * 9}", ("model.idle_exit_ns", "at most 8 entries")),
        ("value = 6500", 'value = "2"', ("model.idle_exit_ns", "a whole number, not '2'")),
        ("[mx.send_cost_ns]", f"{CORES}[mx.send_cost_ns]", ("irq_binding", "7")),
        ("calibrated_by = [", "by = [", ("model.idle_exit_ns", "by")),
        ('["MQ-4"]', '["MQ-4", "MQ-99"]', ("model.idle_exit_ns", "'MQ-99'", "no claim", "--list")),
        ("idle_exit_ns]\nvalue = 6500", "wake_jitter]\nvalue = 1.2", ("wake_jitter", "a list")),
        ("idle_exit_ns]\nvalue = 6500", "wake_jitter]\nvalue = [true]", ("wake_jitter", "True")),
        ('source = "perf"', 'source = ""', ("mx.send_cost_ns", "source")),
        ("dilation = 2\n", "", ("dilation",)),
        ("[mx.send_cost_ns]", "[mx.send_cost_ns", ("TOML", "line")),
    ],
)
def test_a_mistake_is_told_with_file_and_key(
    old: str, new: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.toml").write_text(MINE.replace(old, new, 1))
    command = ["run", "s.py", "--engine", "simulated", "--set", "platform=bad.toml"]
    refused(capsys, command, *words, "bad.toml")


def test_a_file_that_is_not_there_or_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.toml").write_bytes(b"\xff\xfe")
    for name, words in (("no.toml", "exist"), ("./", "read"), ("bad.toml", "TOML")):
        for command in (["run", "s.py"], ["place", "s.py"], ["reproduce", "IC-1"]):
            refused(capsys, [*command, "--set", f"platform={name}"], name, words)
        mpi = ["mpirun", "-n", "2", "--set", f"platform={name}", "true"]
        refused(capsys, mpi, name, words)
    refused(capsys, ["run", "s.py", "platform=myri10g"], "'myri10g-2009'", ".toml")


def test_the_part_of_an_interrupt_is_no_longer_than_the_interrupt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = 'origin = "ours"\nsource = "a guess"\n'
    parts = (("costs.interrupt_to_handler", 2000), ("model.interrupt_delivery_ns", 5000))
    more = "".join(f"[{key}]\nvalue = {ns}\n{said}" for key, ns in parts)
    Path("bad.toml").write_text(MINE + more)
    refused(capsys, ["run", "s.py", "platform=bad.toml"], "interrupt_delivery_ns 2000 ns, 5000")


@pytest.mark.parametrize("kind", ["device", "pipe", "large", "directory"])
def test_what_is_no_file_of_a_sane_size_is_not_read(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_bad_input(kind, Path("bad.toml"))
    refused(capsys, ["run", "smoke/pingpong", f"platform={path}"], f"{path} cannot be read")


@needs_two_users
def test_another_users_file_is_not_used_unless_its_path_is_given() -> None:
    os.chown("mine.toml", ANOTHER, ANOTHER)
    with pytest.raises(InputError, match=rf"mine\.toml is not used: .* belongs to user {ANOTHER}"):
        read_platform("mine.toml")
    for given in ("./mine.toml", str(Path("mine.toml").absolute())):
        assert read_platform(given).name == "mine"


def test_a_result_keeps_the_platform_and_goes_on_with_it() -> None:
    command = ["run", "s.py", "--engine", "simulated", "--output", "r", "platform=./mine.toml"]
    assert main(command) == 0
    run = Path("r/run.json")
    whole = json.loads(run.read_text())
    mine = read_platform("mine.toml")
    assert Platform.model_validate(whole["platforms"]["./mine.toml"]) == mine
    # As an interrupt leaves it: without points, and not complete.
    run.write_text(json.dumps({**whole, "complete": False, "points": []}))
    for change in (lambda: Path("mine.toml").write_text("x"), Path("mine.toml").unlink):
        change()
        assert main([*command, "--resume"]) == 0
        again = json.loads(run.read_text())
        assert again["platforms"] == whole["platforms"]
        assert [p["metrics"] for p in again["points"]] == [p["metrics"] for p in whole["points"]]
        run.write_text(json.dumps({**whole, "complete": False, "points": []}))
    whole["platforms"]["./mine.toml"]["model"]["idle_exit_ns"]["value"] = "long"
    for damaged in (whole["platforms"], {"./mine.toml": 7}, ["./mine.toml"]):
        changes = {"complete": False, "points": [], "platforms": damaged}
        run.write_text(json.dumps({**whole, **changes}))
        assert main([*command, "--resume"]) == 2


def test_what_is_sent_to_other_machines_has_the_whole_platform() -> None:
    (point,) = tiny().changed(["platform=mine.toml"]).points()
    sent = Task.of(point, 7, {}, None).text()
    Path("mine.toml").unlink()
    assert Task.model_validate_json(sent).point.parameters == point.parameters
