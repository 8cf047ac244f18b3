"""tools/wireshark/: tshark decodes every packet type to the values that were encoded."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from support.conditions import patient
from support.packets import PACKET_TYPES, Packet, encode
from support.tree import ROOT

DISSECTOR = ROOT / "tools" / "wireshark" / "shrimpmx.lua"
ETHERNET = 1
MAGIC_NS = 0xA1B23C4D
NAMED = ("destination", "source", "peer_index", "marked", "data")
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


def decoded(frames: Sequence[bytes], path: Path, *options: str) -> list[dict[str, Any]]:
    """The layers of each frame, as tshark has them."""
    records = [struct.pack("<IIII", 0, 0, len(each), len(each)) + each for each in frames]
    head = struct.pack("<IHHiIII", MAGIC_NS, 2, 4, 0, 0, 65535, ETHERNET)
    path.write_bytes(head + b"".join(records))
    command = ["tshark", "-X", f"lua_script:{DISSECTOR}", *options, "-r", str(path), "-T", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(50), check=True)
    assert "Lua" not in done.stderr, done.stderr
    return [each["_source"]["layers"] for each in json.loads(done.stdout)]


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
    found = decoded(
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
    header = (3, 4, 5, 1, 8, 7, 0x10203, 2**40 + 1)
    letter = ends + struct.pack(">HH", 0x88B5, 1) + struct.pack(">BBBBHHIQ", *header) + b"letter!!"
    address = bytes([10, 0, 0, 1])
    packet = struct.pack(">BBHHHBBH", 0x45, 0, 24, 0, 0, 64, 253, 0) + 2 * address
    frames = [letter, ends + struct.pack(">H", 0x0800) + packet + struct.pack(">I", 70_000)]
    found = decoded([frame.ljust(60, b"\0") for frame in frames], tmp_path / "capture")
    names = ("packet", "dst_endpoint", "src_endpoint", "flags")
    names += ("length", "export_index", "generation", "offset")
    told = found[0]["vmmc"]
    assert tuple(int(told[f"vmmc.{name}"]) for name in names) == header
    assert bytes.fromhex(told["vmmc.data"].replace(":", "")) == b"letter!!"
    assert found[1]["shrimpmx_other"]["shrimpmx_other.number"] == "70000"
