"""The timeline of 100 000 records moves fluently. Run it with `pytest --timing tests/timing`."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from support.browser import BROWSER, browser
from support.frames import MESSAGE_NS, long_page

pytestmark = [
    pytest.mark.timing,
    pytest.mark.timeout(300),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium"),
]
FRAMES = 90
FRAME_US = 1e6 / 60
LANES = "document.querySelector('.timeline').timeline.lanes"
# Zooms in and moves on, frame by frame.
MOVE = (
    f"new Promise((done) => {{ const lanes = {LANES}; let frame = 0; const move = () => {{"
    " const at = frame / FRAMES * lanes.trace.end * 0.9;"
    " lanes.view(at, at + WIDE); frame++ < FRAMES ? requestAnimationFrame(move) : done(); };"
    " requestAnimationFrame(move); })"
)


@pytest.mark.parametrize("wide_ns", [10 * MESSAGE_NS, 500 * MESSAGE_NS, 5000 * MESSAGE_NS])
def test_sixty_frames_a_second(
    wide_ns: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with browser(tmp_path_factory.mktemp("browser")) as page:
        page.open(long_page(tmp_path, 7200).as_uri())
        page.until("document.querySelector('.timeline').dataset.ready")
        assert int(page.run(f"{LANES}.trace.recordTime.length")) > 100_000
        move = MOVE.replace("FRAMES", str(FRAMES)).replace("WIDE", str(wide_ns))
        events = page.traced(move)
    # Of the page's thread: what others use meanwhile does not count. The trace's end may cut the
    # last frame off.
    whole = [each for each in events if each["ph"] == "X"]
    taken_us = [each["tdur"] for each in whole if each["name"] == "FireAnimationFrame"]
    assert len(taken_us) >= FRAMES
    assert statistics.median(taken_us) < FRAME_US / 2
    assert statistics.quantiles(taken_us, n=20)[-1] < FRAME_US
