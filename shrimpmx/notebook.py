"""A result in a notebook or a script: its report, a data frame, figures."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from shrimpmx.errors import InputError, MachineError
from shrimpmx.papers.charts import charts_of
from shrimpmx.report.plot.draw import figure_of
from shrimpmx.report.report import print_report
from shrimpmx.results.result import load_result
from shrimpmx.results.tidy import columns_of, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# Wide enough for the tables of our scenarios; a notebook scrolls what is wider.
COLUMNS = 120
_HTML = '<pre style="white-space:pre;overflow-x:auto;line-height:normal">{code}</pre>'


class Result:
    """A stored result. `document` is its run.json, checked; Jupyter shows its report."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document: dict[str, Any] = load_result(path)

    def to_pandas(self) -> DataFrame:
        """A row per sample, with the columns of `shrimpmx export`. MachineError without pandas."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise MachineError(
                "pandas is not installed: pip install pandas, or use shrimpmx export --csv"
            ) from None
        return DataFrame(list(rows_of(self.document)), columns=columns_of(self.document))

    def figure(self, number: int = 0) -> Figure:
        """A picture of `shrimpmx plot`; most results have one, number 0.

        InputError if there is no such picture.
        """
        charts = charts_of(self.document)
        if not 0 <= number < len(charts):
            raise InputError(f"{self.path} has pictures 0 to {len(charts) - 1}, not {number}")
        return figure_of(charts[number])

    def __repr__(self) -> str:
        return f"Result({str(self.path)!r})"

    def _repr_html_(self) -> str:
        # Left to itself, a console in Jupyter shows each line at once.
        plain: dict[str, Any] = {"force_jupyter": False, "highlight": False}
        console = Console(record=True, file=io.StringIO(), width=COLUMNS, **plain)
        print_report(self.document, console)
        return console.export_html(inline_styles=True, code_format=_HTML)


def load(path: str | os.PathLike[str]) -> Result:
    """The result in a directory, or of a run.json. InputError if it is missing or damaged."""
    return Result(Path(path))
