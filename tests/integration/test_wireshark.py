"""Captures: tshark and tools/wireshark/ decode every packet type to the values that were encoded,
and show times, ends, faults and drops as they were.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from support.capture import captured, decoded, needs_tshark, new_capture
from support.nic import Nodes
from support.packets import PACKET_TYPES, Packet, encode
from support.virtual_cluster import NicCluster, pattern

from shrimpmx.link.rings import ring_links
from shrimpmx.native.trace import Capture
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters
from shrimpmx.show.pcapng import comments, write_pcapng

# update, map request, letter: enum vmmc_packet in wire/vmmc.h
SHRIMP_KINDS = (1, 2, 3)
NAMED = ("destination", "source", "peer_index", "marked", "data")


def told_of(frames: Sequence[bytes], path: Path, *options: str) -> list[dict[str, Any]]:
    """What tshark says of frames that a captured link has sent."""
    capture = new_capture()
    egress, _ = ring_links(Nodes(link_ring_entries=64).nodes, 0, NicParameters())
    egress.use_capture(capture)
    for frame in frames:
        assert egress.send(0, 1, frame)
    write_pcapng(captured(capture), path)
    return decoded(path, *options)


def packet_of(kind: type[Packet], wire_format: str) -> Packet:
    """A packet whose every field has a value of its own, within the narrowest width of any."""
    names = [each.name for each in fields(kind) if each.name not in NAMED]
    values: dict[str, Any] = {name: 3 + number for number, name in enumerate(names)}
    if "match_info" in names:
        values["match_info"] = 0x0123456789ABCDEF
    if "data" in {each.name for each in fields(kind)}:
        values["data"] = b"the data"
    return kind(peer_index=770, marked=wire_format == "native", **values)


@needs_tshark
@pytest.mark.parametrize("wire_format", ["native", "compatible"])
def test_every_packet_type_of_mxoe(wire_format: str, tmp_path: Path) -> None:
    packets = [packet_of(kind, wire_format) for kind in PACKET_TYPES.values()]
    compatible = wire_format == "compatible"
    found = told_of(
        [encode(packet, wire_format) for packet in packets],
        tmp_path / "capture",
        *("-o", f"mxoe.compatible:{str(compatible).upper()}"),
    )
    for packet, layers in zip(packets, found, strict=True):
        told = layers["mxoe"]
        assert int(told["mxoe.ptype"]) == packet.PTYPE
        assert int(told["mxoe.peer_index"]) == packet.peer_index
        assert told["mxoe.marked"] in (("1", "True") if packet.marked else ("0", "False"))
        values = {each.name: getattr(packet, each.name) for each in fields(packet)}
        values.update(packet._derived())
        for name in packet.layout(compatible).names[1:]:
            assert int(told[f"mxoe.{packet.NAME}.{name}"]) == int(values[name]), (packet, name)
        data = values.get("data", b"")
        assert told.get("mxoe.data", "").replace(":", "") == data.hex()


@needs_tshark
def test_packets_of_shrimp_and_of_the_other_protocol(tmp_path: Path) -> None:
    ends = bytes(6) + bytes.fromhex("020000000001")
    headers = [(kind, 4, 5, 1, 8, 7, 0x10203, 2**40 + kind) for kind in SHRIMP_KINDS]
    frames = [
        ends + struct.pack(">HH", 0x88B5, 1) + struct.pack(">BBBBHHIQ", *header) + b"letter!!"
        for header in headers
    ]
    address = bytes([10, 0, 0, 1])
    for protocol in (253, 254):
        packet = struct.pack(">BBHHHBBH", 0x45, 0, 24, 0, 0, 64, protocol, 0) + 2 * address
        frames.append(ends + struct.pack(">H", 0x0800) + packet + struct.pack(">I", 70_000))
    found = told_of([frame.ljust(60, b"\0") for frame in frames], tmp_path / "capture")
    names = ("packet", "dst_endpoint", "src_endpoint", "flags")
    names += ("length", "export_index", "generation", "offset")
    for header, layers in zip(headers, found, strict=False):
        told = layers["vmmc"]
        assert tuple(int(told[f"vmmc.{name}"]) for name in names) == header
        assert bytes.fromhex(told["vmmc.data"].replace(":", "")) == b"letter!!"
    for each in found[len(headers) :]:
        assert each["shrimpmx_other"]["shrimpmx_other.number"] == "70000"


def faulty_run() -> Capture:
    """Messages of all sizes between two nodes, whose links have every fault."""
    faults = LinkFaults(loss=0.05, duplicate=0.05, reorder=0.05, corrupt=0.05, seed=3)
    cluster = NicCluster(NicParameters(), faults)
    capture = new_capture(end_bytes=8 << 20)
    for node, nic in enumerate(cluster.nics):
        nic.use_capture(capture, node)
        cluster.interrupts[node].use_capture(capture, node)
    one, other, partner = cluster.pair()
    for length in (0, 100, 4000, 32768, 100_000):
        for _ in range(5):
            receive = other.irecv(bytearray(length), 1)
            one.isend(pattern(length), partner, 1)
            cluster.wait(other, receive)
    sent = [cluster.nic_counters(node) for node in range(2)]
    kept = capture.frames()
    assert len([each for each in kept if not each.received]) == sum(
        counted["tx_packets"] for counted in sent
    )
    for name in ("link_lost", "link_duplicated", "link_reordered", "link_corrupted"):
        noted = sum(name in each.faults for each in kept)
        assert noted == sum(counted[name] for counted in sent) > 0, name
    return capture


@needs_tshark
def test_times_ends_faults_and_drops(tmp_path: Path) -> None:
    capture = faulty_run()
    path = tmp_path / "capture.pcapng"
    write_pcapng(captured(capture), path)
    kept, found = capture.frames(), decoded(path)
    assert len(kept) == len(found) == capture.written(0) + capture.written(1)
    for frame, layers in zip(kept, found, strict=True):
        told = layers["frame"]
        ends = told["frame.interface_id_tree"]
        assert ends["frame.interface_name"] == f"node{frame.end}"
        seconds, _, fraction = told["frame.time_epoch"].partition(".")
        assert int(seconds) * 10**9 + int(fraction) == frame.time_ns
        assert int(told["frame.len"]) == frame.length
        direction = told["frame.packet_flags_tree"]["frame.packet_flags_direction"]
        assert int(direction, 16) == (1 if frame.received else 2)
        crc_error = told["frame.packet_flags_tree"]["frame.packet_flags_crc_error"]
        assert (crc_error in ("1", "True")) == frame.bad_fcs
        said = layers.get("pkt_comment", {}).get("frame.comment", [])
        assert ([said] if isinstance(said, str) else said) == list(comments(frame))
    reasons = Counter(words for frame in kept for words in comments(frame))
    assert any("receive handler" in words for words in reasons)
    assert any("rx_bad_fcs" in words for words in reasons)
