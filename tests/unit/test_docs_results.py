"""What docs/results.md says of samples: which metrics have more than one of a run."""

from __future__ import annotations

import functools
import re

from support.tree import ROOT

from shrimpmx.results.metrics import METRICS

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
