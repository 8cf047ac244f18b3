"""The shape of Python's socket: class Socket, a stream socket over VMMC."""

from __future__ import annotations

import errno
import os
import socket as system
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shrimpmx.sockets.addresses import Address, host_of, parse
from shrimpmx.sockets.refusals import NODES, STREAMS, WHERE, refused
from shrimpmx.sockets.stream import Stream, open_stream

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

    from shrimpmx.sockets.network import Network

# File numbers lie where no descriptor of the system does: the two cannot be mixed up.
FILENO_BASE = 1 << 20
NEVER_NS = 2**63 - 1
AT_ONCE_NS = 0
# As plain numbers: what Python's enums take to be combined is more than a send takes.
_PEEK, _DONTWAIT = int(system.MSG_PEEK), int(system.MSG_DONTWAIT)
_NOSIGNAL = int(system.MSG_NOSIGNAL)
DEFAULT_BACKLOG = 128

# Options that change nothing here: what they ask for is so anyway, or cannot be.
_HARMLESS = {
    (system.SOL_SOCKET, system.SO_REUSEADDR),
    (system.SOL_SOCKET, system.SO_REUSEPORT),
    (system.SOL_SOCKET, system.SO_KEEPALIVE),
    (system.SOL_SOCKET, system.SO_SNDBUF),
    (system.IPPROTO_TCP, system.TCP_NODELAY),
    (system.IPPROTO_TCP, system.TCP_QUICKACK),
}


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class Socket:
    """A stream socket of `network`. Calls and errors are those of socket.socket.

    Addresses are (host, port), where a host is a node: "node1", 1, or "" and "localhost" for
    one's own. SO_RCVBUF counts for connections made later; what there is room for beyond it is the
    peer's affair, so SO_SNDBUF tells the length of the peer's buffer. One thread of the system
    uses the sockets of a process.
    """

    family = system.AF_INET
    type = system.SOCK_STREAM

    def __init__(
        self,
        network: Network,
        family: int = system.AF_INET,
        type: int = system.SOCK_STREAM,
        proto: int = 0,
        fileno: int | None = None,
        *,
        stream: Stream | None = None,
    ) -> None:
        if family not in (-1, system.AF_INET):
            raise refused(NODES, errno.EAFNOSUPPORT)
        if type not in (-1, system.SOCK_STREAM):
            raise refused(STREAMS, errno.EPROTOTYPE)
        if fileno is not None:
            raise _error(errno.ENOTSOCK)
        self.proto = max(proto, 0)
        self.network = network
        self.stream = open_stream(network) if stream is None else stream
        self._timeout = system.getdefaulttimeout()
        self._options: dict[tuple[int, int], int] = {}
        # As in socket.socket, for makefile(): files that are open on this socket.
        self._io_refs = 0
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._closed:
            self.close()

    def __repr__(self) -> str:
        state = "closed" if self.stream.closed else f"fd={self.fileno()}"
        return f"<{__name__}.Socket {state}>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"emulated sockets have no {name!r}: {WHERE} lists their methods")

    # -- connections

    def bind(self, address: Any) -> None:
        """Take a port of one's own node, 0 for any."""
        node, port = parse(self.network, address)
        if node != self.network.node:
            raise _error(errno.EADDRNOTAVAIL)
        self.stream.bind(port)

    def listen(self, backlog: int = DEFAULT_BACKLOG) -> None:
        """Let others connect, `backlog` of them before they are accepted."""
        self.stream.listen(max(backlog, 0))

    def accept(self) -> tuple[Socket, Address]:
        """The next connection and its address."""
        stream = self.stream.accept(self._deadline())
        accepted = Socket(self.network, stream=stream)
        # It may have ended already; its address is known all the same.
        return accepted, (host_of(stream.peer_node), stream.peer_port)

    def connect(self, address: Any) -> None:
        """Connect to a listener's port of a node."""
        node, port = parse(self.network, address)
        self.stream.connect(node, port, self._deadline())

    def connect_ex(self, address: Any) -> int:
        """The same; a failure's number is returned, not raised."""
        try:
            self.connect(address)
        except TimeoutError:
            return errno.EAGAIN
        except OSError as error:
            if error.errno is None or isinstance(error, system.gaierror):
                raise
            return error.errno
        return 0

    def shutdown(self, how: int) -> None:
        """Say that nothing more will be sent (SHUT_WR), or read nothing more (SHUT_RD)."""
        if how not in (system.SHUT_RD, system.SHUT_WR, system.SHUT_RDWR):
            raise _error(errno.EINVAL)
        self.stream.shutdown(how != system.SHUT_WR, how != system.SHUT_RD)

    def close(self) -> None:
        """Close, as soon as files made of it are closed too. Unread data is a reset."""
        self._closed = True
        if self._io_refs <= 0:
            self.stream.close()

    def _decref_socketios(self) -> None:
        """For socket.SocketIO: a file is closed."""
        self._io_refs = max(self._io_refs - 1, 0)
        if self._closed:
            self.close()

    # The standard library's own: it needs of a socket what this one has.
    makefile: Callable[..., Any] = system.socket.makefile

    # -- data

    def send(self, data: Buffer, flags: int = 0) -> int:
        """Send some of `data`; how many bytes."""
        return self.stream.send(data, self._deadline(flags, _NOSIGNAL))

    def sendall(self, data: Buffer, flags: int = 0) -> None:
        """Send all of `data`."""
        self.stream.send(data, self._deadline(flags, _NOSIGNAL), True)

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Receive up to `bufsize` bytes, b"" at the end of the stream."""
        if bufsize < 0:
            raise ValueError("negative buffersize in recv")
        peek = bool(flags & _PEEK)
        return self.stream.recv(bufsize, self._deadline(flags, _PEEK), peek)

    def recv_into(self, buffer: Buffer, nbytes: int = 0, flags: int = 0) -> int:
        """Receive into `buffer`, up to `nbytes` bytes if not 0; how many, 0 at the end."""
        if nbytes < 0:
            raise ValueError("negative buffersize in recv_into")
        peek = bool(flags & _PEEK)
        deadline_ns = self._deadline(flags, _PEEK)
        return self.stream.recv_into(buffer, nbytes, deadline_ns, peek)

    def _deadline(self, flags: int = 0, allowed: int = 0) -> int:
        """On the run's clock, ns; NEVER_NS: none, AT_ONCE_NS: does not wait."""
        if flags & ~(allowed | _DONTWAIT):
            raise _error(errno.EOPNOTSUPP)
        if self._timeout == 0 or flags & _DONTWAIT:
            return AT_ONCE_NS
        if self._timeout is None:
            return NEVER_NS
        return self.network.now_ns() + int(self._timeout * 1e9)

    # -- properties

    @property
    def timeout(self) -> float | None:
        """As gettimeout()."""
        return self._timeout

    def settimeout(self, value: float | None) -> None:
        """How long calls may wait, s; None: for ever, 0: not at all."""
        if value is not None and value < 0:
            raise ValueError("Timeout value out of range")
        self._timeout = None if value is None else float(value)

    def gettimeout(self) -> float | None:
        """How long calls may wait, s; None: for ever."""
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        """Wait for ever, or not at all."""
        self._timeout = None if flag else 0.0

    def getblocking(self) -> bool:
        """Whether calls wait."""
        return self._timeout != 0

    def fileno(self) -> int:
        """A number of its own while it is open, else -1; not a descriptor of the system."""
        return -1 if self.stream.closed else FILENO_BASE + self.stream.number

    def getsockname(self) -> Address:
        """Its own address; port 0 if it has none yet."""
        return host_of(self.network.node), self.stream.port

    def getpeername(self) -> Address:
        """The address of the other side; OSError ENOTCONN without one."""
        node, port = self.stream.peer
        return host_of(node), port

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        """SO_RCVBUF counts, some others are accepted; OSError ENOPROTOOPT for the rest."""
        if (level, option) == (system.SOL_SOCKET, system.SO_RCVBUF):
            self.stream.buffer_bytes = value
        elif (level, option) in _HARMLESS and not self.stream.closed:
            self._options[level, option] = int(value)
        else:
            raise _error(errno.EBADF if self.stream.closed else errno.ENOPROTOOPT)

    def getsockopt(self, level: int, option: int, buflen: int = 0) -> int:
        """Options as set; SO_ERROR is the pending error, which it clears."""
        read: dict[tuple[int, int], Callable[[], int]] = {
            (system.SOL_SOCKET, system.SO_ERROR): self.stream.take_error,
            (system.SOL_SOCKET, system.SO_RCVBUF): lambda: self.stream.buffer_bytes,
            (system.SOL_SOCKET, system.SO_SNDBUF): lambda: self.stream.peer_bytes,
            (system.SOL_SOCKET, system.SO_TYPE): lambda: int(self.type),
            (system.SOL_SOCKET, system.SO_ACCEPTCONN): lambda: int(self.stream.listening),
        }
        if self.stream.closed:
            raise _error(errno.EBADF)
        if (level, option) in read:
            return read[level, option]()
        if (level, option) in _HARMLESS:
            return self._options.get((level, option), 0)
        raise _error(errno.ENOPROTOOPT)
