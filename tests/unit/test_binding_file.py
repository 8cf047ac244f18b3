"""The binding file that is made from a proc tree: rows, masks, queues; real and emulated ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.host_node import HostNode

from shrimpmx.cluster.place.binding_file import prepare, queue_of, rx_interrupts
from shrimpmx.errors import InputError
from shrimpmx.mx.binding import Binding, BindingLine, board_of, bound_cores
from shrimpmx.settings.core_lists import format_core_mask

BOARD = "00:60:dd:47:00:01"
# As Linux prints it; the interface's name stands in others' names, too.
TABLE = """\
            CPU0       CPU1       CPU2       CPU3
   0:        123          0          0          0   IO-APIC    2-edge      eth1-rx-0
   8:          1          0          0          0   IO-APIC    8-edge      rtc0
  24:          9          0          0          7   PCI-MSI 524288-edge      eth1-rx-1
  25:          9          0          0          7   PCI-MSI 524289-edge      eth1-tx-0
  26:          0          0          0          0   PCI-MSI 524290-edge      eth1
  27:          4          0          0          0   PCI-MSI 524291-edge      eth10-rx-3
  28:          4          0          0          0   PCI-MSI 524292-edge      veth1-rx-4
  29:          4          0          0          0   PCI-MSI 524293-edge      eth2:slice-0
  30:          4          0          0          0   PCI-MSI 524294-edge      eth2:slice-2
  31:          4          0          0          0   PCI-MSI 524295-edge      enp3s0f1-TxRx-0
  32:          4          0          0          0   PCI-MSI 524296-edge      virtio3-input.0
  33:          4          0          0          0   PCI-MSI 524297-edge      virtio3-output.0
 NMI:          0          0          0          0   Non-maskable interrupts of eth1-rx-7
"""


def write_tree(root: Path, table: str, masks: dict[int, str]) -> Path:
    """A directory that holds proc as far as it is read."""
    (root / "proc").mkdir()
    (root / "proc" / "interrupts").write_text(table)
    for irq, mask in masks.items():
        folder = root / "proc" / "irq" / str(irq)
        folder.mkdir(parents=True)
        (folder / "smp_affinity").write_text(f"{mask}\n")
    return root


@pytest.mark.parametrize(
    ("interface", "queues"),
    [
        ("eth1", {0: 0, 1: 24}),
        ("eth10", {3: 27}),
        ("eth2", {0: 29, 2: 30}),
        ("enp3s0f1", {0: 31}),
        ("virtio3", {0: 32}),
        ("rtc0", {}),
        ("eth3", {}),
    ],
)
def test_rx_queues_are_found_by_the_last_word_of_a_row(
    interface: str, queues: dict[int, int]
) -> None:
    assert rx_interrupts(TABLE, interface) == queues


def test_endpoints_go_round_the_queues_or_have_their_own() -> None:
    assert [queue_of(endpoint, {0: 5, 1: 6, 2: 7}) for endpoint in range(5)] == [0, 1, 2, 0, 1]
    assert [queue_of(endpoint, {0: 5, 2: 7}) for endpoint in range(4)] == [0, None, 2, None]


def test_a_line_per_endpoint_that_is_used(tmp_path: Path) -> None:
    root = write_tree(tmp_path, TABLE, {0: "2", 24: "1,0000000c"})
    lines = prepare(root, "eth1", BOARD, 3)
    assert lines == (
        BindingLine(BOARD, 0, 0, (1,)),
        BindingLine(BOARD, 1, 24, (2, 3, 32)),
        BindingLine(BOARD, 2, 0, (1,)),
    )
    assert prepare(root, "eth1", BOARD) == lines[:2]


def test_queues_with_gaps_bind_the_endpoints_of_their_numbers(tmp_path: Path) -> None:
    root = write_tree(tmp_path, TABLE, {29: "1", 30: "8"})
    assert prepare(root, "eth2", BOARD) == (
        BindingLine(BOARD, 0, 29, (0,)),
        BindingLine(BOARD, 2, 30, (3,)),
    )
    assert prepare(root, "eth2", BOARD, 1) == (BindingLine(BOARD, 0, 29, (0,)),)


def test_a_board_has_255_endpoints(tmp_path: Path) -> None:
    table = f"{TABLE}  34:  4  0  0  0   PCI-MSI 524298-edge  eth4-rx-255\n"
    root = write_tree(tmp_path, table, {0: "2", 24: "1", 34: "1"})
    assert len(prepare(root, "eth1", BOARD, 255)) == 255
    for interface, endpoints in (("eth1", 256), ("eth4", None)):
        with pytest.raises(InputError, match=f"{interface} would need 256 endpoints, but .* 255"):
            prepare(root, interface, BOARD, endpoints)


def test_an_emulated_node_is_read_as_a_real_one(tmp_path: Path) -> None:
    node = HostNode.make(cores=8, rx_queues=3, irq_binding="0/7/2-3").node
    masks = {queue: format_core_mask(node.affinity(queue)) for queue in range(3)}
    root = write_tree(tmp_path, node.interrupts_table(), masks)
    lines = prepare(root, "node0", board_of(0), 4)
    assert [line.cores for line in lines] == [(0,), (7,), (2, 3), (0,)]
    path = tmp_path / "bindings"
    path.write_text("".join(f"{line.text()}\n" for line in lines))
    assert bound_cores(Binding("file", path=path).read(), 0, 2, 8) == (2, 3)


def test_what_is_missing_or_wrong_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"proc/interrupts cannot be read: .*--root names"):
        prepare(tmp_path, "eth1", BOARD)
    root = write_tree(tmp_path, TABLE, {0: "1", 29: "0", 27: "x"})
    with pytest.raises(InputError, match=r"has no rx interrupt of 'eth9', such as eth9-rx-0"):
        prepare(root, "eth9", BOARD)
    with pytest.raises(InputError, match=r"proc/irq/24/smp_affinity cannot be read"):
        prepare(root, "eth1", BOARD)
    (root / "proc" / "irq" / "24").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "irq" / "24" / "smp_affinity").symlink_to("/dev/zero")
    with pytest.raises(
        InputError, match=r"24/smp_affinity cannot be read: it is not a regular file"
    ):
        prepare(root, "eth1", BOARD)
    with pytest.raises(InputError, match=r"proc/irq/29/smp_affinity is an empty mask"):
        prepare(root, "eth2", BOARD)
    with pytest.raises(InputError, match=r"proc/irq/27/smp_affinity: 'x' is not a mask"):
        prepare(root, "eth10", BOARD)
