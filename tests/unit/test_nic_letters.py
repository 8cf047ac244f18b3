"""Letters, map requests and farewells of SHRIMP's NIC under the virtual clock."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from support.vmmc import DMA_NS, LINK_NS, VmmcNodes
from support.vmmc_layout import (
    CLOSED,
    CLOSING,
    LETTER_BOUNCED,
    LETTER_GONE,
    LETTER_LIBRARY,
    LETTER_MAPPED,
    MAILBOX_ENTRIES,
    MAP_REQUEST,
    NO_ENDPOINT,
    OPEN,
    Status,
    vmmc_frame,
)

from shrimpmx.shared.node import put_frame, take_frames

WAY_NS = LINK_NS + DMA_NS
BACK_NS = 2 * WAY_NS


def ready(nodes: int = 2, endpoints: int = 1, **more: Any) -> VmmcNodes:
    made = VmmcNodes(nodes=nodes, endpoints=endpoints, **more)
    for node in range(nodes):
        for endpoint in range(endpoints):
            made.open(node, endpoint)
    return made


def test_a_letter_lies_in_the_mailbox_as_it_was_sent() -> None:
    nodes = ready(endpoints=2)
    data = bytes(range(48))
    nodes.letter(data, tag=0xCAFE, kind=17, status=5, endpoint=1, src_endpoint=1)
    nodes.letter(b"second", endpoint=1)
    nodes.advance(WAY_NS)
    assert nodes.take_letters(0, 0) == []
    first, second = nodes.take_letters(0, 1)
    assert (first.node, first.endpoint, first.kind) == (1, 1, 17)
    assert (first.tag, first.status, first.generation) == (0xCAFE, 5, 0)
    assert bytes(first.data) == data
    assert bytes(second.data) == b"second".ljust(48, b"\0")
    assert nodes.nic_counters(0)["vmmc_letters"] == 2


def test_a_letter_finds_who_has_its_port() -> None:
    nodes = ready(endpoints=3)
    nodes.take_port(0, 8080, endpoint=2)
    nodes.letter(b"for 8080", endpoint=NO_ENDPOINT, index=8080)
    nodes.advance(WAY_NS)
    assert [bytes(letter.data[:8]) for letter in nodes.take_letters(0, 2)] == [b"for 8080"]


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (Status.NO_PORT, {"endpoint": NO_ENDPOINT, "index": 80}),
        (Status.NO_PROCESS, {"endpoint": 1}),
        (Status.NO_PROCESS, {"endpoint": 200}),
    ],
)
def test_a_letter_that_nobody_can_get_comes_back(status: Status, fields: dict[str, int]) -> None:
    nodes = ready()
    nodes.letter(b"hello?", tag=99, **fields)
    nodes.advance(BACK_NS)
    (bounced,) = nodes.take_letters(1)
    assert (bounced.kind, bounced.tag, bounced.status) == (LETTER_BOUNCED, 99, status)
    assert (bounced.node, bounced.endpoint) == (0, fields["endpoint"])
    assert nodes.nic_counters(0)["vmmc_letters_bounced"] == 1
    assert nodes.nic_counters(1)["vmmc_letters"] == 1


def test_a_letter_for_a_full_mailbox_comes_back() -> None:
    nodes = ready(tx_ring_entries=8192, link_ring_entries=8192)
    for tag in range(MAILBOX_ENTRIES + 1):
        nodes.letter(tag=tag)
    nodes.advance(10 * BACK_NS)
    (bounced,) = nodes.take_letters(1)
    assert (bounced.tag, bounced.status) == (MAILBOX_ENTRIES, Status.MAILBOX_FULL)
    assert [letter.tag for letter in nodes.take_letters(0)] == list(range(MAILBOX_ENTRIES))


def test_the_nics_own_letter_for_a_full_mailbox_or_nobody_is_lost_and_counted() -> None:
    nodes = ready(tx_ring_entries=8192, link_ring_entries=8192)
    for _ in range(MAILBOX_ENTRIES):
        nodes.letter()
    nodes.letter(kind=LETTER_GONE)
    nodes.letter(kind=LETTER_GONE, endpoint=1)
    nodes.advance(10 * BACK_NS)
    assert nodes.take_letters(1) == []
    counters = nodes.nic_counters(0)
    assert counters["drop_vmmc_mailbox_full"] == 1
    assert counters["drop_vmmc_no_process"] == 1


@pytest.mark.parametrize(
    ("kind", "length"),
    [(0, 0), (4, 0), (15, 0), (LETTER_MAPPED, 11), (LETTER_MAPPED, 13), (LETTER_LIBRARY, 49)],
)
def test_a_letter_of_no_known_form_is_dropped(kind: int, length: int) -> None:
    nodes = ready()
    nodes.letter(bytes(length), kind=kind)
    nodes.advance(BACK_NS)
    assert nodes.nic_counters(0)["drop_vmmc_bad_frame"] == 1
    assert nodes.take_letters(0) == nodes.take_letters(1) == []


# -- maps ----------------------------------------------------------------------------


def mapped(nodes: VmmcNodes, **fields: int) -> tuple[int, int, int, int]:
    """Tag, status, generation and length of the answer to a map request of node 1."""
    nodes.map_request(**fields)
    nodes.advance(BACK_NS)
    (letter,) = nodes.take_letters(1)
    assert (letter.kind, letter.node) == (LETTER_MAPPED, 0)
    (length,) = struct.unpack("=Q", bytes(letter.data[:8]))
    return letter.tag, letter.status, letter.generation, length


def test_a_map_request_is_told_what_is_exported() -> None:
    nodes = ready()
    nodes.export(0, index=4095, length=12_345, generation=0x01020304)
    assert mapped(nodes, index=4095, tag=0xFFFFFFFF) == (
        0xFFFFFFFF,
        Status.OK,
        0x01020304,
        12_345,
    )
    assert nodes.nic_counters(0)["vmmc_map_requests"] == 1


def test_a_map_request_is_refused_with_the_reason() -> None:
    nodes = ready()
    nodes.export(0, index=1, allowed=0)
    nodes.export(0, index=2, allowed=1, length=64)
    assert mapped(nodes, index=0) == (7, Status.NOT_EXPORTED, 0, 0)
    assert mapped(nodes, index=1) == (7, Status.NOT_ALLOWED, 0, 0)
    assert mapped(nodes, index=2) == (7, Status.OK, 1, 64)
    assert mapped(nodes, index=4096) == (7, Status.NOT_EXPORTED, 0, 0)
    assert mapped(nodes, index=2, endpoint=1) == (7, Status.NO_PROCESS, 0, 0)
    nodes.process(0).state = CLOSED
    assert mapped(nodes, index=2) == (7, Status.NO_PROCESS, 0, 0)


def ask_often(count: int) -> VmmcNodes:
    """Node 0 has been asked `count` times; node 1 takes nothing from its link, of 16 frames."""
    nodes = ready(link_ring_entries=16)
    nodes.export(0)
    for tag in range(count):
        assert put_frame(nodes.nodes[0], "link", 1, vmmc_frame(MAP_REQUEST, 0, 1, offset=tag), 0)
        nodes.step(nodes.nics[0])
        nodes.control.set_virtual_ns(nodes.now_ns + DMA_NS)
        nodes.step(nodes.nics[0])
    return nodes


def test_answers_wait_for_room_on_the_link() -> None:
    nodes = ask_often(200)
    nodes.advance(10**6)
    assert [letter.tag for letter in nodes.take_letters(1)] == list(range(200))


def test_answers_beyond_what_a_nic_keeps_are_lost_and_counted() -> None:
    kept = 16 + 1024  # on the link and in the NIC
    nodes = ask_often(kept + 5)
    assert nodes.nic_counters(0)["drop_vmmc_mailbox_full"] == 5
    nodes.advance(10**8)
    assert [letter.tag for letter in nodes.take_letters(1)] == list(range(kept))


# -- farewells -------------------------------------------------------------------------


def add_import(nodes: VmmcNodes, index: int, node: int, endpoint: int) -> None:
    entry = nodes.import_entry(1, 0, index)
    entry.node, entry.endpoint, entry.export_index = node, endpoint, index
    entry.generation = 1


def gone(nodes: VmmcNodes, node: int, endpoint: int = 0) -> list[tuple[int, int, int]]:
    return [(e.kind, e.node, e.endpoint) for e in nodes.take_letters(node, endpoint)]


def test_a_closing_process_tells_each_peer_once() -> None:
    nodes = ready(nodes=3, endpoints=2)
    for index, peer in enumerate([(0, 0), (0, 1), (0, 0), (2, 1), (1, 1), (0, 0)]):
        add_import(nodes, 700 * index, *peer)
    nodes.close(1)
    nodes.advance(WAY_NS)
    told = [(LETTER_GONE, 1, 0)]
    assert gone(nodes, 0, 0) == gone(nodes, 0, 1) == gone(nodes, 2, 1) == told
    assert gone(nodes, 1, 1) == told  # a neighbour on its own node
    assert gone(nodes, 2, 0) == []
    assert nodes.process(1).state == CLOSED
    assert nodes.process(1, 1).state == OPEN
    assert not any(nodes.import_entry(1, 0, index).generation for index in range(4096))
    assert nodes.nic_counters(1)["vmmc_gone_letters"] == 4


def test_many_peers_are_told_in_several_steps() -> None:
    nodes = ready(endpoints=20)
    for endpoint in range(20):
        add_import(nodes, endpoint, 0, endpoint)
    nodes.close(1)
    nodes.step(nodes.nics[1])
    assert nodes.process(1).state == CLOSING
    nodes.advance(WAY_NS)
    assert [len(nodes.take_letters(0, endpoint)) for endpoint in range(20)] == [1] * 20
    assert nodes.process(1).state == CLOSED


def test_the_news_comes_behind_all_that_was_sent_before() -> None:
    nodes = ready()
    add_import(nodes, 0, 0, 0)
    for _ in range(100):  # more than a step takes from one ring
        nodes.letter()
    nodes.close(1)
    nodes.advance(WAY_NS)
    kinds = [letter.kind for letter in nodes.take_letters(0)]
    assert kinds == [LETTER_LIBRARY] * 100 + [LETTER_GONE]


def test_the_news_waits_for_room_on_the_link() -> None:
    nodes = ready(link_ring_entries=4)
    add_import(nodes, 0, 0, 0)
    for _ in range(4):
        nodes.letter()
    nodes.step(nodes.nics[1])  # the link is full
    nodes.close(1)
    nodes.step(nodes.nics[1])
    assert len(take_frames(nodes.nodes[0], "link", 1)) == 4
    nodes.advance(10**5)
    assert gone(nodes, 0) == [(LETTER_GONE, 1, 0)]


def test_a_peer_on_no_known_node_keeps_nobody_from_closing() -> None:
    nodes = ready()
    add_import(nodes, 0, 999, 0)
    add_import(nodes, 1, 0, 77)
    nodes.close(1)
    nodes.advance(BACK_NS)
    assert nodes.process(1).state == CLOSED
    assert nodes.nic_counters(1)["tx_no_route"] == 1
    assert nodes.nic_counters(0)["drop_vmmc_no_process"] == 1


def test_a_process_may_close_while_another_one_does() -> None:
    nodes = ready(endpoints=20)
    for endpoint in range(20):
        add_import(nodes, endpoint, 0, endpoint)
    nodes.close(1, 0)
    nodes.step(nodes.nics[1])
    nodes.close(1, 5)
    nodes.advance(WAY_NS)
    assert nodes.process(1, 0).state == nodes.process(1, 5).state == CLOSED
    assert [len(nodes.take_letters(0, endpoint)) for endpoint in range(20)] == [1] * 20
