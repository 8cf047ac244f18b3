"""What emulated sockets cannot do is refused at once, with what works instead; nothing in the
standard library gets a socket of the system.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import http.server
import logging.handlers
import multiprocessing
import os
import select
import selectors
import socket
import socketserver
import ssl
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from shrimpmx.cluster.engine.programs import Program, run_programs
from shrimpmx.errors import AgentError
from shrimpmx.simulation.engine import Simulated
from shrimpmx.sockets import refusals
from shrimpmx.sockets.api import patched
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.socket import Socket

PORT = 80
# For servers, which are refused before they call it.
BASE = socketserver.BaseRequestHandler


def run(*programs: Program) -> None:
    run_programs(*programs, engine=Simulated())


def poll(name: str) -> Callable[[Any], object]:
    return lambda _ours: getattr(vars(socketserver).get("select", select), name)()


def pool(_ours: Any) -> None:
    with concurrent.futures.ThreadPoolExecutor() as executor:
        executor.submit(pow, 2, 2).result()


def secure(ours: Any) -> None:
    ssl.create_default_context().wrap_socket(ours.socket(), server_hostname="node1")


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "datagrams": (lambda ours: ours.socket(type=socket.SOCK_DGRAM), "SOCK_STREAM"),
    "UDPServer": (lambda _: socketserver.UDPServer(("", PORT), BASE), "TCPServer"),
    "ThreadingUDPServer": (lambda _: socketserver.ThreadingUDPServer(("", 1), BASE), "Scheduler"),
    "ThreadingTCPServer": (lambda _: socketserver.ThreadingTCPServer(("", 1), BASE), "Scheduler"),
    "ThreadingHTTPServer": (lambda _: http.server.ThreadingHTTPServer(("", 1), BASE), "Scheduler"),
    "ForkingTCPServer": (lambda _: socketserver.ForkingTCPServer(("", 1), BASE), "TCPServer"),
    "UnixStreamServer": (lambda _: socketserver.UnixStreamServer("x", BASE), "AF_INET"),
    "IPv6": (lambda ours: ours.socket(socket.AF_INET6), "AF_INET"),
    "asyncio": (lambda _: asyncio.new_event_loop(), "selector"),
    "asyncio.run": (lambda _: asyncio.run(asyncio.sleep(0)), "selector"),
    "ssl": (secure, "http in place of https"),
    "a pipe": (lambda _: multiprocessing.Pipe(), "run_programs"),
    "a thread": (lambda _: threading.Thread(target=print).start(), "Scheduler"),
    "a timer": (lambda _: threading.Timer(1, print).start(), "Scheduler"),
    "a pool": (pool, "Scheduler"),
    "socketpair": (lambda ours: ours.socketpair(), "patched(network, "),
    "fromfd": (lambda ours: ours.fromfd(0, 2, 1), "patched(network, "),
    "the system's socketpair": (lambda _: socket.socketpair(), "patched(network, "),
    "the system's socket": (lambda _: socket.socket(), "patched(network, "),
    "the system's server": (lambda _: socket.create_server(("", 0)), "patched(network, "),
    "datagrams by name": (lambda ours: ours.getaddrinfo("", 1, type=2), "SOCK_STREAM"),
    "IPv6 by name": (lambda ours: ours.getaddrinfo("", 1, family=10), "AF_INET"),
    "a log": (lambda _: logging.handlers.SocketHandler("x", 1).makeSocket(), "logging"),
    "both protocols": (
        lambda ours: ours.create_server(("", PORT), dualstack_ipv6=True),
        "dualstack_ipv6",
    ),
    "dup": (lambda ours: ours.socket().dup(), "docs/sockets.md"),
    "detach": (lambda ours: ours.socket().detach(), "docs/sockets.md"),
    "recvmsg": (lambda ours: ours.socket().recvmsg(1), "docs/sockets.md"),
}


def refusal(what: Callable[[Any], object], ours: Any) -> str:
    try:
        what(ours)
    except (OSError, AttributeError, ValueError) as error:
        return str(error)
    return ""


def test_what_does_not_work_is_refused_at_once_and_says_what_does() -> None:
    said: dict[str, str] = {}

    def program(network: Network) -> None:
        with patched(network) as ours:
            for name, (what, _) in REFUSED.items():
                said[name] = refusal(what, ours)

    run(program, lambda _network: None)
    assert {name: text for name, text in said.items() if REFUSED[name][1] not in text} == {}


@pytest.mark.parametrize("name", ["poll", "epoll"])
def test_polls_of_a_program_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that has imported select."""
    said: list[str] = []
    module = type(os)("a_program")
    monkeypatch.setattr(module, "select", select, raising=False)
    monkeypatch.setattr(module, "selectors", selectors, raising=False)

    def program(network: Network) -> None:
        with patched(network, module):
            with pytest.raises(OSError, match=r"select\.select") as refused:
                getattr(module.select, name)()
            said.append(str(refused.value))
            module.selectors.DefaultSelector().close()

    run(program, lambda _network: None)
    assert said
    assert "poll" in said[0]


@pytest.mark.parametrize(
    "imports",
    [
        "import socket as s\ncreate = s.create_connection; make = s.socket",
        "from socket import create_connection as create, socket as make",
        "from socket import socket, create_connection\nmake, create = socket, create_connection",
        "from socket import *\nmake, create = socket, create_connection",
    ],
)
def test_a_named_module_gets_emulated_sockets_however_it_imports_them(
    imports: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script has the name __main__."""
    module = type(os)("__main__")
    exec(imports, vars(module))
    monkeypatch.setitem(sys.modules, "__main__", module)
    before, made = dict(vars(module)), []

    def program(network: Network) -> None:
        with patched(network, sys.modules["__main__"]):
            with vars(module)["make"]() as one:
                made.append(type(one))
            with pytest.raises(ConnectionRefusedError):
                vars(module)["create"](("node1", PORT))

    run(program, lambda _network: None)
    assert made == [Socket]
    assert vars(module) == before


@pytest.mark.parametrize(("named", "hint"), [(False, "sys.modules"), (True, "module's top")])
def test_the_hint_for_a_module_helps(named: bool, hint: str) -> None:
    module = type(os)("a_program")
    exec("def make():\n    import socket\n    socket.socket()", vars(module))

    def program(network: Network) -> None:
        with patched(network, *[module] * named), pytest.raises(OSError, match=hint):
            vars(module)["make"]()

    run(program, lambda _network: None)


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_a_refused_coroutine_complains_of_nothing(is_coroutine: bool) -> None:
    def program(network: Network) -> None:
        with patched(network), pytest.raises(OSError, match="asyncio"):
            asyncio.run(asyncio.sleep(0) if is_coroutine else None)  # type: ignore[arg-type]
        gc.collect()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run(program, lambda _network: None)
    assert told == []


def test_event_loops_are_refused_in_python_3_14(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its policy has another name."""
    policy = vars(asyncio.events).get("BaseDefaultEventLoopPolicy")
    if policy is not None:
        monkeypatch.delattr(asyncio.events, "BaseDefaultEventLoopPolicy")
        monkeypatch.setattr(asyncio.events, "_BaseDefaultEventLoopPolicy", policy, raising=False)

    def program(network: Network) -> None:
        with patched(network), pytest.raises(OSError, match="asyncio"):
            asyncio.new_event_loop()

    run(program, lambda _network: None)


def test_afterwards_all_is_as_before() -> None:
    before = socket.socket.__init__, threading.Thread.start, threading.Condition.wait

    def program(network: Network) -> None:
        with patched(network):
            assert socket.socket.__init__ is refusals.refuse_system_socket

    run(program, lambda _network: None)
    assert before == (socket.socket.__init__, threading.Thread.start, threading.Condition.wait)
    for end in socket.socketpair():
        end.close()
    asyncio.run(asyncio.sleep(0))


def test_one_rank_of_a_process_has_it_patched_at_a_time() -> None:
    """Simulated ranks share a process."""

    def program(network: Network) -> None:
        with patched(network), patched(network):
            network.wait_any([], network.now_ns() + 10**6)

    with pytest.raises(AgentError, match="as real processes"):
        run(program, program)


@pytest.mark.parametrize("engine", [Simulated(), None])
def test_the_error_of_a_program_has_its_traceback(engine: Simulated | None) -> None:
    def fails(_network: Network) -> None:
        raise KeyError("which line?")

    with pytest.raises(AgentError, match="rank0") as caught:
        run_programs(fails, lambda _network: None, engine=engine)
    [note] = caught.value.__notes__
    assert 'raise KeyError("which line?")' in note
