"""The option `--set` of the commands that take parameters."""

from __future__ import annotations

import argparse


def add_settings_option(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Declare it, repeatable, as `settings`."""
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"{meaning}; repeatable",
    )
