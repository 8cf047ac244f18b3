"""Results in a notebook or a script: each has its report, a data frame, figures, timelines."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shrimpmx.errors import InputError, MachineError
from shrimpmx.papers.charts import charts_of, why_empty
from shrimpmx.results.result import PRINTED_FILE, load_result
from shrimpmx.results.sample_table import columns_of, rows_of
from shrimpmx.show.plot.draw import Picture, picture_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from shrimpmx.page.page import Frame

# A notebook is one page, in which each result that it shows has a name.
_shown = itertools.count(1)


class Result:
    """A stored result. `document` is its run.json, checked; Jupyter shows its tables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document: dict[str, Any] = load_result(path)

    def to_pandas(self) -> DataFrame:
        """A row per sample, with the columns of `shrimpmx export`. MachineError without pandas."""
        return _data_frame()(list(rows_of(self.document)), columns=columns_of(self.document))

    @property
    def printed(self) -> str:
        """The output of a program's ranks, where kept: see mpirun()."""
        path = self.path / PRINTED_FILE
        return path.read_text(errors="replace") if path.is_file() else ""

    def figure(self, number: int = 0) -> Picture:
        """A picture of `shrimpmx plot`, from number 0 on; the last ones are of percentiles, where
        there are samples enough.

        InputError if there is no such picture.
        """
        charts = charts_of(self.document)
        if not charts:
            raise InputError(f"{self.path} has nothing to draw: {why_empty(self.document)}")
        if not 0 <= number < len(charts):
            raise InputError(f"{self.path} has pictures 0 to {len(charts) - 1}, not {number}")
        return picture_of(charts[number])

    def timeline(self) -> Frame:
        """The timelines of its traced runs, as on its page; Jupyter shows them. InputError if there
        are none.
        """
        from shrimpmx.page.page import frame_of

        return frame_of(self.path)

    def __repr__(self) -> str:
        return f"Result({str(self.path)!r})"

    def _repr_html_(self) -> str:
        # Templates load slowly.
        from shrimpmx.page.page import fragment_of

        return fragment_of(self.document, self.path, f"shrimpmx{next(_shown)}")


class Explored(Result):
    """The result of an exploration. Jupyter shows its recommendation and all settings."""

    @property
    def recommended(self) -> str:
        """The name of the recommended setting, as tables have it."""
        return str(self.document["explore"]["recommended"])

    @property
    def setting(self) -> dict[str, Any]:
        """The parameters of the recommended setting, by which mpirun() runs the program so."""
        return dict(self.document["explore"]["setting"])

    @property
    def repeat(self) -> str:
        """The command line that does so."""
        return str(self.document["explore"]["repeat"])

    @property
    def commands(self) -> list[str]:
        """The commands that a real machine takes for it."""
        return list(self.document["explore"]["commands"])


class Fitted:
    """A fit of hosts. `platform` is the file of its platform, for `run(..., platform=...)`,
    `document` all that `shrimpmx fit --json` tells.
    """

    def __init__(self, platform: Path, document: dict[str, Any]) -> None:
        self.platform, self.document = platform, document

    def to_pandas(
        self, table: Literal["costs", "measurements", "predictions"] = "costs"
    ) -> DataFrame:
        """A row per cost, per figure, or per figure that is predicted without its group.
        MachineError without pandas.
        """
        rows = [
            {**row.get("settings", {}), **{k: v for k, v in row.items() if k != "settings"}}
            for row in self.document[table]
        ]
        frame: DataFrame = _data_frame()(rows)
        return frame

    def figure(self, number: int = 0) -> Picture:
        """A picture of its page, from number 0 on. InputError if there is no such picture."""
        # Its templates load slowly.
        from shrimpmx.page.fits import charts_of_fit

        charts = list(charts_of_fit(self.document))
        if not 0 <= number < len(charts):
            raise InputError(f"{self.platform} has pictures 0 to {len(charts) - 1}, not {number}")
        return picture_of(charts[number])

    def __repr__(self) -> str:
        return f"Fitted({str(self.platform)!r})"


def _data_frame() -> Any:
    try:
        from pandas import DataFrame
    except ImportError:
        raise MachineError(
            "pandas is not installed: pip install pandas, or use shrimpmx export --csv"
        ) from None
    return DataFrame
