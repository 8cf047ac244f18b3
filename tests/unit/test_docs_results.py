"""What pages say of what is declared: metrics with many samples, and groups of parameters."""

from __future__ import annotations

import functools
import re

from support.tree import ROOT

from shrimpmx.results.metrics import METRICS
from shrimpmx.settings.names import GROUPS

PAGE = ROOT / "docs/results.md"


def returns(metric: str) -> str:
    figure = METRICS[metric].figure
    function = figure.func if isinstance(figure, functools.partial) else figure
    return str(function.__annotations__["return"])


def test_the_page_tells_what_a_sample_is_of_each_metric_that_has_many() -> None:
    section = PAGE.read_text().partition("### Samples")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", section, re.M)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {name for name in METRICS if returns(name) != "float"}


def test_the_page_of_parameters_names_each_group() -> None:
    page = (ROOT / "docs/parameters.md").read_text().partition("<!--")[0]
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == list(GROUPS)
