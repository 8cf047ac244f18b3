"""A soak: two ranks send each other messages of random size, and every byte is checked.

Sizes and contents follow from a seed, so that a receiver knows what must come. Receives take
any message, so that the order shows too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shrimpmx.errors import MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request, Status
from shrimpmx.shared.host import Host
from shrimpmx.workloads.silence import PATIENCE_NS, ask

SIZE_MAX_BYTES = 1 << 20
# (share, longest): mostly small, as applications send; some of every class (ours).
SIZE_CLASSES = ((0.55, 128), (0.30, 1452), (0.10, 32768), (0.045, 131072), (0.005, 1 << 20))
SIZES_AT_A_TIME = 4096
# Contents begin at one of so many places of the noise; a prime, so that the walk visits all.
PLACES = 8191
LOOK_NS = 200_000_000


@dataclass(frozen=True)
class Plan:
    """What the ranks of a pair agree on: `messages` each way, `window` in flight."""

    seed: int
    messages: int
    window: int = 16


class Contents:
    """The messages of one direction: `sender` is 0 or 1."""

    def __init__(self, plan: Plan, sender: int, noise: NDArray[np.uint8]) -> None:
        self._draw = np.random.default_rng((plan.seed, sender))
        self._noise = noise
        self._sizes: dict[int, NDArray[np.int64]] = {}
        self._step = 61 + 2 * sender
        self._parts = 0

    def __getitem__(self, number: int) -> NDArray[np.uint8]:
        """The bytes of a message; asked for in about the order of their numbers."""
        part, place = divmod(number, SIZES_AT_A_TIME)
        while self._parts <= part:
            self._sizes[self._parts] = self._draw_sizes()
            self._sizes.pop(self._parts - 2, None)
            self._parts += 1
        start = number * self._step % PLACES
        return self._noise[start : start + int(self._sizes[part][place])]

    def _draw_sizes(self) -> NDArray[np.int64]:
        shares, longest = zip(*SIZE_CLASSES, strict=True)
        classes = self._draw.choice(len(shares), SIZES_AT_A_TIME, p=shares)
        lowest = np.array((0, *longest))[classes]
        return self._draw.integers(lowest, np.array(longest)[classes], endpoint=True)


class Soak:
    """One rank's side."""

    def __init__(self, endpoint: Endpoint, partner: Partner, side: int, plan: Plan) -> None:
        # Where messages come from is never written; where they arrive lies beside it in the
        # rank's heap, if there is one.
        noise = np.random.default_rng(plan.seed).integers(
            0, 256, SIZE_MAX_BYTES + PLACES, dtype=np.uint8
        )
        self.endpoint, self.partner, self.plan = endpoint, partner, plan
        self.outgoing = Contents(plan, side, noise)
        self.incoming = Contents(plan, 1 - side, noise)
        self.buffers = [np.zeros(SIZE_MAX_BYTES, np.uint8) for _ in range(plan.window)]
        self.requests: dict[tuple[str, int], Request] = {}
        self.sent = self.posted = self.received = self.sends_done = 0
        self.bytes_received = 0

    def run(self, report: Callable[[], None] | None = None) -> None:
        """Exchange everything; MxError at the first message that is not as it must be, or if the
        partner dies.
        """
        for slot in range(min(self.plan.window, self.plan.messages)):
            self._post(slot)
        looks = 0  # in a row that found nothing
        while self.received < self.plan.messages or self.sends_done < self.plan.messages:
            self._fill()
            status = self.endpoint.wait_any(timeout_ns=LOOK_NS)
            looks += 1
            if status is not None:
                self._take(status)
                looks = 0
            elif looks * LOOK_NS >= PATIENCE_NS:
                ask(self.endpoint, self.partner)
                looks = 0
            if report is not None:
                report()
        self.endpoint.drain()

    def _fill(self) -> None:
        limit = min(self.plan.messages, self.sends_done + self.plan.window)
        while self.sent < limit:
            number = self.sent
            key = ("send", number)
            self.requests[key] = self.endpoint.isend(
                self.outgoing[number], self.partner, number, context=key
            )
            self.sent += 1

    def _post(self, slot: int) -> None:
        key = (f"receive {slot}", self.posted)
        self.requests[key] = self.endpoint.irecv(self.buffers[slot], 0, 0, context=key)
        self.posted += 1

    def _take(self, status: Status) -> None:
        key = status.context
        assert isinstance(key, tuple)
        what, number = key
        del self.requests[key]
        if status.code != "success":
            raise MxError(f"{what} of message {number} ended with {status.code}", status.code)
        if what == "send":
            self.sends_done += 1
            return
        slot = int(what.split()[1])
        self._check(number, status, self.buffers[slot])
        self.received += 1
        self.bytes_received += status.length
        if self.posted < self.plan.messages:
            self._post(slot)

    def _check(self, number: int, status: Status, buffer: NDArray[np.uint8]) -> None:
        if status.match != number:
            raise MxError(f"message {status.match} came in the place of {number}", "corrupted")
        wanted = self.incoming[number]
        if status.length != len(wanted):
            raise MxError(
                f"message {number} has {status.length} bytes, not {len(wanted)}", "corrupted"
            )
        if not np.array_equal(buffer[: len(wanted)], wanted):
            place = int(np.argmax(buffer[: len(wanted)] != wanted))
            raise MxError(
                f"message {number}, {len(wanted)} bytes long, is damaged at byte {place}",
                "corrupted",
            )


class Reporter:
    """Prints how many messages have been received, every `every_s` seconds of the run's clock."""

    def __init__(self, host: Host, received: Callable[[], int], total: int, every_s: float) -> None:
        self._host, self._received, self._total, self._every_s = host, received, total, every_s
        self._start_ns = self._last_ns = host.now_ns()

    def __call__(self) -> None:
        now_ns = self._host.now_ns()
        if now_ns - self._last_ns < self._every_s * 1e9:
            return
        self._last_ns = now_ns
        count = self._received()
        rate = count / (now_ns - self._start_ns) * 1e9
        left_s = (self._total - count) / rate if rate else 0.0
        print(
            f"{count} of {self._total} messages, {rate:.0f}/s, {left_s:.0f} s to go",
            file=sys.stderr,
            flush=True,
        )
