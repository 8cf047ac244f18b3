"""A lab in a browser: sliders and numbers compute runs that the page of a lesson does not have."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.browser import BROWSER, Page, browser

from shrimpmx.cli import main
from shrimpmx.cli.lab_server import LabServer
from shrimpmx.page.lessons.lab import Lab, lab_of_lesson, lab_of_scenario
from shrimpmx.page.lessons.write import LESSONS
from shrimpmx.results.metrics import METRICS

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium"),
]
HOSTILE = "<img src=x onerror=console.log(1)>"
LESSON = "document.querySelector('.lesson').lesson"


class Served:
    """A lab that is served, with what it was asked."""

    def __init__(self, server: LabServer, lab: Lab) -> None:
        self.address, self.lab = server.address, lab
        self.asked: list[Mapping[str, str]] = []
        page = lab.page()
        threading.Thread(target=server.serve, args=(page, self._answer), daemon=True).start()

    def _answer(self, asked: Mapping[str, str]) -> bytes:
        self.asked.append(asked)
        return self.lab.answer(asked)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def lesson(page: Page) -> Iterator[Served]:
    with LabServer(0) as server:
        served = Served(server, lab_of_lesson(LESSONS["coalescing"], []))
        opened(page, served)
        yield served


def opened(page: Page, served: Served, width: int = 1280, *, dark: bool = False) -> None:
    page.said.clear()
    page.loaded.clear()
    page.open(served.address, width, dark=dark)
    settled(page)


def settled(page: Page) -> None:
    page.until(f"document.querySelector('.lesson').dataset.ready && !{LESSON}.busy")


def move(page: Page, selector: str, value: float | str) -> None:
    """Move a slider, or type a number, as its reader does."""
    page.run(
        f"(() => {{ const input = document.querySelector({json.dumps(selector)}); input.value ="
        f" {json.dumps(str(value))}; input.dispatchEvent(new Event('input')); }})()"
    )
    settled(page)


def words(page: Page, selector: str) -> str:
    return str(page.run(f"document.querySelector({json.dumps(selector)}).innerText"))


def half_round_trip(page: Page) -> float:
    return float(words(page, ".figures-of-run td:nth-child(2)").split()[0])


def test_any_value_is_computed(page: Page, lesson: Served) -> None:
    timer = "div:has(> label > [name=rx_usecs])"
    before = half_round_trip(page)
    move(page, f"{timer} [type=number]", 42.0)
    assert words(page, f"{timer} output") == "42 µs"
    assert half_round_trip(page) == pytest.approx(before - 33, abs=0.01)
    assert "rx_usecs=42" in words(page, ".commands")
    # Half way between the values of a page without a lab, 10 and 30 µs.
    move(page, "[name=rx_usecs]", 0.5)
    assert words(page, f"{timer} output") == "20 µs"
    assert page.run(f"document.querySelector('{timer} [type=number]').value") == "20"
    assert lesson.asked[-1]["rx_usecs"] == "20"
    move(page, "[name=rx_usecs]", 2)
    assert half_round_trip(page) == before
    move(page, "div:has(> label > [name=interrupt_time_ns]) [type=number]", 2.5)
    assert lesson.asked[-1]["interrupt_time_ns"] == "2500"
    page.click("[data-do=step]")
    assert page.run(f"{LESSON}.told") == 2
    assert page.said == []
    assert {address.partition("?")[0] for address in page.loaded} == {
        lesson.address,
        f"{lesson.address}run",
    }


def test_what_it_shows_is_what_its_commands_give(
    page: Page, lesson: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    move(page, "div:has(> label > [name=rx_usecs]) [type=number]", 42.0)
    shown = page.run(
        "[...document.querySelectorAll('.figures-of-run tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    for side, command in enumerate(words(page, ".commands").splitlines(), 1):
        output = tmp_path / str(side)
        assert main([*shlex.split(command)[1:], "--output", str(output)]) == 0
        [point] = json.loads((output / "run.json").read_text())["points"]
        assert point["time_dilation"] == 1  # a slider's microsecond is one of the hosts'
        for row, name in zip(shown, ("half_round_trip", "interrupts_per_message"), strict=False):
            metric, scale = point["metrics"][name], METRICS[name].scale(point["time_dilation"])
            assert float(row[side].split()[0]) == pytest.approx(metric["median"] * scale, abs=6e-4)
    capsys.readouterr()


def test_it_plays_in_either_light(page: Page, lesson: Served) -> None:
    for dark in (True, False):
        opened(page, lesson, dark=dark)
        page.run(f"{LESSON}.seek(0)")
        move(page, "[name=speed]", 6)
        page.click("[data-do=play]")
        page.until(f"{LESSON}.now >= {LESSON}.end")
        assert int(words(page, "[data-live=interrupts]")) > 5
    assert page.run("document.documentElement.scrollWidth") <= 1280
    assert page.said == []


def test_a_value_that_is_refused_leaves_what_is_shown(page: Page, lesson: Served) -> None:
    before = half_round_trip(page)
    move(page, "div:has(> label > [name=rx_usecs]) [type=number]", 10**9)
    assert "rx_usecs must be at most 1000000" in words(page, ".state")
    assert half_round_trip(page) == before
    page.said.clear()  # a browser tells of an answer other than 200
    move(page, "[name=rx_usecs]", 2)
    assert words(page, ".state") == ""
    assert page.said == []


def test_the_last_of_many_moves_is_shown(page: Page, lesson: Served) -> None:
    asked = len(lesson.asked)
    page.run(
        "(() => { const slider = document.querySelector('[name=rx_usecs]');"
        " for (let at = 0; at <= 40; at++) { slider.value = at / 20;"
        " slider.dispatchEvent(new Event('input')); } })()"
    )
    settled(page)
    assert "rx_usecs=75" in words(page, ".commands")
    # One pair at a time, and then the last.
    assert len(lesson.asked) - asked <= 4


def test_a_lab_that_has_ended_says_so(page: Page) -> None:
    with LabServer(0) as server:
        opened(page, Served(server, lab_of_lesson(LESSONS["queues"], [])))
    move(page, "[name=rx_queues]", 0.5)
    assert "The lab has ended" in words(page, ".state")


def test_a_scenario_of_ones_own_with_hostile_words(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("own") / "own.py"
    file.write_text(
        "from shrimpmx.experiment.scenario import Scenario\n"
        f"scenario = Scenario(name='own', title={HOSTILE!r}, shows={HOSTILE!r},"
        " metrics=('half_round_trip', 'interrupts_per_message'),"
        " parameters={'iterations': 4, 'platform': 'myri10g-2009'},"
        " sweep={'size_bytes': (4096, 0), 'coalescing': ('open-mx', 'disabled')})\n"
    )
    with LabServer(0) as server:
        served = Served(server, lab_of_scenario(str(file), ["wait=block"]))
        opened(page, served, 360)
        assert words(page, "h1") == HOSTILE
        assert page.run("document.documentElement.scrollWidth") <= 360
        assert page.run("document.querySelectorAll('fieldset').length") == 0
        assert page.run("document.querySelector('img')") is None
        move(page, "[name=size_bytes]", 0.25)
        assert words(page, "div:has(> label > [name=size_bytes]) output") == "1024 B"
        assert "wait=block" in words(page, ".commands")
        assert page.said == []
