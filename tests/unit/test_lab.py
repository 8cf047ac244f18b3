"""A lab: what it computes, who may ask it, and one sentence per mistake."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.conditions import patient
from support.lessons import small
from support.page import Page
from support.tree import ROOT

from shrimpmx.cli import main
from shrimpmx.cli.lab_server import LabServer
from shrimpmx.errors import AgentError, InputError
from shrimpmx.page.lessons.compute import runs_of
from shrimpmx.page.lessons.lab import Lab, lab_of_lesson, lab_of_program, lab_of_scenario
from shrimpmx.page.lessons.write import LESSONS
from shrimpmx.results.metrics import METRICS

HOSTILE = "</script><script>alert(1)</script>&\"'"
FIRST = {
    "workload": "0",
    "size_bytes": "0",
    "rx_usecs": "75",
    "interrupt_time_ns": "4000",
    "tx_gap_ns": "1970",
    "rule": "1",
}
POLICY = """
from shrimpmx.nic.policy import Policy

class Every(Policy):
    def on_dma_complete(self, now_ns, marked, dma_pending):
        return "packet"
"""


def told(answer: bytes) -> dict[str, Any]:
    (length,) = struct.unpack_from("<I", answer)
    return json.loads(answer[4 : 4 + length])


@pytest.fixture(scope="module")
def lab() -> Lab:
    return lab_of_lesson(LESSONS["coalescing"], [])


def first_of(lab: Lab) -> dict[str, str]:
    return {name: FIRST[name] for name in [*(s.parameter for s in lab.lesson.sliders), "rule"]}


def test_a_value_of_a_slider_gives_the_run_of_the_lesson(lab: Lab) -> None:
    lesson = small(LESSONS["coalescing"], {})
    [*runs], places = runs_of(lesson, lambda _made, _of: None)
    for rule in range(3):
        answer = lab.answer({**first_of(lab), "rule": str(rule)})
        made = runs[places[rule]]
        assert answer.endswith(made.trace)
        assert told(answer)["figures"] == list(made.figures)
        if rule:  # the timer is none of its settings
            assert told(answer)["command"] == made.command


def test_any_value_between_is_computed(lab: Lab) -> None:
    figures = [
        told(lab.answer({**first_of(lab), "rx_usecs": str(usecs)}))["figures"][0]
        for usecs in (40, 41, 50)
    ]
    assert figures[1] == pytest.approx(figures[0] + 1)
    assert figures[2] == pytest.approx(figures[0] + 10)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"size_bytes": "abc"}, "size_bytes must be a number, not 'abc'"),
        ({"size_bytes": "1,2"}, "size_bytes must be a number, not '1,2'"),
        ({"size_bytes": "-1"}, "size_bytes must be at least 0"),
        ({"rx_usecs": "7.5"}, "rx_usecs must be a whole number"),
        ({"rx_usecs": "9" * 18}, "rx_usecs must be at most"),
        ({"rx_usecs": "9" * 400}, "rx_usecs must be a number"),
        ({"rx_usecs": HOSTILE}, "rx_usecs must be a number"),
        ({"workload": "2"}, "workload must be a number from 0 to 1, not '2'"),
        ({"workload": "stream"}, "workload must be a number from 0 to 1, not 'stream'"),
        ({"rule": "file.py:Policy"}, "rule must be a number from 0 to 2"),
        ({"wait": "1"}, "a run takes one number for each of workload, size_bytes"),
    ],
)
def test_a_value_that_cannot_be_used_is_one_sentence(
    lab: Lab, changed: dict[str, str], said: str
) -> None:
    with pytest.raises(InputError) as raised:
        lab.answer({**first_of(lab), **changed})
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_scenario_and_a_policy_of_ones_own(tmp_path: Path) -> None:
    policy = tmp_path / "own.py"
    policy.write_text(POLICY)
    lab = lab_of_scenario(
        "smoke/pingpong",
        [f"coalescing=disabled,{policy}:Every", "size_bytes=0,4096", "iterations=5", "rx_usecs=7"],
    )
    assert [slider.parameter for slider in lab.lesson.sliders] == ["size_bytes"]
    assert len(lab.lesson.rules) == 2
    answers = [told(lab.answer({"size_bytes": "100", "rule": str(rule)})) for rule in range(2)]
    # Its rule is that of `disabled`, without the interrupts of sends.
    assert answers[0]["figures"][1] == 2 * answers[1]["figures"][1] == pytest.approx(2, abs=0.1)
    assert f"coalescing={policy}:Every" in shlex.split(answers[1]["command"])
    assert answers[1]["command"].count("size_bytes=") == 1
    assert "rx_usecs=7" in answers[1]["command"]


def test_the_command_of_a_run_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = lab_of_scenario("smoke/pingpong", ["rx_usecs=10,30", "iterations=5", "size_bytes=64"])
    answer = told(lab.answer({"rx_usecs": "23", "rule": "1"}))
    command = shlex.split(answer["command"])
    assert main([*command[1:], "--output", str(tmp_path / "again")]) == 0
    [point] = json.loads((tmp_path / "again/run.json").read_text())["points"]
    names = list(lab.lesson.metrics)
    for name, figure in zip(names, answer["figures"][:-2], strict=True):
        kept = point["metrics"][name]
        scale = METRICS[name].scale(point["time_dilation"])
        # Within what the kept samples are rounded to.
        assert kept is None or figure == pytest.approx(kept["median"] * scale, rel=1e-5)
    capsys.readouterr()


def test_a_scenario_without_axes_compares_its_rule_with_others_by_the_timer() -> None:
    lab = lab_of_scenario(
        "smoke/pingpong", ["coalescing=stream", "size_bytes=0", "rx_usecs=20", "iterations=5"]
    )
    assert [rule.label for rule in lab.lesson.rules] == ["stream", "disabled", "timeout", "open-mx"]
    assert lab.lesson.sliders[0].values == (10, 20, 30, 75)


def test_an_mpi_program(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "scenarios/programs/ring.py")]
    lab = lab_of_program(words, 2, ["coalescing=disabled,timeout", "rx_usecs=10,75", "cores=1"])
    answers = [told(lab.answer({"rx_usecs": "20", "rule": str(rule)})) for rule in range(2)]
    assert answers[0]["figures"][0] < answers[1]["figures"][0]
    command = shlex.split(answers[1]["command"])
    assert command[:2] == ["shrimpmx", "mpirun"]
    assert command[-2:] == words
    assert command.count("--set") == 3
    with pytest.raises(AgentError, match="ended with exit code 1"):
        lab_of_program(["false"], 2, []).page()


def test_hostile_names_stay_words(tmp_path: Path) -> None:
    scenario = tmp_path / "own.py"
    scenario.write_text(
        "from shrimpmx.experiment.scenario import Scenario\n"
        f"scenario = Scenario(name='own', title={HOSTILE!r}, shows={HOSTILE!r},"
        " metrics=('half_round_trip',), parameters={'iterations': 3, 'size_bytes': 0})\n"
    )
    page = Page(lab_of_scenario(str(scenario), []).page().decode())
    assert page.unbalanced == []
    assert page.source.count("<script") == 3
    assert f"<h1>{HOSTILE}" not in page.source


END = {"end": "now"}


@pytest.fixture
def server() -> Iterator[LabServer]:
    def answer(asked: Any) -> bytes:
        if not asked:
            raise InputError("nothing was asked")
        if asked == END:
            sys.exit()
        return repr(sorted(asked.items())).encode()

    with LabServer(0) as served:

        def serve() -> None:
            with contextlib.suppress(SystemExit):
                served.serve(b"<p>page", answer)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        assert ask(served.address)[0] == 200  # it has begun
        yield served
        served.asked.put((END, Future()))
        serving.join()


def ask(address: str, **headers: str) -> tuple[int, str, dict[str, str]]:
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=patient(10)) as answer:
            return answer.status, answer.read().decode(errors="replace"), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


def test_it_serves_its_page_and_runs_to_whoever_has_the_token(server: LabServer) -> None:
    code, body, headers = ask(server.address)
    assert (code, body) == (200, "<p>page")
    assert headers["Content-Type"].startswith("text/html")
    assert headers["Cache-Control"] == "no-store"
    assert ask(f"{server.address}run?a=1&b=%3Cb%3E")[:2] == (200, "[('a', '1'), ('b', '<b>')]")
    assert ask(f"{server.address}run")[:2] == (400, "nothing was asked.\n")
    # One of two is not taken for the other.
    assert ask(f"{server.address}run?a=1&a=2")[0] == 400


@pytest.mark.parametrize("place", ["", "x/", "x/run?a=1", "../", "favicon.ico", "é/", "%00/"])
def test_another_token_gets_one_sentence(server: LabServer, place: str) -> None:
    root = server.address.rsplit("/", 2)[0]
    code, body, headers = ask(f"{root}/{urllib.parse.quote(place, safe='/?=%.')}")
    assert code == 403
    assert body == "The token is not that of this lab: open the address it printed.\n"
    assert headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("name", ["x", "../etc/passwd", "run/x", "page.css", "%2e%2e/x"])
def test_it_has_no_other_files(server: LabServer, name: str) -> None:
    assert ask(f"{server.address}{name}")[:2] == (
        404,
        "A lab has one page and its runs, no other files.\n",
    )


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1", "127.0.0.1:1"])
def test_another_name_of_this_machine_is_refused(server: LabServer, host: str) -> None:
    code, body, _ = ask(server.address, Host=host)
    assert code == 403
    assert "open the one that it printed" in body


def test_a_client_that_says_nothing_does_not_keep_others_out(server: LabServer) -> None:
    port = int(server.address.split(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port)):
        assert ask(server.address)[0] == 200


def test_it_listens_on_loopback_only(server: LabServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_mistakes_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with LabServer(0) as server:
        port = server.address.split(":")[2].partition("/")[0]
        assert main(["lab", "queues", "--port", port]) == 2
        assert_refused(capsys, f"--port {port} cannot be used: Address already in use")
    for given, said in (
        (["lab", "queues", "--port", "65536"], "--port takes a port from 0 to 65535, not '65536'"),
        (["lab", "queues", "waiting"], "one lesson at a time, not queues, waiting"),
        (["lab", "queues", "cores=2"], "name the scenario smoke/pingpong"),
        (["lab", "smoke/pingpon"], "did you mean 'smoke/pingpong'?"),
        (["lab", "smoke/pingpong", "rx_usec=1"], "there is no parameter 'rx_usec'"),
        (["lab", "-n", "0", "true"], "-n must be at least 1, not 0"),
        (["lab", "-n", "2", "no-such-program"], "no-such-program"),
    ):
        assert main(given) == 2
        assert_refused(capsys, said)


@pytest.mark.nightly("each signal", but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_and_leaves_nothing(number: int) -> None:
    command = [sys.executable, "-m", "shrimpmx", "lab", "queues"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().decode().strip()
            run = "rx_queues=3&pairs=3&size_bytes=9&idle_exit_ns=999&rule=0"
            assert ask(f"{address}run?{run}")[0] == 200
        finally:
            process.send_signal(number)
        out, said = process.communicate(timeout=patient(20))
        assert (process.returncode, out) == (0, b"")
        assert said == b"shrimpmx: open this address in a browser; Ctrl-C ends the lab\n"
    with pytest.raises(urllib.error.URLError):
        ask(address)
    assert not list(Path("/dev/shm").glob(f"shrimpmx-*-{process.pid}-*"))
