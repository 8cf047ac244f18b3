"""The library against a model of a few lines: two lists and their order."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.virtual_cluster import FaultyWire, VirtualCluster, pattern, perfect_wire

from shrimpmx.mx.handles import Request
from shrimpmx.settings.mx import MxParameters

MATCHES = some.integers(0, 3)
MASKS = some.sampled_from([0, 1, 2, 3, (1 << 64) - 1])
LENGTHS = some.sampled_from([0, 1, 32, 33, 128, 129, 1452, 1453, 5000])
CAPACITIES = some.sampled_from([0, 10, 100, 3000, 6000])
RATES = some.sampled_from([0.0, 0.0, 0.1, 0.4])


@dataclass
class Message:
    number: int
    match: int
    length: int


@dataclass
class Receive:
    match: int
    mask: int
    buffer: bytearray
    request: Request
    message: Message | None = None
    cancelled: bool = False


@dataclass
class Model:
    """MX matching: each side takes the oldest of the other that fits."""

    posted: list[Receive] = field(default_factory=list)
    unexpected: list[Message] = field(default_factory=list)

    def post(self, receive: Receive) -> None:
        for message in self.unexpected:
            if receive.match == message.match & receive.mask:
                self.unexpected.remove(message)
                receive.message = message
                return
        self.posted.append(receive)

    def arrive(self, message: Message) -> None:
        for receive in self.posted:
            if receive.match == message.match & receive.mask:
                self.posted.remove(receive)
                receive.message = message
                return
        self.unexpected.append(message)


class LibraryAgainstModel(RuleBasedStateMachine):
    """One sends, the other receives; what was sent arrives only in the rule `deliver`."""

    def __init__(self) -> None:
        super().__init__()
        parameters = MxParameters(
            throttle=20, send_window=24, pulls_max=2, zombies_max=8, requests=16
        )
        self.cluster = VirtualCluster(event_ring_entries=32, tx_ring_entries=32)
        self.sender, self.receiver, self.partner = self.cluster.pair(parameters)
        self.model = Model()
        self.sent: list[tuple[Message, Request]] = []
        self.on_the_way: list[Message] = []
        self.receives: list[Receive] = []
        self.numbers = 0

    @rule(match=MATCHES, length=LENGTHS)
    def send(self, match: int, length: int) -> None:
        message = Message(self.numbers, match, length)
        self.numbers += 1
        request = self.sender.isend(pattern(length, message.number), self.partner, match)
        self.sent.append((message, request))
        self.on_the_way.append(message)

    @rule(match=MATCHES, mask=MASKS, capacity=CAPACITIES)
    def receive(self, match: int, mask: int, capacity: int) -> None:
        buffer = bytearray(capacity)
        request = self.receiver.irecv(buffer, match & mask, mask)
        receive = Receive(match & mask, mask, buffer, request)
        self.receives.append(receive)
        self.model.post(receive)

    @precondition(lambda self: self.model.posted)
    @rule(data=some.data())
    def cancel(self, data: some.DataObject) -> None:
        receive = data.draw(some.sampled_from(self.model.posted))
        assert self.receiver.cancel(receive.request)
        self.model.posted.remove(receive)
        receive.cancelled = True

    @rule(match=MATCHES, mask=MASKS)
    def probe(self, match: int, mask: int) -> None:
        status = self.receiver.iprobe(match & mask, mask)
        fitting = [m for m in self.model.unexpected if match & mask == m.match & mask]
        assert (status is not None) == bool(fitting)
        if status is not None:
            assert (status.match, status.length) == (fitting[0].match, fitting[0].length)

    @precondition(lambda self: self.on_the_way)
    @rule(
        loss=RATES, duplicate=RATES, reorder=RATES, degree=some.sampled_from([1, 3, 40]),
        seed=some.integers(0, 1 << 30),
    )  # fmt: skip
    def deliver(
        self, loss: float, duplicate: float, reorder: float, degree: int, seed: int
    ) -> None:
        self.cluster.wire = FaultyWire(random.Random(seed), loss, duplicate, reorder, degree)
        self.cluster.until(
            lambda: (
                self.partner.unacked == 0
                and all(self.sender.test(request) is not None for _, request in self.sent)
            )
        )
        self.cluster.wire = perfect_wire
        self.cluster.settle()
        for message, request in self.sent:
            assert request.status is not None
            assert request.status.code == "success"
            assert request.status.transferred == message.length
        for message in self.on_the_way:
            self.model.arrive(message)
        self.sent.clear()
        self.on_the_way.clear()

    @invariant()
    def the_same_receives_are_done(self) -> None:
        for receive in self.receives:
            status = self.receiver.test(receive.request)
            if receive.cancelled:
                assert status is not None
                assert status.code == "cancelled"
            elif receive.message is None:
                assert status is None
            else:
                message = receive.message
                fits = min(message.length, len(receive.buffer))
                assert status is not None
                assert status.transferred == fits
                assert (status.match, status.length) == (message.match, message.length)
                assert status.code == ("truncated" if fits < message.length else "success")
                assert receive.buffer[:fits] == pattern(message.length, message.number)[:fits]
        self.receives = [r for r in self.receives if r.message is None and not r.cancelled]

    def teardown(self) -> None:
        self.cluster.close(self.sender)
        self.cluster.close(self.receiver)


TestLibraryAgainstModel = LibraryAgainstModel.TestCase
TestLibraryAgainstModel.settings = settings(max_examples=60, stateful_step_count=30)
