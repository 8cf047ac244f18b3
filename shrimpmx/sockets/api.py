"""Module functions of sockets, and how programs that know only Python's socket get ours."""

from __future__ import annotations

import contextlib
import functools
import select
import selectors
import socket
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from shrimpmx.sockets.addresses import Address, host_of, node_of
from shrimpmx.sockets.refusals import (
    NODES,
    STREAMS,
    no_system_sockets,
    only_patched,
    refuse_poll,
    refuse_system_socket,
)
from shrimpmx.sockets.selector import Select, Selector
from shrimpmx.sockets.socket import DEFAULT_BACKLOG, Socket
from shrimpmx.sockets.standard_threads import user_level_threads

if TYPE_CHECKING:
    from shrimpmx.sockets.network import Network

# What the standard library's modules pass on for "no timeout given".
_DEFAULT_TIMEOUT: Any = vars(socket)["_GLOBAL_DEFAULT_TIMEOUT"]
# Modules of the standard library that make stream sockets and need nothing else of the system.
# What stands on these, as xmlrpc and wsgiref do, gets emulated sockets by them.
PROGRAMS = (
    *("socketserver", "http.client", "http.server", "urllib.request"),
    *("ftplib", "imaplib", "nntplib", "poplib", "smtplib", "telnetlib"),
)


def create_connection(
    network: Network,
    address: Any,
    timeout: Any = _DEFAULT_TIMEOUT,
    source_address: Any = None,
    *,
    all_errors: bool = False,
) -> Socket:
    """A socket that is connected to `address`, as socket.create_connection makes it.

    There is one way to reach a node, so that `all_errors` changes nothing.
    """
    made = Socket(network)
    try:
        if timeout is not _DEFAULT_TIMEOUT:
            made.settimeout(timeout)
        if source_address:
            made.bind(source_address)
        made.connect(address)
    except BaseException:
        made.close()
        raise
    return made


def create_server(
    network: Network,
    address: Any,
    *,
    family: int = socket.AF_INET,
    backlog: int | None = None,
    reuse_port: bool = False,
    dualstack_ipv6: bool = False,
) -> Socket:
    """A socket that listens at `address`, as socket.create_server makes it."""
    if dualstack_ipv6:
        raise ValueError("dualstack_ipv6 not supported on this platform")
    made = Socket(network, family)
    try:
        made.bind(address)
        made.listen(DEFAULT_BACKLOG if backlog is None else backlog)
    except BaseException:
        made.close()
        raise
    return made


class _Overlay:
    """A module with some of its attributes replaced."""

    def __init__(self, module: ModuleType, **replaced: Any) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def replacements(self) -> Iterator[tuple[object, Any]]:
        """The module and its functions and classes, each with what stands for it."""
        yield self._module, self
        for name in dir(self):
            there = vars(self._module).get(name)
            if not name.startswith("_") and callable(there):
                yield there, getattr(self, name)


class SocketModule(_Overlay):
    """The module `socket`, as far as `network` can be used by it: the rest is the system's."""

    def __init__(self, network: Network) -> None:
        super().__init__(
            socket,
            socket=functools.partial(Socket, network),
            create_connection=functools.partial(create_connection, network),
            create_server=functools.partial(create_server, network),
            has_ipv6=False,
            **dict.fromkeys(("socketpair", "fromfd"), refuse_system_socket),
        )
        self._network = network

    def has_dualstack_ipv6(self) -> bool:
        """There is no IPv6."""
        return False

    def gethostname(self) -> str:
        """The name of one's own node."""
        return host_of(self._network.node)

    def gethostbyname(self, host: str) -> str:
        """The name of the node that `host` names: there are no other addresses."""
        return host_of(node_of(self._network, host))

    def getfqdn(self, name: str = "") -> str:
        """The same; a name that is no node's as it is."""
        try:
            return self.gethostbyname(name)
        except socket.gaierror:
            return name

    def getaddrinfo(
        self,
        host: str | None,
        port: int | str | None,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[tuple[int, int, int, str, Address]]:
        """The one way to reach a port of a node."""
        name = self.gethostbyname(host or "")
        if family not in (0, socket.AF_INET) or type not in (0, socket.SOCK_STREAM):
            why = NODES if type in (0, socket.SOCK_STREAM) else STREAMS
            raise socket.gaierror(socket.EAI_FAMILY, why)
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        return [(*kind, "", (name, int(port or 0)))]


@contextlib.contextmanager
def patched(network: Network, *modules: ModuleType) -> Iterator[SocketModule]:
    """Give `modules` our sockets while the context lasts; PROGRAMS that are loaded if none are
    named.

    Replaces what they have imported of `socket`, `select` and `selectors`, under whatever names:
    the modules, and their functions and classes. The program in them stays as it is. Meanwhile
    nothing in this process makes a socket of the system, or a thread that is not one of the running
    Scheduler's: OSError says what to use
    instead. Gives what stands for the module `socket`.
    """
    ours = SocketModule(network)
    make_selector = functools.partial(Selector, network)
    polls = ("poll", "epoll", "devpoll", "kqueue")
    overlays = (
        ours,
        _Overlay(select, select=Select(network), **dict.fromkeys(polls, refuse_poll)),
        _Overlay(
            selectors,
            DefaultSelector=make_selector,
            SelectSelector=make_selector,
            PollSelector=make_selector,
            EpollSelector=make_selector,
        ),
    )
    replaced = {id(one): other for each in overlays for one, other in each.replacements()}
    loaded = [sys.modules[name] for name in PROGRAMS if name in sys.modules]
    with contextlib.ExitStack() as undo:
        undo.enter_context(only_patched(network, modules or loaded))
        for module in modules or loaded:
            for name, value in list(vars(module).items()):
                if id(value) in replaced:
                    undo.callback(setattr, module, name, value)
                    setattr(module, name, replaced[id(value)])
        undo.enter_context(user_level_threads(network))
        undo.enter_context(no_system_sockets())
        yield ours
