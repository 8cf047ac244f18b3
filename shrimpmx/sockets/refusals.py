"""What emulated sockets cannot do is refused with a sentence that says what works instead; nothing
falls back to sockets of the system.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import socket
import sys
import traceback
from collections.abc import Coroutine, Iterable, Iterator
from types import ModuleType
from typing import Any, NoReturn

WHERE = "docs/sockets.md"
# Replacements for modules of the standard library that need more than stream sockets.
INSTEAD = {
    "asyncio": "use a selector, or threads of a Scheduler",
    "concurrent": "use threads of a Scheduler",
    "multiprocessing": "give run_programs a function for each process",
    "ssl": "emulated connections are not encrypted, so use http in place of https",
}
# Functions of the module socket that make sockets from other things.
MAKERS = ("socketpair", "fromfd", "create_connection")
# The class whose objects make event loops, the second since Python 3.14.
LOOP_POLICIES = ("BaseDefaultEventLoopPolicy", "_BaseDefaultEventLoopPolicy")
STREAMS = "emulated sockets are of the type SOCK_STREAM: use TCPServer in place of UDPServer"
NODES = "emulated sockets are of the family AF_INET, with addresses (node, port)"
NO_POLL = "poll and epoll know no emulated sockets: use select.select or the module selectors"


def refused(why: str, number: int = errno.EOPNOTSUPP) -> OSError:
    """The error of what cannot be done with emulated sockets, and what can."""
    return OSError(number, f"{why} ({WHERE})")


def refuse_poll(*_: Any, **__: Any) -> NoReturn:
    """For select.poll and its like."""
    raise refused(NO_POLL)


def refuse_system_socket(*_: Any, **__: Any) -> NoReturn:
    """For whatever makes a socket of the system: the module that wanted it is named."""
    _refuse(_asking())


def _refuse(module: str) -> NoReturn:
    named = f'for emulated ones name the module: patched(network, sys.modules["{module}"])'
    if module in _named:
        named = "it was imported inside a function or a class: import it at the module's top"
    instead = INSTEAD.get(module.partition(".")[0], named)
    raise refused(f"{module} gets no system socket inside patched(): {instead}")


def _asking() -> str:
    """The module that asks for a socket: the innermost that INSTEAD tells of, else the first."""
    names = [str(frame.f_globals.get("__name__", "?")) for frame, _ in traceback.walk_stack(None)]
    callers = [name for name in names if name not in ("socket", __name__, "shrimpmx.sockets.api")]
    known = (name for name in callers if name.partition(".")[0] in INSTEAD)
    return next(known, callers[0])


_patched: list[Any] = []
# Modules that have emulated sockets now.
_named: list[str] = []


@contextlib.contextmanager
def only_patched(network: Any, modules: Iterable[ModuleType]) -> Iterator[None]:
    """Modules are the whole process's, so that one rank of a process has them patched at a time."""
    if any(other is not network for other in _patched):
        raise refused(
            "another rank of this process uses patched(), and simulated ranks share one process: "
            "run these programs as real processes"
        )
    names = [module.__name__ for module in modules]
    _patched.append(network)
    _named.extend(names)
    try:
        yield
    finally:
        _patched.remove(network)
        for name in names:
            _named.remove(name)


def _refuse_coroutine(coroutine: Coroutine[Any, Any, Any], **_how: Any) -> NoReturn:
    """One that nothing awaits complains when it is discarded, unless it is closed."""
    if inspect.iscoroutine(coroutine):
        coroutine.close()
    _refuse("asyncio")


@contextlib.contextmanager
def no_system_sockets() -> Iterator[None]:
    """While the context lasts this process makes no socket of the system, whatever asks for it."""
    refusals: list[tuple[Any, str, Any]] = [
        (socket.socket, "__init__", refuse_system_socket),
        # These have made or looked up something before they make a socket.
        *((socket, name, refuse_system_socket) for name in MAKERS),
    ]
    if asyncio := sys.modules.get("asyncio"):
        # An event loop that has begun to be made complains when it is discarded.
        events = vars(asyncio.events)
        policy = next(events[name] for name in LOOP_POLICIES if name in events)
        refusals.append((policy, "new_event_loop", lambda _policy: _refuse("asyncio")))
        refusals.append((asyncio, "run", _refuse_coroutine))
    with contextlib.ExitStack() as undo:
        for owner, name, refusal in refusals:
            undo.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, refusal)
        yield
