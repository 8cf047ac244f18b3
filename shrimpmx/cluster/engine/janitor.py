"""The janitor: a process that outlives the supervisor and cleans up after it.

A supervisor that is killed cannot remove its segments. The janitor sleeps on the
supervisor's pidfd, in a session of its own so that Ctrl-C passes it by; when the
supervisor ends without having dismissed it, it kills what is left of the run, removes its
scratch directory, and unlinks its queue and segments.

Nothing watches the janitor itself. If it dies or is stopped its run goes on, cleans up by itself
and ends it; if the supervisor is killed too, the next run or `clean` removes what is left.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
from collections.abc import Sequence
from pathlib import Path

from shrimpmx.cluster.engine.exits import end_within
from shrimpmx.cluster.engine.leftovers import (
    JANITOR,
    end_marked,
    processes_of,
    signal_member,
)
from shrimpmx.cluster.rank.channel import unlink_queue
from shrimpmx.native.cores import set_process_name
from shrimpmx.native.files import remove_tree
from shrimpmx.native.segment import RunIdentity, unlink_segment

# Agents die with the supervisor by themselves (PR_SET_PDEATHSIG); one that was stopped, or is
# dying, may take this long.
GRACE_S = 0.2
# A janitor that was killed is gone at once; a supervisor waits no longer for it.
DYING_S = 1.0


class Janitor:
    """Watches the calling process on behalf of one run."""

    def __init__(
        self, identity: RunIdentity, segments: Sequence[str], queue: str, scratch: Path
    ) -> None:
        self._supervisor = os.pidfd_open(os.getpid())
        self.pid = os.fork()
        if self.pid == 0:
            # After a fork nothing of the supervisor's may run here: no clean-up, no flush.
            try:
                _watch(self._supervisor, identity, segments, queue, scratch)
            finally:
                os._exit(0)
        os.close(self._supervisor)
        self.pidfd = os.pidfd_open(self.pid)

    def dismiss(self) -> None:
        """End the janitor: the supervisor has cleaned up itself."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        # What the kernel does not end soon it ends later: the run does not wait for that.
        end_within([self.pidfd], DYING_S)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        os.close(self.pidfd)


def _watch(
    supervisor: int, identity: RunIdentity, segments: Sequence[str], queue: str, scratch: Path
) -> None:
    gc.disable()
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    set_process_name(JANITOR)
    # Not select(): the descriptors of many ranks come before this one, and it takes 1024.
    end = select.poll()
    end.register(supervisor, select.POLLIN)
    end.poll()
    control = next((name for name in segments if name.endswith("-control")), None)
    left = processes_of(control, identity) if control else []
    pidfds = []
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            pidfds.append(os.pidfd_open(pid))
        signal_member(pid, identity)
    end_marked(identity)
    for pidfd in pidfds:
        end_within([pidfd], GRACE_S)
    remove_tree(scratch)
    unlink_queue(queue)
    # The control segment last: should this process die or be stopped here, the rest is known by it.
    for name in sorted(segments, key=lambda name: name == control):
        unlink_segment(name)
