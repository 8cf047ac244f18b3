"""Where opening an endpoint moves its process: every form, the file, the driver's hint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.host_node import HostNode

from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.mx.binding import (
    Binding,
    BindingLine,
    board_of,
    bound_cores,
    default_file,
    parse_binding,
    read_binding_file,
    unfitting_file,
)
from shrimpmx.mx.sandbox import sandbox
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

FILE = """\
# board, endpoint, interrupt, mask
board 02:5a:00:00:00:01 ep 0 irq 0 mask 00000004

board 02:5a:00:00:00:00 ep 0 irq 24 mask 00000002
board 02:5A:00:00:00:00 ep 1 irq 25 mask 00000001,0000000c
board 02:5a:00:00:00:00 ep 0 irq 26 mask 00000001
"""


@pytest.mark.parametrize(
    ("text", "binding"),
    [
        ("none", Binding("none")),
        ("auto", Binding("auto")),
        ("0+2+4", Binding("list", (0, 2, 4))),
        ("2,0,2", Binding("list", (2, 0, 2))),
        ("3", Binding("list", (3,))),
        ("all:5", Binding("all", (5,))),
        ("file:/a/b:c", Binding("file", path=Path("/a/b:c"))),
    ],
)
def test_every_form_is_understood(text: str, binding: Binding) -> None:
    assert parse_binding(text) == binding


def test_the_default_file_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = tmp_path / "shrimpmx" / "open-mx.bindings.dat"
    assert parse_binding("file").path == default_file() == place


@pytest.mark.parametrize(
    "text", ["", "0++1", "1+x", "0-3", "all", "all:", "all:1+2", "auto:1", "none:", "-1", "1e3"]
)
def test_what_is_of_no_form_is_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="process_binding is none, auto, a core per endpoint"):
        parse_binding(text)


def test_the_first_line_for_an_endpoint_of_a_board_counts(tmp_path: Path) -> None:
    path = tmp_path / "bindings"
    path.write_text(FILE)
    binding = Binding("file", path=path).read()
    assert bound_cores(binding, 0, 0, 64) == (1,)
    assert bound_cores(binding, 1, 0, 64) == (2,)
    assert bound_cores(binding, 1, 1, 64) == ()  # no line: the process stays


def test_masks_of_more_than_32_cores_and_interrupt_0_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "bindings"
    path.write_text(FILE)
    lines = read_binding_file(path)
    assert lines[0] == BindingLine("02:5a:00:00:00:01", 0, 0, (2,))
    assert lines[2].cores == (2, 3, 32)
    assert lines[2].text() == "board 02:5a:00:00:00:00 ep 1 irq 25 mask 00000001,0000000c"
    with pytest.raises(InputError, match=r"bindings names core 32, but node 0 has cores 0-3$"):
        bound_cores(Binding("file", path=path).read(), 0, 1, 4)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("02:5a:00:00:00:00 0 24 1", "line 2 of the binding file .* is not of the form"),
        ("board 02:5a:00:00:00:00 ep x irq 24 mask 1", "line 2 .* is not of the form"),
        ("board 02:5a ep 0 irq 24 mask 1", "line 2 .*'02:5a' is not a hardware address"),
        ("board 02:5a:00:00:00:00 ep 0 irq 24 mask g", "line 2 .*'g' is not a mask"),
        ("board 02:5a:00:00:00:00 ep 0 irq 24 mask 123456789", "line 2 .* is not a mask"),
        ("board 02:5a:00:00:00:00 ep 0 irq 24 mask 0", "line 2 .*its mask is empty"),
        ("board 02:5a:00:00:00:00 ep 255 irq 24 mask 1", "line 2 .*255, but .* 0 to 254$"),
        ("board 02:5a:00:00:00:00 ep 300 irq 24 mask 1", "line 2 .*300, but .* 0 to 254$"),
    ],
)
def test_a_bad_line_is_named_by_its_number(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bindings"
    path.write_text(f"board {board_of(7)} ep 0 irq 1 mask 1\n{line}\n")
    with pytest.raises(InputError, match=words):
        read_binding_file(path)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read: No such file .*`shrimpmx binding`"):
        read_binding_file(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not a text file"):
        read_binding_file(tmp_path / "binary")


def test_a_list_that_ends_too_early_and_cores_that_there_are_not_are_refused() -> None:
    assert bound_cores(Binding("list", (2, 0)), 1, 1, 4) == (0,)
    assert bound_cores(Binding("all", (3,)), 1, 200, 4) == (3,)
    with pytest.raises(
        InputError, match="process_binding names no core for endpoint 2 of node 1: name one"
    ):
        bound_cores(Binding("list", (2, 0)), 1, 2, 4)
    with pytest.raises(InputError, match=r"process_binding names core 4, but node 1 has cores 0-3"):
        bound_cores(Binding("all", (4,)), 1, 0, 4)
    with pytest.raises(
        InputError, match=r"process_binding names core 99, but node 0 has cores 0-3"
    ):
        bound_cores(Binding("list", (0, 99)), 0, 0, 4)  # the node has no endpoint 1


def test_a_file_that_fits_no_nic_is_said(tmp_path: Path) -> None:
    path = tmp_path / "bindings"
    path.write_text(FILE)
    assert unfitting_file(Binding("file", path=path).read(), 1) == ""
    path.write_text("board 00:60:dd:47:00:01 ep 0 irq 24 mask 00000001\n")
    for binding in (Binding("file", path=path).read(), Binding("file", path=path)):
        assert unfitting_file(binding, 2) == (
            f"the binding file {path} has no line for a NIC of this run (02:5a:00:00:00:00, "
            "02:5a:00:00:00:01): processes stay where they are"
        )
    assert "(02:5a:00:00:00:00, 02:5a:00:00:00:01, 02:5a:00:00:00:02, ..., 02:5a:00:00:00:08)" in (
        unfitting_file(Binding("file", path=path), 9)
    )
    assert unfitting_file(Binding("all", (0,)), 2) == ""


@pytest.mark.parametrize(
    ("nic", "host", "hints"),
    [
        ({"rx_queues": 4}, {"cores": 4}, [0, 1, 2, 3, 0]),
        ({"rx_queues": 3}, {"cores": 8}, [0, 1, 2, 0, 1]),
        ({"rx_queues": 2}, {"cores": 4, "irq_binding": "3/1-2"}, [3, 1, 3, 1, 3]),
        ({}, {"cores": 4, "irq_binding": "2"}, [2] * 5),
        ({"rx_queues": 4, "steering": "rss"}, {"cores": 4, "irq_binding": "3/2/1/0"}, [3] * 5),
        ({"steering": "rps"}, {"cores": 4}, [0, 1, 2, 3, 0]),
        ({"steering": "rps"}, {"cores": 4, "rps_cpus": "1,3"}, [1, 3, 1, 3, 1]),
        ({"rx_queues": 4, "steering": "arfs"}, {"cores": 4}, [1] * 5),
        ({"nic_kind": "mx"}, {"cores": 4}, [1] * 5),
    ],
)
def test_the_drivers_hint_is_the_core_that_handles_the_endpoint(
    nic: dict[str, Any], host: dict[str, Any], hints: list[int]
) -> None:
    """Without one a rank stays on the core where it begins, here 1."""
    spec = ClusterSpec(
        ranks=(RankSpec(0, "idle", 1),) * 5,
        nic=NicParameters(**nic),
        host=HostParameters(**host),
        mx=MxParameters(process_binding="auto"),
    )
    assert [spec.home_core(number) for number in range(5)] == hints
    node = HostNode.make(
        cores=spec.host.cores,
        rx_queues=spec.nic.rx_queues,
        irq_binding=spec.host.irq_binding,
        steering=spec.nic.steering,
        rps_cpus=spec.host.rps_cpus,
    ).node
    if spec.nic.steering == "endpoint" and spec.nic.nic_kind == "ethernet":
        assert [node.affinity(number % node.vectors_count)[0] for number in range(5)] == hints


def spec_of(process_binding: str, **nic: Any) -> ClusterSpec:
    """Two ranks of node 0, both on core 1 at first, endpoints 0 and 1."""
    return ClusterSpec(
        ranks=(RankSpec(0, "idle", 1), RankSpec(0, "idle", 1)),
        nic=NicParameters(**nic),
        host=HostParameters(cores=4),
        mx=MxParameters(process_binding=process_binding),
    )


@pytest.mark.parametrize(
    ("process_binding", "nic", "cores"),
    [
        ("none", {}, [(1,), (1,)]),
        ("auto", {"rx_queues": 4}, [(0,), (1,)]),
        ("auto", {"rx_queues": 4, "steering": "arfs"}, [(1,), (1,)]),
        ("3+2", {}, [(3,), (2,)]),
        ("all:0", {}, [(0,), (0,)]),
    ],
)
def test_ranks_open_their_endpoints_where_the_binding_wants_them(
    process_binding: str, nic: dict[str, Any], cores: list[tuple[int, ...]]
) -> None:
    spec = spec_of(process_binding, **nic)
    assert [spec.home_cores(number) for number in (0, 1)] == cores


def test_a_file_moves_a_rank_to_all_cores_of_its_mask(tmp_path: Path) -> None:
    path = tmp_path / "bindings"
    path.write_text(f"board {board_of(0)} ep 1 irq 5 mask c\n")
    spec = spec_of(f"file:{path}")
    path.unlink()  # it was read, once
    assert [spec.home_cores(number) for number in (0, 1)] == [(1,), (2, 3)]


@pytest.mark.parametrize(
    ("process_binding", "words"),
    [
        ("3", "process_binding names no core for endpoint 1 of node 0"),
        ("0+4", "process_binding names core 4, but node 0 has cores 0-3"),
        ("0+1+99", "process_binding names core 99, but node 0 has cores 0-3"),
        ("file:/absent", "the binding file /absent cannot be read"),
        ("any", "process_binding is none, auto"),
    ],
)
def test_what_cannot_be_bound_is_refused_before_anything_runs(
    process_binding: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        spec_of(process_binding)


def test_an_endpoint_tells_its_core_and_counts_moves() -> None:
    with sandbox() as (endpoint, _):
        assert endpoint.process_core is None
        endpoint.process_core = 0
        assert endpoint.process_core == 0
        assert endpoint.counters()["moves"] == 0
        with pytest.raises(InputError, match="node 0 has no core 1; its cores are 0 to 0"):
            endpoint.process_core = 1
        endpoint.process_core = None
        assert endpoint.process_core is None
