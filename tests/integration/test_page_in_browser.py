"""The page of a result in a browser, as wide as a phone: nothing scrolls sideways but tables."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.conditions import patient
from support.results import a_document, a_metric, a_point, write_result

from shrimpmx.cli import main

pytestmark = pytest.mark.charts

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
PHONE = 360
# Loads a page in a frame and tells what sticks out of it, and words that stick out of a drawing.
LOOK = """<iframe src="{page}" style="width:{phone}px;height:800px;border:0"></iframe><pre></pre>
<script>
const frame = document.querySelector("iframe"), said = [];
frame.onload = () => {{
  const page = frame.contentDocument, box = (one) => one.getBoundingClientRect();
  if (page.documentElement.scrollWidth > {phone}) said.push("the page is too wide");
  for (const one of page.querySelectorAll("body *"))
    if (!one.closest(".scroll") && !one.closest("svg") && box(one).right > {phone})
      said.push(one.tagName + " is too wide: " + one.textContent);
  for (const one of page.querySelectorAll("figure svg text")) {{
    const all = box(one.ownerSVGElement), words = box(one);
    if (words.left < all.left - 1 || words.right > all.right + 1
        || words.top < all.top - 1 || words.bottom > all.bottom + 1)
      said.push("cut off: " + one.textContent);
  }}
  const drawn = page.querySelectorAll("figure svg").length;
  document.querySelector("pre").textContent = [drawn + " drawings", ...said].join("\\n");
}};
</script>"""


def seen(page: Path, tmp_path: Path) -> list[str]:
    """How many drawings the page has, and what is too wide."""
    frame = tmp_path / "frame.html"
    frame.write_text(LOOK.format(page=page.as_uri(), phone=PHONE))
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files")
    own = (f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=10000", "--dump-dom")
    done = subprocess.run(
        [str(BROWSER), *options, *own, frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=patient(110),
        check=True,
    )
    [text] = re.findall(r"<pre>(.*?)</pre>", done.stdout, re.S)
    return html.unescape(text).splitlines()


@pytest.mark.timeout(120)
@pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium")
def test_nothing_is_too_wide_for_a_phone(tmp_path: Path) -> None:
    long = "wordswithoutanyend" * 20
    waits: tuple[Any, ...] = ("spin", "spin-block", "implicit-coscheduling", "conditional", long)
    points = [
        a_point({"size_bytes": size, "wait": wait}, {"half_round_trip": a_metric(size + 1e6 + n)})
        for size in (0, 128, 1 << 20)
        for n, wait in enumerate(waits)
    ]
    verdict = {"verdict": "as expected", "text": long, "detail": long, "scope": long}
    words: dict[str, Any] = dict.fromkeys(("title", "source", "shows", "command"), long)
    by_wait = a_document("mine/x", points, "wait", "size_bytes", expectations=[verdict], **words)
    by_size = a_document(long, points, "size_bytes", "wait", **words)
    results = [
        write_result(tmp_path / name, document)
        for name, document in (("one", by_wait), ("two", by_size), ("three", by_wait))
    ]
    page = tmp_path / "page.html"
    assert main(["report", *map(str, results), "--output", str(page)]) == 0
    assert seen(page, tmp_path) == ["3 drawings"]
