"""The charts of pages. A process of half a second draws them, at the end of each command that keeps
a result: only in modules that look at them, marked `charts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from shrimpmx.page import page

SKETCH = '<svg viewBox="0 0 1 1"></svg>'


def sketched(specs: Sequence[Mapping[str, Any]]) -> list[str]:
    """A drawing without any mark for each."""
    return [SKETCH] * len(specs)


@pytest.fixture(scope="module", autouse=True)
def charts_of_pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Real charts, or sketches."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("charts") is None:
            patch.setattr(page, "drawn", sketched)
        yield
