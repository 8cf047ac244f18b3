"""Runs that are dead, of which nothing is removed but by the test that made them."""

from __future__ import annotations

import pytest

from shrimpmx.native.segment import RunIdentity


def dead_here(patch: pytest.MonkeyPatch) -> RunIdentity:
    """A run that this process alone takes for dead.

    Each run on a machine removes what dead ones left, those of other tests as well. To them this
    one lives: its supervisor is this process.
    """
    run = RunIdentity.of_this_process()
    is_alive = RunIdentity.is_alive
    patch.setattr(RunIdentity, "is_alive", lambda self: self != run and is_alive(self))
    return run
