"""The timeline of a traced result in a browser: it draws, moves, tells, and loads nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import BROWSER, Page, browser
from support.frames import MESSAGE_NS, long_page

import shrimpmx
from shrimpmx.cli import main
from shrimpmx.show.kept_trace import load_trace
from shrimpmx.show.slow_messages import messages_of

pytestmark = [
    pytest.mark.charts,
    pytest.mark.timeout(150),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium"),
]
HOSTILE = "<img src=x onerror=console.log(1)>"
VIEW = "document.querySelector('.timeline').timeline"
LANES = f"{VIEW}.lanes"
# How many colours a picture has: a blank one has one.
COLOURS = (
    f"(() => {{ const canvas = {LANES}.canvas, pen = canvas.getContext('2d');"
    " const found = pen.getImageData(0, 0, canvas.width, canvas.height).data;"
    " return new Set(new Uint32Array(found.buffer)).size; })()"
)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("traced")
    command = "run smoke/pingpong --engine simulated --trace --set repeats=1"
    more = "--set size-bytes=0,8192 --set iterations=20 --set coalescing=open-mx"
    assert main([*command.split(), *more.split(), "--output", str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def opened(page: Page, directory: Path, width: int = 1280, *, dark: bool = False) -> int:
    """How many records its timeline shows."""
    page.open((directory / "report.html").as_uri(), width, dark=dark)
    return int(page.until("document.querySelector('.timeline').dataset.ready"))


def view(page: Page) -> list[float]:
    return page.run(f"[{LANES}.begin, {LANES}.end]")


@pytest.mark.nightly("each width and light", but=1)
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_it_draws_at_any_width_and_in_either_light(
    page: Page, traced: Path, width: int, dark: bool
) -> None:
    page.loaded.clear()
    opened(page, traced, width, dark=dark)
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.run(COLOURS) > 20
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.querySelectorAll('.legend span').length") > 8
    assert page.said == []
    assert page.loaded == [(traced / "report.html").as_uri()]


# What each state is filled with: for each pixel whether it is paper.
FILLS = (
    f"(() => {{ const lanes = {LANES}, pen = new OffscreenCanvas(16, 16).getContext('2d');"
    " const filled = (fill) => { pen.fillStyle = fill; pen.fillRect(0, 0, 16, 16);"
    " return [...new Uint32Array(pen.getImageData(0, 0, 16, 16).data.buffer)]; };"
    " const [paper] = filled(lanes.paper);"
    " return Object.fromEntries(lanes.trace.states.map((state, at) =>"
    " [state, filled(lanes.fills[at]).map((pixel) => +(pixel === paper)).join('')])); })()"
)


@pytest.mark.parametrize("dark", [False, True])
def test_states_of_a_lane_differ_without_colour(page: Page, traced: Path, dark: bool) -> None:
    opened(page, traced, dark=dark)
    fills = page.run(FILLS)
    # Of the others a timer is a wedge, a sleep a line, and a lost packet has a cross.
    for lane in (
        ("packet", "marked packet"),
        ("interrupt taken", "poll"),
        ("computing", "spinning", "in the kernel", "without its CPU"),
    ):
        assert len({fills[state] for state in lane}) == len(lane)


@pytest.mark.parametrize("dark", [False, True])
def test_hostile_names_of_a_program_are_text(page: Page, tmp_path: Path, dark: bool) -> None:
    program, output = tmp_path / f"{HOSTILE}.py", tmp_path / "r"
    program.write_text(
        "import sys\n"
        "from mpi4py import MPI\n"
        "MPI.COMM_WORLD.sendrecv(sys.argv[1], 1 - MPI.COMM_WORLD.rank)\n"
        "print(sys.argv[1])\n"
    )
    kept = ("--engine", "simulated", "--trace", "--output", str(output))
    words = (sys.executable, str(program), HOSTILE)
    assert main(["mpirun", "-n", "2", *kept, "-x", f"OWN={HOSTILE}", *words]) == 0
    page.said.clear()
    page.loaded.clear()
    opened(page, output, dark=dark)
    assert page.run("document.body.innerText").count(HOSTILE) > 2
    page.click(".seen summary")
    page.until("document.querySelectorAll('.seen tbody tr').length")
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.said == []
    assert page.loaded == [(output / "report.html").as_uri()]


def test_it_opens_at_the_slowest_message_with_its_stages(page: Page, traced: Path) -> None:
    count = opened(page, traced)
    trace = load_trace(sorted((traced / "traces").glob("*.npz"))[0])
    assert count == len(trace.records)
    slowest = min(messages_of(trace), key=lambda message: (-message.took_ns, message.sent.time_ns))
    start_ns = trace.records[0].time_ns
    sent, received = (
        (record.time_ns - start_ns) / trace.dilation for record in (slowest.sent, slowest.received)
    )
    begin, end = view(page)
    assert begin < sent < received < end
    assert received - sent > (end - begin) / 2
    words = page.run("document.querySelector('.message').innerText")
    took_us = (received - sent) / 1000
    ends = " to ".join(map(trace.agent_name, (slowest.sent, slowest.received)))
    assert f"The slowest message: {ends}, 0 bytes, {took_us:.3f} µs" in words
    for stage in ("on the line", "interrupt raised", "rank awake"):
        assert stage in words


def test_keys_and_buttons_move_it(page: Page, traced: Path) -> None:
    opened(page, traced)
    page.run(f"{LANES}.canvas.focus()")
    begin, end = view(page)
    page.press("ArrowRight")
    assert view(page)[0] > begin
    page.press("ArrowLeft")
    assert view(page) == pytest.approx([begin, end])
    page.press("+")
    assert view(page)[1] - view(page)[0] < end - begin
    page.press("-")
    assert view(page)[1] - view(page)[0] == pytest.approx(end - begin)
    page.press("Home")
    assert view(page)[1] >= page.run(f"{LANES}.trace.end")
    page.press("n")
    second = page.run("document.querySelector('.said').textContent")
    page.press("p")
    assert page.run("document.querySelector('.said').textContent") != second
    page.press(".")
    assert " µs, " in page.run("document.querySelector('.said').textContent")
    page.click("button[data-do=all]")
    assert view(page)[1] >= page.run(f"{LANES}.trace.end")
    page.click("button[data-do=slowest]")
    assert view(page) == pytest.approx([begin, end])
    assert page.said == []


# Where the chosen message was sent, in the window.
SENT = (
    f"(() => {{ const [x, y] = {LANES}.place({LANES}.trace.messageSent[{LANES}.selected]),"
    f" box = {LANES}.canvas.getBoundingClientRect(); return [box.x + x, box.y + y]; }})()"
)


def test_a_pointer_shows_records_and_a_click_the_message(page: Page, traced: Path) -> None:
    opened(page, traced)
    page.run(f"{LANES}.canvas.scrollIntoView()")
    tip = "document.querySelector('.tip')"
    told = ""
    while not told:  # the page may still have moved below the pointer
        x, y = page.run(SENT)
        page.mouse("mouseMoved", x, y)
        page.run("new Promise(requestAnimationFrame)")
        told = page.run(f"!{tip}.hidden && {tip}.textContent")
    assert "0 bytes" in told
    page.press("Home")
    page.run(f"{LANES}.selected = -1")
    page.mouse("mousePressed", x, y)
    page.mouse("mouseReleased", x, y)
    page.until(f"{LANES}.selected >= 0")
    begin = view(page)[0]
    page.mouse("mousePressed", x, y)
    page.mouse("mouseMoved", x - 100, y)
    page.mouse("mouseReleased", x - 100, y)
    assert page.until(f"{LANES}.begin > {begin}")


def test_fingers_move_it_zoom_and_choose_a_message(page: Page, traced: Path) -> None:
    opened(page, traced, 360)
    page.run(f"{LANES}.canvas.scrollIntoView()")
    box = f"(({{x, y, width}}) => [x, y, width])({LANES}.canvas.getBoundingClientRect())"
    left, top, width = page.run(box)
    begin, end = view(page)
    middle, y = left + width / 2, top + 60
    page.touch([(middle, y)], [(middle - 40, y)], [(middle - 80, y)])
    page.until(f"{LANES}.begin > {begin}")
    assert view(page)[1] - view(page)[0] == pytest.approx(end - begin)
    page.touch(*([(middle - 20 - apart, y), (middle + 20 + apart, y)] for apart in (0, 20, 40, 60)))
    page.until(f"{LANES}.end - {LANES}.begin < {(end - begin) / 2}")
    page.click("button[data-do=slowest]")
    x, y = page.run(SENT)
    page.run(f"{LANES}.selected = -1")
    page.touch([(x, y)])
    page.until(f"{LANES}.selected >= 0")
    assert page.said == []


def test_records_in_view_are_a_table_too(page: Page, traced: Path) -> None:
    opened(page, traced)
    page.click(".seen summary")
    rows = page.until(
        "document.querySelectorAll('.seen tbody tr').length && [...document.querySelectorAll("
        "'.seen tbody tr')].map((row) => row.innerText)"
    )
    trace = load_trace(sorted((traced / "traces").glob("*.npz"))[0])
    begin, end = view(page)
    start_ns = trace.records[0].time_ns
    times = [(record.time_ns - start_ns) / trace.dilation for record in trace.records]
    assert len(rows) == sum(begin <= at <= end for at in times)


def test_a_notebook_shows_them_in_a_frame(page: Page, traced: Path, tmp_path: Path) -> None:
    cell = tmp_path / "cell.html"
    cell.write_text(f"<meta charset='utf-8'>{shrimpmx.load(traced).timeline()._repr_html_()}")
    page.said.clear()
    page.loaded.clear()
    page.open(cell.as_uri())
    frame = "document.querySelector('iframe').contentDocument"
    page.until(f"{frame}.querySelector('.timeline')?.dataset.ready")
    assert "isend" in page.run(f"{frame}.querySelector('.message').innerText")
    assert page.said == []
    assert set(page.loaded) <= {cell.as_uri(), "about:srcdoc"}


def test_another_run_can_be_chosen(page: Page, traced: Path) -> None:
    first = opened(page, traced)
    page.run(
        "(() => { const choice = document.querySelector('.timeline select'); choice.selectedIndex"
        " = 1; choice.dispatchEvent(new Event('change')); })()"
    )
    page.until(f"document.querySelector('.timeline').dataset.ready != {json.dumps(str(first))}")
    assert "8192 bytes" in page.run("document.querySelector('.message').innerText")
    assert page.said == []


# How often the pen of the lanes is asked to draw something, in a view of some messages.
STROKES = (
    f"((begin, end) => {{ const lanes = {LANES}, pen = lanes.pen; let strokes = 0;"
    " lanes.pen = new Proxy(pen, {"
    "   get: (of, name) => typeof of[name] !== 'function' ? of[name]"
    "     : (...given) => { strokes++; return of[name](...given); },"
    "   set: (of, name, value) => { of[name] = value; return true; } });"
    " try { lanes.begin = begin; lanes.end = end; lanes.paint(); } finally { lanes.pen = pen; }"
    " return strokes; })"
)


@pytest.mark.nightly("seconds of a long trace")
def test_a_frame_costs_what_is_in_view(page: Page, tmp_path: Path) -> None:
    strokes = {}
    for messages in (100, 7200):
        page.open(long_page(tmp_path / str(messages), messages).as_uri())
        page.until("document.querySelector('.timeline').dataset.ready")
        begin, end = 20 * MESSAGE_NS, 30 * MESSAGE_NS
        strokes[messages] = page.run(f"{STROKES}({begin}, {end})")
        whole = page.run(f"{STROKES}(0, {LANES}.trace.end)")
    assert int(page.run(f"{LANES}.trace.recordTime.length")) > 100_000
    assert strokes[100] == strokes[7200] > 100
    # All at once is drawn by columns of pixels: not one in ten of the records.
    assert whole < 10_000
    assert page.said == []
