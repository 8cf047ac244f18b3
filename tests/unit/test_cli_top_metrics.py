"""`shrimpmx top --metrics`: what it serves is text for Prometheus, and reaches a real one."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import assert_refused
from support.conditions import wait_until
from support.live_run import RUN, LiveRun, only_our_runs

from shrimpmx.cli import main, top
from shrimpmx.cli.metrics_server import MetricsServer
from shrimpmx.cluster.live import runs
from shrimpmx.cluster.live.attach import AttachedRun
from shrimpmx.cluster.live.openmetrics import Counted, metrics_text

Captured = pytest.CaptureFixture[str]

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.e+-]+)")
HOSTILE = 'shrimpmx run "a\\b"\nx{y="z"} 1\n# EOF \ud800 é'


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    only_our_runs(monkeypatch)
    monkeypatch.setattr(top, "FOLLOW_S", 0.0)
    monkeypatch.setattr(runs, "is_simulated", lambda _run: False)


@pytest.fixture
def live() -> Iterator[LiveRun]:
    run = LiveRun()
    run.open_endpoint(core=1)
    run.count("node0.nic", rx_packets=500, irq_deferred_longest_ns=1500)
    run.interrupt(1, 1, 7)
    yield run
    run.close()


def counted(run: LiveRun, command: str = "shrimpmx run x") -> Counted:
    with AttachedRun(run.identity) as attached:
        return Counted(RUN, command, 1.5, attached.reading())


def samples_of(text: str, *, openmetrics: bool) -> dict[str, float]:
    """The samples of a text, which keeps the grammar: each family is declared once, before its
    samples, which stand together, and no sample comes twice.
    """
    found: dict[str, float] = {}
    declared: dict[str, str] = {}
    family = ""
    lines = text.split("\n")
    assert lines.pop() == ""
    if openmetrics:
        assert lines.pop() == "# EOF"
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in declared
            declared[family] = kind
            assert re.fullmatch(NAME, family)
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == family
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            total = "_total" * (declared[family] == "counter" and openmetrics)
            assert match[1] == family + total
            assert (match[1].endswith("_total")) == (declared[family] == "counter")
            place = line.rpartition(" ")[0]
            assert place not in found
            found[place] = float(match[3])
    return found


@pytest.mark.parametrize("openmetrics", [True, False])
def test_all_counters_of_a_run_are_told(live: LiveRun, openmetrics: bool) -> None:
    found = samples_of(
        metrics_text(counted(live), openmetrics=openmetrics), openmetrics=openmetrics
    )
    assert found[f'shrimpmx_run{{run="{RUN}",command="shrimpmx run x"}}'] == 1
    assert found["shrimpmx_run_age_seconds"] == 1.5
    assert found['shrimpmx_rx_packets_total{agent="node0.nic",kind="nic"}'] == 500
    longest = 'shrimpmx_irq_deferred_longest_seconds{agent="node0.nic",kind="nic"}'
    assert found[longest] == pytest.approx(1.5e-6)
    vector = 'shrimpmx_vector_interrupts_total{node="0",core="1",vector="1"}'
    assert found[vector] == 7


@pytest.mark.parametrize("openmetrics", [True, False])
def test_a_hostile_name_is_text(live: LiveRun, openmetrics: bool) -> None:
    text = metrics_text(counted(live, HOSTILE), openmetrics=openmetrics)
    samples_of(text, openmetrics=openmetrics)
    assert text.encode()
    assert samples_of(metrics_text(None, openmetrics=openmetrics), openmetrics=openmetrics) == {}


def answer(address: str, accept: str) -> tuple[str, str]:
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as found:
        return found.headers["Content-Type"], found.read().decode()


def test_top_serves_them_while_it_watches(
    live: LiveRun, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    answers: list[tuple[str, str]] = []
    sleep = time.sleep

    def sleeps(seconds: float) -> None:
        live.pass_time(1)
        if not answers:
            address = capsys.readouterr().err.split()[-1]
            answers.append(answer(address, "application/openmetrics-text;version=1.0.0"))
            answers.append(answer(address, "text/plain"))
            with pytest.raises(urllib.error.HTTPError):
                answer(address + "/../etc", "")
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleeps)
    assert main(["top", "--once", "--interval", "0.01", "--metrics", "0"]) == 0
    for (kind, text), openmetrics in zip(answers, (True, False), strict=True):
        assert kind.startswith("application/openmetrics-text" if openmetrics else "text/plain")
        assert samples_of(text, openmetrics=openmetrics)


@pytest.mark.parametrize("port", ["-1", "65536", "x", "²"])
def test_a_port_that_is_none_is_refused(port: str, capsys: Captured) -> None:
    assert main(["top", f"--metrics={port}"]) == 2
    assert_refused(capsys, "--metrics port 65535")


@pytest.mark.usefixtures("live")
def test_a_port_that_is_taken_is_refused(capsys: Captured) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["top", "--once", "--metrics", str(port)]) == 2
    assert_refused(capsys, f"--metrics {port} use")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed")
def test_promtool_has_nothing_to_say(live: LiveRun) -> None:
    text = metrics_text(counted(live), openmetrics=False)
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.nightly("Prometheus starts")
@pytest.mark.timeout(120)
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
def test_a_real_prometheus_reads_them(live: LiveRun, tmp_path: Path) -> None:
    with MetricsServer(0) as server, socket.socket() as free:
        server.publish(counted(live))
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        target = server.address.removeprefix("http://").removesuffix("/metrics")
        scrape = {"job_name": "run", "static_configs": [{"targets": [target]}]}
        configuration = {"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}
        (tmp_path / "prometheus.yml").write_text(json.dumps(configuration))
        command = [
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={place}",
        ]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as prometheus:
            try:
                query = f"http://{place}/api/v1/query?query=shrimpmx_rx_packets_total"
                wait_until(lambda: "500" in values_of(query), "Prometheus has the counter", 100)
            finally:
                prometheus.terminate()


def values_of(query: str) -> list[str]:
    try:
        _, text = answer(query, "application/json")
    except OSError:
        return []
    return [each["value"][1] for each in json.loads(text)["data"]["result"]]
