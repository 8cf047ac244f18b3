"""An exception of a signal's handler ends the call of MPI in which it came."""

from __future__ import annotations

import sys
from types import FrameType

from shrimpmx.native.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


def end_call_by(error: BaseException) -> None:
    """Let the function of mpi4py that waits, and now gets an error code, raise `error`.

    mpi4py knows codes only, and would raise an exception of its own. What a trace function raises
    takes the place of what the traced frame has met.
    """
    frame = sys._getframe(1)
    before, own = sys.gettrace(), frame.f_trace

    def replace(_frame: FrameType, _event: str, _argument: Any) -> None:
        sys.settrace(before)
        frame.f_trace = own
        raise error

    def trace_no_other(_frame: FrameType, _event: str, _argument: Any) -> None:
        return None

    frame.f_trace = replace
    sys.settrace(trace_no_other)
