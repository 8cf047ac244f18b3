"""select() and a selector for stream sockets.

A Selector's cost does not grow with idle sockets; see wait_set.pyx. select() is given lists anew by
each call, and has to go through them.
"""

from __future__ import annotations

import errno
import os
import selectors
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shrimpmx.sockets.socket import FILENO_BASE
from shrimpmx.sockets.wait_set import WaitSet

if TYPE_CHECKING:
    from shrimpmx.sockets.network import Network

_Key = selectors.SelectorKey


def number_of(item: Any) -> int:
    """The file number of a socket, of what has a fileno(), or given itself.

    ValueError for a closed socket's -1, or what has no number, as select.select says it.
    """
    number = item if isinstance(item, int) else None
    if number is None:
        try:
            number = int(item.fileno())
        except (AttributeError, TypeError, ValueError):
            raise ValueError(f"Invalid file object: {item!r}") from None
    if number < 0:
        raise ValueError(f"Invalid file descriptor: {number}")
    return number


def _slot(number: int) -> int:
    if number < FILENO_BASE:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))  # not one of ours
    return number - FILENO_BASE


def _deadline(network: Network, timeout: float | None) -> int | None:
    if timeout is None:
        return None
    return network.now_ns() + int(timeout * 1e9) if timeout > 0 else 0


class Selector(selectors.BaseSelector):
    """A selector of `network`'s sockets. select() raises OSError EBADF if one was closed.

    The one of this module whose cost does not grow with idle sockets. A user-level thread that
    selects lets others run.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._waits = WaitSet(network)
        self._keys: dict[int, _Key] = {}
        self._map: _KeyMap | None = _KeyMap(self)

    def register(self, fileobj: Any, events: int, data: Any = None) -> _Key:
        """Wait for `events` of an open socket; KeyError if it is registered."""
        if not events or events & ~(selectors.EVENT_READ | selectors.EVENT_WRITE):
            raise ValueError(f"Invalid events: {events!r}")
        number = number_of(fileobj)
        if number in self._keys:
            raise KeyError(f"{fileobj!r} (FD {number}) is already registered")
        self._waits.register(_slot(number), events)
        self._keys[number] = _Key(fileobj, number, events, data)
        return self._keys[number]

    def unregister(self, fileobj: Any) -> _Key:
        """Wait for it no longer, closed or not; KeyError if it is not registered."""
        key = self._keys.pop(self.lookup(fileobj))
        self._waits.unregister(_slot(key.fd))
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> _Key:
        """Wait for other events of a registered socket."""
        number = self.lookup(fileobj)
        if events != self._keys[number].events:
            self._waits.register(_slot(number), events)
        self._keys[number] = self._keys[number]._replace(events=events, data=data)
        return self._keys[number]

    def select(self, timeout: float | None = None) -> list[tuple[_Key, int]]:
        """Wait until a socket is ready, at most `timeout` s: keys and their events."""
        found = self._waits.wait(_deadline(self._network, timeout))
        return [(self._keys[FILENO_BASE + slot], events) for slot, events in found]

    def close(self) -> None:
        """Forget all sockets."""
        for number in self._keys:
            self._waits.unregister(_slot(number))
        self._keys.clear()
        self._map = None

    def get_map(self) -> Mapping[Any, _Key]:
        """The keys by socket."""
        # BaseSelector.get_key takes None for a selector that is closed.
        return self._map  # type: ignore[return-value]

    @property
    def examined(self) -> int:
        """Sockets that were looked at one by one so far: it does not grow with idle ones."""
        return self._waits.examined

    @property
    def keys(self) -> Mapping[int, _Key]:
        """The keys by file number."""
        return self._keys

    def lookup(self, fileobj: Any) -> int:
        """The number that a socket was registered with, which may be closed by now."""
        try:
            number = number_of(fileobj)
        except ValueError:
            for number, key in self._keys.items():
                if key.fileobj is fileobj:
                    return number
            raise
        if number not in self._keys:
            raise KeyError(f"{fileobj!r} is not registered")
        return number


class _KeyMap(Mapping[Any, _Key]):
    """A selector's keys, by whatever was registered."""

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    def __len__(self) -> int:
        return len(self._selector.keys)

    def __getitem__(self, fileobj: Any) -> _Key:
        return self._selector.keys[self._selector.lookup(fileobj)]

    def __iter__(self) -> Iterator[int]:
        return iter(self._selector.keys)


class Selection:
    """The lists of a select(), kept so that a call with the same ones need not register anew."""

    def __init__(self, network: Network, reading: Sequence[Any], writing: Sequence[Any]) -> None:
        self.reading, self.writing = list(reading), list(writing)
        self._network = network
        self._waits = WaitSet(network)
        wanted: dict[int, int] = {}
        self._readers = self._by_slot(self.reading, selectors.EVENT_READ, wanted)
        self._writers = self._by_slot(self.writing, selectors.EVENT_WRITE, wanted)
        for slot, events in wanted.items():
            self._waits.register(slot, events)

    @staticmethod
    def _by_slot(
        items: Sequence[Any], event: int, wanted: dict[int, int]
    ) -> dict[int, list[tuple[int, Any]]]:
        found: dict[int, list[tuple[int, Any]]] = {}
        for place, item in enumerate(items):
            slot = _slot(number_of(item))
            found.setdefault(slot, []).append((place, item))
            wanted[slot] = wanted.get(slot, 0) | event
        return found

    def select(self, timeout: float | None) -> tuple[list[Any], list[Any], list[Any]]:
        """As select()."""
        ready = self._waits.wait(_deadline(self._network, timeout))
        return (
            self._items(self._readers, ready, selectors.EVENT_READ),
            self._items(self._writers, ready, selectors.EVENT_WRITE),
            [],
        )

    @staticmethod
    def _items(
        items: dict[int, list[tuple[int, Any]]], ready: list[tuple[int, int]], event: int
    ) -> list[Any]:
        found = [one for slot, events in ready if events & event for one in items[slot]]
        return [item for _, item in sorted(found, key=lambda one: one[0])]

    @property
    def examined(self) -> int:
        """As Selector.examined."""
        return self._waits.examined


class Select:
    """select.select for `network`'s sockets: an object to call, which keeps the last lists.

    Each call copies and compares them, which takes time in proportion to their length, by nature of
    this interface; a Selector does not. Only sockets that have changed are examined.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self.last: Selection | None = None

    def __call__(
        self,
        rlist: Sequence[Any],
        wlist: Sequence[Any],
        xlist: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Those of `rlist` that can be read, of `wlist` that can be written; `timeout` in s.

        Nothing exceptional ever happens to `xlist`. ValueError for a closed socket, OSError EBADF
        for a number that is none of ours.
        """
        if timeout is not None and timeout < 0:
            raise ValueError("timeout must be non-negative")
        for item in xlist:
            _slot(number_of(item))
        last = self.last
        if last is not None and last.reading == list(rlist) and last.writing == list(wlist):
            try:
                return last.select(timeout)
            except OSError:
                pass  # one was closed: which, is found below
        self.last = None
        selection = Selection(self._network, rlist, wlist)
        self.last = selection
        return selection.select(timeout)


def select(
    network: Network,
    rlist: Sequence[Any],
    wlist: Sequence[Any],
    xlist: Sequence[Any],
    timeout: float | None = None,
) -> tuple[list[Any], list[Any], list[Any]]:
    """One call of Select(network): it registers every socket, so its cost grows with them all."""
    return Select(network)(rlist, wlist, xlist, timeout)
