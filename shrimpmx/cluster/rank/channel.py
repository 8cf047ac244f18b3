"""The control channel: a POSIX message queue from every process of a run to its supervisor.

Messages are JSON objects with `from` (a process name) and `what`: "ready", "done",
"failed" or "ended". The queue is named like the run's segments, so that a leftover one can
be told by its owner.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import posix_ipc

from shrimpmx.errors import MachineError, SegmentError
from shrimpmx.native.records import TYPE_CHECKING
from shrimpmx.native.segment import RunIdentity

if TYPE_CHECKING:
    from typing import Any, Self

QUEUE = "control-queue"
# A message waits for the supervisor at most so long; it reads whenever there is one.
SEND_LIMIT_S = 5.0
_LIMITS = "/proc/sys/fs/mqueue"


def _limit(name: str, default: int) -> int:
    try:
        with open(f"{_LIMITS}/{name}", encoding="ascii") as file:
            return min(default, int(file.read()))
    except (OSError, ValueError):
        return default


def unlink_queue(name: str) -> bool:
    """Remove the message queue `name`; False if it was gone already, or is another user's."""
    try:
        posix_ipc.unlink_message_queue("/" + name)
    except (posix_ipc.ExistentialError, posix_ipc.PermissionsError):
        return False
    return True


def has_queue(name: str) -> bool:
    """Whether there is a message queue `name` that is this user's to read."""
    try:
        posix_ipc.MessageQueue("/" + name, write=False).close()
    except (posix_ipc.ExistentialError, posix_ipc.PermissionsError):
        return False
    return True


class ControlChannel:
    """One run's queue. The supervisor creates it; its other processes join it by name."""

    def __init__(self, name: str, queue: posix_ipc.MessageQueue) -> None:
        self.name = name
        self._queue = queue
        self.message_bytes: int = queue.max_message_size

    @classmethod
    def create(cls, identity: RunIdentity) -> Self:
        """A new queue; MachineError if the system has no room for it."""
        name = identity.segment_name(QUEUE)
        try:
            queue = posix_ipc.MessageQueue(
                "/" + name,
                posix_ipc.O_CREX,
                mode=0o600,
                max_messages=_limit("msg_max", 10),
                max_message_size=_limit("msgsize_max", 8192),
            )
        except (OSError, ValueError, posix_ipc.Error) as error:
            # The kernel, and so posix_ipc, calls an exhausted limit of queues "too many files".
            raise MachineError(
                f"the control channel, a message queue, cannot be created: {error}; `shrimpmx "
                "clean` removes leftover queues, `ulimit -q` shows the limit of bytes in queues, "
                "`ulimit -n` that of open files"
            ) from None
        return cls(name, queue)

    @classmethod
    def join(cls, identity: RunIdentity) -> Self:
        """The queue of a run that goes on; SegmentError if it has ended."""
        name = identity.segment_name(QUEUE)
        try:
            queue = posix_ipc.MessageQueue("/" + name)
        except posix_ipc.Error as error:
            raise SegmentError(
                f"there is no queue {name}; its run may have ended: {error}"
            ) from None
        except OSError as error:
            raise SegmentError(
                f"queue {name} cannot be opened: {error}; `ulimit -n` shows the limit"
            ) from None
        owner = os.fstat(queue.mqd).st_uid
        if owner != os.geteuid():
            queue.close()
            from shrimpmx.native.trust import user_name

            raise SegmentError(f"queue {name} belongs to {user_name(owner)}, not to you")
        return cls(name, queue)

    def fileno(self) -> int:
        """The queue's descriptor, to wait on."""
        return int(self._queue.mqd)

    def send(self, sender: str, what: str, **fields: Any) -> None:
        """Send a message; text in `traceback` is cut to its end where it would be too long."""
        data = f'{{"from": "{sender}", "what": "{what}"}}'.encode()  # neither needs an escape
        if fields:
            data = self._data({"from": sender, "what": what, **fields})
        _undisturbed(lambda: self._queue.send(data, timeout=SEND_LIMIT_S))

    def _data(self, message: dict[str, Any]) -> bytes:
        import json  # an MPI program sends no fields, and starts sooner without it

        data = json.dumps(message).encode()
        while len(data) > self.message_bytes and message.get("traceback"):
            excess = len(data) - self.message_bytes
            message["traceback"] = message["traceback"][excess + 1 :]
            data = json.dumps(message).encode()
        return data

    def receive_all(self) -> Iterator[bytes]:
        """All messages that are there, oldest first; does not wait. No more than the queue holds:
        a program may send for ever.
        """
        for _ in range(self._queue.max_messages):
            try:
                data, _ = _undisturbed(lambda: self._queue.receive(timeout=0))
            except posix_ipc.BusyError:
                return
            yield data

    def close(self) -> None:
        """Close and remove the queue."""
        self._queue.close()
        unlink_queue(self.name)


def _undisturbed(call: Callable[[], Any]) -> Any:
    """What the call gives, made again where a signal's handler has cut it short: SIGCONT, or a
    notification.
    """
    while True:
        with contextlib.suppress(posix_ipc.SignalError):
            return call()
