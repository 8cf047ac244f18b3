"""What surrounds a run of processes: leftovers, interrupts, and limits of this machine."""

from __future__ import annotations

import contextlib
import logging
import threading
import traceback
from collections.abc import Iterator

from shrimpmx.cluster.engine.ending import FirstInterrupt, signal_of, what_interrupted
from shrimpmx.cluster.engine.leftovers import find_leftovers, remove_leftovers
from shrimpmx.errors import AgentError, InputError, InterruptedRunError, MachineError

LOGGER = logging.getLogger("shrimpmx.cluster")


@contextlib.contextmanager
def supervision() -> Iterator[None]:
    """This process supervises a run: leftovers of dead runs are removed first, and the first
    interrupt ends it, as InterruptedRunError. MachineError if there is no room for it.
    """
    if threading.current_thread() is not threading.main_thread():
        raise InputError("a cluster runs from the main thread: its processes die with it")
    found = find_leftovers()
    if found:
        LOGGER.info("removing leftovers of dead runs: %s", found.describe())
        remove_leftovers(found)
    try:
        # Below, whatever keeps an error must not keep the run's memory with it.
        with FirstInterrupt():
            yield
    except KeyboardInterrupt as interrupt:
        traceback.clear_frames(interrupt.__traceback__)
        raise InterruptedRunError(
            f"interrupted by {what_interrupted(interrupt)}", signal_of(interrupt)
        ) from None
    except BrokenPipeError:  # what was printed before, which a fork flushes, has no reader
        raise
    except OSError as error:
        raise MachineError(
            f"the run could not be set up: {error.strerror or error}; `ulimit -a` shows the "
            "limits of this process, `shrimpmx doctor` what this machine can do"
        ) from None
    except AgentError as error:
        traceback.clear_frames(error.__traceback__)
        raise
