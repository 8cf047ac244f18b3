"""CONTRIBUTING.md's table of additions is true: a toy of each kind works with just those files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.additions import Addition, documented

ROWS = "shrimpmx/settings/strategies.py"


@pytest.fixture(name="addition")
def _addition(tmp_path: Path) -> Addition:
    return Addition(tmp_path)


LINK = """
from collections import defaultdict

from shrimpmx.link.line import PythonEgress, PythonIngress

CARRIED = defaultdict(list)


class ToyEgress(PythonEgress):
    def reaches(self, node):
        return True

    def room(self, destination):
        return 1000

    def carry(self, destination, frame, arrival_ns, bad_fcs):
        CARRIED[destination].append((arrival_ns, self.source, frame, bad_fcs))

    def deliver(self, now_ns):
        return None


class ToyIngress(PythonIngress):
    def __init__(self, node):
        self.node = node

    def arrivals(self, now_ns):
        carried, CARRIED[self.node] = CARRIED[self.node], []
        return carried


def toy_links(nodes, index, parameters, faults):
    rate, delay_ns = parameters.link_bits_per_second, parameters.link_delay_ns
    return ToyEgress(nodes[index], rate, delay_ns, faults), ToyIngress(index)
"""
LINKED = """
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.simulation.engine import Simulated

ranks = tuple(RankSpec(node, "pingpong", options={"iterations": 9}) for node in (0, 1))
result = Simulated().run(ClusterSpec(ranks=ranks, link="toy"))
print(result.counters["node0.nic"]["rx_packets"])
"""


def test_a_link(addition: Addition) -> None:
    addition.add("shrimpmx/link/toy.py", LINK)
    row = 'LINKS["toy"] = Link("shrimpmx.link.toy:toy_links", maps_nodes=False, look_every_ns=500)'
    addition.insert("shrimpmx/link/links.py", "def link_called", f"{row}\n\n\n")
    assert int(addition.python("-c", LINKED)) > 9
    assert addition.touched == documented("a link")


WAIT = """
from shrimpmx.wait.strategies import PythonStrategy
from shrimpmx.wait.waiting_strategy import WaitingStrategy


class Toy(WaitingStrategy):
    @classmethod
    def from_limit(cls, spin_ns):
        return PythonStrategy(cls())

    def idle(self, waited_ns):
        return "yield"
"""


def test_a_waiting_strategy(addition: Addition) -> None:
    addition.add("shrimpmx/wait/toy.py", WAIT)
    row = 'WaitingRow("toy", "yields", "nobody knows", "shrimpmx.wait.toy:Toy"),'
    addition.insert(ROWS, "WAITING: ", f"_WAITING_ROWS += ({row})\n")
    assert "wait=toy" in addition.run("coalescing=disabled", "wait=toy")
    assert "yields" in addition.shrimpmx("list", "--strategies")
    assert addition.touched == documented("a waiting strategy")


COALESCING = """
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.strategies import PythonPolicy


class Toy(Policy):
    @classmethod
    def from_parameters(cls, parameters, dilation):
        return PythonPolicy(cls(), dilation)

    def on_dma_complete(self, now_ns, marked, dma_pending):
        return True
"""


def test_a_coalescing_strategy(addition: Addition) -> None:
    addition.add("shrimpmx/nic/toy.py", COALESCING)
    row = 'CoalescingRow("toy", "interrupts", "nobody knows", "shrimpmx.nic.toy:Toy"),'
    addition.insert(ROWS, "COALESCING: ", f"_COALESCING_ROWS += ({row})\n")
    assert "coalescing=toy" in addition.run("coalescing=toy")
    assert "interrupts" in addition.shrimpmx("list", "--strategies")
    assert addition.touched == documented("a coalescing strategy")


FIRMWARE = """
from shrimpmx.nic.mx import MxFirmware


def make_toy(order):
    return MxFirmware(order.node, order.egress, order.ingress, order.nic)
"""
KIND = """
from shrimpmx.cluster.nics.ethernet import NativeMx
from shrimpmx.nic.toy import make_toy


class Toy(NativeMx):
    name = "toy"

    def make_nic(self, order):
        return make_toy(order)
"""


def test_a_nic_kind(addition: Addition) -> None:
    addition.add("shrimpmx/nic/toy.py", FIRMWARE)
    addition.add("shrimpmx/cluster/nics/toy.py", KIND)
    row = 'NicRow("toy", "a toy of a NIC", "shrimpmx.cluster.nics.toy:Toy"),'
    addition.insert(ROWS, "NICS: ", f"_NIC_ROWS += ({row})\n")
    assert "nic=toy" in addition.run("coalescing=disabled", "nic=toy")
    assert "a toy of a NIC" in addition.shrimpmx("list", "--parameters")
    assert addition.touched == documented("a kind of NIC")


PLATFORM = """
name = "toy"
title = "A toy of a machine"
dilation = 2
dilation_source = "It is a toy."

[nic.link_delay_ns]
value = 700
origin = "ours"
source = "It is a toy."
"""


def test_a_platform(addition: Addition) -> None:
    addition.add("shrimpmx/experiment/platforms/toy.toml", PLATFORM)
    assert "platform=toy" in addition.run("coalescing=disabled", "platform=toy")
    assert "A toy of a machine" in addition.shrimpmx("list", "--platforms")
    assert addition.touched == documented("a platform")


CLAIM = """
    _claim(
        id="WC-99",
        kind="count",
        source="nowhere",
        setup="A toy.",
        paper="A toy costs nothing.",
        statistics=(each_sample(figures.FLAGS, "toys", "sleeps_per_wait", BLOCK, 1.0),),
    ),
"""


def test_a_claim(addition: Addition) -> None:
    addition.insert("shrimpmx/papers/waiting1997/claims.py", "    _claim(", CLAIM)
    assert "A toy costs nothing." in addition.shrimpmx("reproduce", "--list", "WC-99")
    assert addition.touched == documented("a claim")


OUTPUT = """
def toy_of(document):
    return f"a toy of {document['scenario']}"
"""


def test_an_output(addition: Addition) -> None:
    addition.add("shrimpmx/results/toy.py", OUTPUT)
    row = 'FORMS["toy"] = ("as a toy", "shrimpmx.results.toy:toy_of")'
    addition.insert("shrimpmx/cli/export.py", "def add_parser", f"{row}\n\n\n")
    addition.run("coalescing=disabled")
    assert addition.shrimpmx("export", "result", "--toy") == "a toy of smoke/pingpong"
    assert addition.touched == documented("an output of a result")
