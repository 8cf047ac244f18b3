"""A lesson in a browser: sliders, playing, stepping, figures and questions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import BROWSER, Page, browser
from support.lessons import small

from shrimpmx.cli import main
from shrimpmx.page.lessons.write import LESSONS, lesson_page
from shrimpmx.results.metrics import METRICS

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium"),
]
KEPT = {
    "coalescing": {"workload": (0, 1), "size_bytes": (0, 1)},
    "waiting": {"tx_gap_ns": (0, 2)},
    "queues": {"rx_queues": (0, 2)},
}
LESSON = "document.querySelector('.lesson').lesson"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("lessons")
    places = {}
    for name, lesson in LESSONS.items():
        places[name] = directory / f"{name}.html"
        places[name].write_bytes(lesson_page(small(lesson, KEPT[name]), lambda _made, _of: None))
    return places


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def opened(page: Page, place: Path, width: int = 1280, *, dark: bool = False) -> None:
    page.said.clear()
    page.loaded.clear()
    page.open(place.as_uri(), width, dark=dark)
    page.until("document.querySelector('.lesson').dataset.ready")


def move(page: Page, name: str, value: int) -> None:
    """Move a slider as its reader does."""
    page.run(
        f"(() => {{ const slider = document.querySelector('[name={name}]'); slider.value = {value};"
        " slider.dispatchEvent(new Event('input')); })()"
    )


def words(page: Page, selector: str) -> str:
    return str(page.run(f"document.querySelector({json.dumps(selector)}).innerText"))


@pytest.mark.nightly("each lesson and width", but=1)
@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize(("width", "dark"), [(360, False), (1280, True)])
def test_it_draws_and_loads_nothing(
    page: Page, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    opened(page, pages[name], width, dark=dark)
    page.run(f"{LESSON}.seek({LESSON}.end / 2)")
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    for canvas in range(2):
        colours = page.run(
            f"(() => {{ const canvas = document.querySelectorAll('.lanes canvas')[{canvas}];"
            " const found = canvas.getContext('2d').getImageData(0, 0, canvas.width,"
            " canvas.height).data; return new Set(new Uint32Array(found.buffer)).size; })()"
        )
        assert colours > 20
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.said == []
    assert page.loaded == [pages[name].as_uri()]


def test_its_figures_are_those_of_run_json(
    page: Page, pages: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(page, pages["coalescing"])
    for size in range(2):
        move(page, "size_bytes", size)
        commands = words(page, ".commands").splitlines()
        rows = page.run(
            "[...document.querySelectorAll('.figures-of-run tbody tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.innerText))"
        )
        for side, command in enumerate(commands):
            output = tmp_path / f"{size}{side}"
            assert main([*shlex.split(command)[1:], "--output", str(output)]) == 0
            [point] = json.loads((output / "run.json").read_text())["points"]
            # The rate is a stream's.
            names = [name for name in LESSONS["coalescing"].metrics if name != "message_rate"]
            for row, name in zip(rows[:-2], names, strict=True):
                metric = point["metrics"].get(name)
                if metric is not None:
                    figure = metric["median"] * METRICS[name].scale(point["time_dilation"])
                    assert float(row[side + 1].split()[0]) == pytest.approx(figure, abs=6e-4)
    capsys.readouterr()


def test_sliders_and_rules_choose_other_runs(page: Page, pages: dict[str, Path]) -> None:
    opened(page, pages["coalescing"])
    before = words(page, ".figures-of-run")
    assert "timeout" in before
    move(page, "size_bytes", 1)
    assert words(page, ".sliders div:nth-child(2) output") == "4 KiB"
    assert words(page, ".figures-of-run") != before
    move(page, "size_bytes", 0)
    assert words(page, ".figures-of-run") == before
    page.run(
        "(() => { const rule = document.querySelector('.side select'); rule.selectedIndex = 0;"
        " rule.dispatchEvent(new Event('change')); })()"
    )
    assert "disabled" in words(page, ".figures-of-run")
    assert "coalescing=disabled" in words(page, ".commands")
    assert page.said == []


def test_it_steps_and_plays_and_says_why(page: Page, pages: dict[str, Path]) -> None:
    opened(page, pages["coalescing"])
    told = page.run(
        "(() => { const told = [], why = document.querySelector('.side .why');"
        " for (let step = 0; step < 300; step++) { told.push(why.innerText);"
        " document.querySelector('[data-do=step]').click(); } return told; })()"
    )
    assert any("The timer has run out" in each for each in told)
    assert any("hands a message" in each for each in told)
    count = page.run(f"{LESSON}.told")
    page.click("[data-do=back]")
    assert page.run(f"{LESSON}.told") == count - 1
    page.click("[data-do=start]")
    assert page.run(f"{LESSON}.now") == 0
    page.run("document.querySelector('.lanes canvas').focus()")
    page.press("ArrowRight")
    assert page.run(f"{LESSON}.told") == 2
    move(page, "speed", 6)
    page.click("[data-do=play]")
    assert words(page, "[data-do=play]") == "Pause"
    page.until(f"{LESSON}.now >= {LESSON}.end")
    page.until("document.querySelector('[data-do=play]').textContent === 'Play'")
    assert words(page, "[data-live=latency]").endswith("µs")
    assert int(words(page, "[data-live=interrupts]")) > 5
    assert page.said == []


def test_answers_are_checked(page: Page, pages: dict[str, Path]) -> None:
    opened(page, pages["waiting"])
    page.click("[data-do=check]")
    assert words(page, ".score") == "0 of 5 right"
    for number, question in enumerate(LESSONS["waiting"].questions, 1):
        answer = question.right if number != 2 else (question.right + 1) % len(question.answers)
        page.click(f"input[name=question{number}][value='{answer}']")
    page.click("[data-do=check]")
    assert words(page, ".score") == "4 of 5 right"
    assert LESSONS["waiting"].questions[0].because in words(page, "fieldset")
    page.click("input[name=question1][value='1']")
    assert LESSONS["waiting"].questions[0].because not in words(page, "fieldset")
    assert words(page, ".score") == ""


def test_a_stream_has_a_rate_and_many_messages(page: Page, pages: dict[str, Path]) -> None:
    opened(page, pages["coalescing"])
    assert "Half round trip" in words(page, ".figures-of-run")
    assert "Message rate" not in words(page, ".figures-of-run")
    move(page, "workload", 1)
    assert "Half round trip" not in words(page, ".figures-of-run")
    assert "Message rate" in words(page, ".figures-of-run")
    page.run(f"{LESSON}.seek({LESSON}.end)")
    assert int(words(page, "[data-live=messages]")) > 50
    assert "iterations=1000" in words(page, ".commands")


@pytest.mark.parametrize("name", LESSONS)
def test_all_lanes_and_both_rules_are_seen(page: Page, pages: dict[str, Path], name: str) -> None:
    opened(page, pages[name], 360)
    assert page.run(
        f"{LESSON}.sides.every(({{lanes}}) => lanes.height === lanes.total"
        " && lanes.scroller.scrollHeight <= lanes.scroller.clientHeight)"
    )
    assert page.run(
        "document.querySelector('.figures-of-run').getBoundingClientRect().right <= innerWidth"
    )
    legend = words(page, ".legend")
    assert "◇ current event" in legend
    assert "lost packet" not in legend
    assert ("□" in legend) == page.run(
        f"{LESSON}.sides.some(({{trace}}) => [...trace.markRecord].some((record) =>"
        " ['irq_held_back', 'irq_absorbed', 'irq_deferred'].includes(trace.kind(record))))"
    )


def test_what_both_sides_say_stands_side_by_side(page: Page, pages: dict[str, Path]) -> None:
    opened(page, pages["queues"])
    first, second = page.run(
        "[...document.querySelectorAll('.live')].map((each) => each.getBoundingClientRect())"
        ".map(({left, top}) => [left, top])"
    )
    assert first[0] < second[0]
    assert first[1] == second[1]
