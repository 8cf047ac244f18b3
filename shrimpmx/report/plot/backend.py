"""Loading matplotlib: on use only, without a display, and without a trace in a user's home."""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

from shrimpmx.errors import MachineError
from shrimpmx.native.files import cache_directory, remove_tree, temporary_directory
from shrimpmx.native.held import HeldDirectory


def matplotlib_here() -> Any:
    """The matplotlib module. MachineError if it is not installed."""
    if "matplotlib" not in sys.modules:
        # Its settings, and its cache of fonts, which takes seconds to make.
        if "MPLCONFIGDIR" not in os.environ:
            os.environ["MPLCONFIGDIR"] = str(_cache())
        # A value that it does not know would end the import; pictures go to files here.
        os.environ["MPLBACKEND"] = "agg"
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        return importlib.import_module("matplotlib")
    except ImportError as error:
        raise MachineError(
            f"plots need matplotlib, which cannot be loaded ({error}); "
            "install it with: python -m pip install 'matplotlib>=3.8'"
        ) from error


def _cache() -> Path:
    """A directory that can be written: beside the calibrations, else one that is gone at exit."""
    try:
        place = cache_directory() / "matplotlib"
        with HeldDirectory.at(place, make=True) as directory:
            directory.try_out()
    except (OSError, MachineError):  # the latter: a user without a home
        place = temporary_directory("shrimpmx-")
        atexit.register(remove_tree, place)
    return place
