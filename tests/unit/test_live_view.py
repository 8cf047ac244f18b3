"""Rates from two readings of a run: exact, since both are made up here."""

from __future__ import annotations

import dataclasses

import pytest
from rich.console import Console

from shrimpmx.cli.live_tables import Snapshot, live_tables, rate_words, share_out
from shrimpmx.cluster.live.view import (
    AgentReading,
    EndpointReading,
    LiveView,
    NodeReading,
    ProcessReading,
    Reading,
    is_drop,
    live_view,
)

SEAT = EndpointReading("rank0", 1, 1)
NOW, POSITION = "2026-01-02T03:04:05.678+00:00", "point 3 of 12, run 2 of 6"
IRQ0 = {"recv_packets": 0, "handover_event": 0, "recv_at_process": 0, "drop_bad_session": 5}


def a_reading(
    seconds: float = 0.0,
    interrupts: tuple[tuple[int, ...], ...] = ((0, 0), (0, 0)),
    ran_s: float | None = 0.0,
    queued_s: float | None = 0.0,
    account: dict[str, int] | None = None,
    **counters: int,
) -> Reading:
    """A node of two cores and two rx queues; `counters` are those of core 0's handler."""
    ran_ns = None if ran_s is None else int(ran_s * 1e9)
    queued_ns = None if queued_s is None else int(queued_s * 1e9)
    processes = (
        ProcessReading("nic", 10, 0, "running", {}, ran_ns, queued_ns),
        ProcessReading("node0.irq0", 11, 0, "running", {}, ran_ns, queued_ns),
        ProcessReading("node0.irq1", 12, 1, "running", {}, ran_ns, queued_ns),
        ProcessReading("rank0", 13, 1, "running", account or {}, ran_ns, queued_ns),
    )
    agents = {
        "node0.nic": AgentReading("nic", "nic", {"rx_packets": counters.pop("rx_packets", 0)}),
        "node0.irq0": AgentReading("irq", "node0.irq0", {**IRQ0, **counters}),
        "node0.irq1": AgentReading("irq", "node0.irq1", IRQ0),
        "rank0": AgentReading("rank", "rank0", {"recv_messages": counters.get("recv_packets", 0)}),
    }
    node = NodeReading(interrupts, ((0,), (0, 1)), (3, 0), (SEAT,))
    return Reading(int(seconds * 1e9), processes, agents, {0: node})


def test_rates_are_differences_by_the_runs_clock() -> None:
    before = a_reading(10, ((100, 7), (0, 0)), recv_packets=50)
    after = a_reading(
        12,
        ((110, 7), (0, 4)),
        recv_packets=450,
        recv_other=2,
        handover_event=30,
        handover_endpoint=8,
        recv_at_process=10,
        rx_packets=400,
    )
    view = live_view(before, after)
    assert view.seconds == 2
    first, second = view.cores
    assert (first.interrupts, first.by_vector) == (5, {0: 5})
    assert (second.interrupts, second.by_vector) == (2, {1: 2})
    assert (first.packets, first.handovers, first.at_process) == (201, 19, 0.25)
    assert (second.packets, second.handovers, second.at_process) == (0, 0, None)
    assert [(q.interrupts, q.depth, q.affinity) for q in view.queues] == [
        (5, 3, (0,)),
        (2, 0, (0, 1)),
    ]
    assert [queue.endpoints for queue in view.queues] == [(), (SEAT,)]
    rank, nic = view.processes
    assert (rank.name, rank.received) == ("rank0", 200)
    assert (nic.name, nic.received) == ("nic", 200)


def test_shares_of_time_of_a_process() -> None:
    before = a_reading(0, ran_s=5, queued_s=1, account={"spin_ns": 0, "waits": 10})
    after = a_reading(4, ran_s=6, queued_s=3, account={"spin_ns": 500_000_000, "waits": 90})
    rank = live_view(before, after).processes[0]
    assert (rank.busy, rank.queued, rank.asleep) == (0.25, 0.5, 0.25)
    assert (rank.spinning, rank.waits) == (0.125, 20)
    gone = live_view(before, a_reading(4, ran_s=None, queued_s=None)).processes[0]
    assert (gone.busy, gone.queued, gone.asleep) == (None, None, None)
    unborn = a_reading(0, ran_s=None, queued_s=None)
    begun = live_view(unborn, a_reading(4, ran_s=1, queued_s=2)).processes[0]
    assert (begun.busy, begun.queued, begun.asleep) == (0.25, 0.5, 0.25)


def test_drops_are_those_that_go_up_the_most_frequent_first() -> None:
    after = a_reading(2, drop_bad_session=7, drop_bad_endpoint=10, rps_backlog_full=2)
    drops = live_view(a_reading(drop_bad_endpoint=0, rps_backlog_full=0), after).drops
    assert list(drops.items()) == [
        ("drop_bad_endpoint", 5),
        ("drop_bad_session", 1),
        ("rps_backlog_full", 1),
    ]


@pytest.mark.parametrize(
    ("counter", "expected"),
    [
        *(("drop_bad_datalen", True), ("rx_drop_ring_full", True), ("unexp_eventq_full", True)),
        *(("rps_backlog_full", True), ("tx_no_route", True)),
        *(("dma_ring_full", False), ("recv_packets", False), ("send_no_tx_slot", False)),
    ],
)
def test_what_counts_as_a_drop(counter: str, expected: bool) -> None:
    assert is_drop(counter) is expected


def test_a_node_whose_nic_interrupts_nobody_has_no_cores_and_no_queues() -> None:
    def without_handlers(reading: Reading) -> Reading:
        agents = {n: agent for n, agent in reading.agents.items() if agent.kind != "irq"}
        node = dataclasses.replace(reading.nodes[0], affinities=(), depths=())
        return dataclasses.replace(reading, agents=agents, nodes={0: node})

    view = live_view(without_handlers(a_reading()), without_handlers(a_reading(1)))
    assert (view.cores, view.queues) == ((), ())


def test_a_nic_that_handles_packets_itself_is_still_shown() -> None:
    def handling(reading: Reading) -> Reading:
        counters = {"mx_handled": 2 * reading.now_ns // 10**9}
        agents = {
            "node0.nic": AgentReading("nic", "nic", counters),
            "node0.driver": AgentReading("irq", "nic", IRQ0),
        }
        return dataclasses.replace(reading, agents=agents, processes=reading.processes[:1])

    [nic] = live_view(handling(a_reading()), handling(a_reading(2))).processes
    assert (nic.name, nic.kind, nic.received) == ("nic", "nic", 2)


def test_no_time_between_two_readings_is_refused() -> None:
    with pytest.raises(ValueError, match="no rate"):
        live_view(a_reading(3), a_reading(3))


@pytest.mark.parametrize(
    ("wanted", "room", "given"),
    [
        ([2, 2, 3], 20, [2, 2, 3]),
        ([16, 2, 16], 18, [8, 2, 8]),
        ([16, 16, 16], 19, [6, 6, 7]),
        ([5], 3, [3]),
        ([4, 4], 0, [1, 1]),
        ([], 5, []),
    ],
)
def test_lines_are_shared_out(wanted: list[int], room: int, given: list[int]) -> None:
    assert share_out(wanted, room) == given


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        *((0, "0"), (0.5, "0.5"), (9.94, "9.9"), (9.96, "10"), (1234, "1,234")),
        *((99_999, "99,999"), (123_456, "123k"), (999_499, "999k"), (1_250_000, "1.25M")),
    ],
)
def test_rates_are_short(rate: float, words: str) -> None:
    assert rate_words(rate) == words


def a_large_view() -> LiveView:
    """Two nodes of eight cores and queues, sixteen ranks: core 5 of node 1 is the busiest."""
    view = live_view(a_reading(), a_reading(1, drop_bad_session=1_000_000))
    places = [(node, number) for node in (0, 1) for number in range(8)]
    return dataclasses.replace(
        view,
        cores=tuple(
            dataclasses.replace(
                view.cores[0],
                node=node,
                core=core,
                busy=1.0,
                at_process=1.0,
                interrupts=123_456.0,
                packets=1_234_567.0 + ((node, core) == (1, 5)),
                handovers=654_321.0,
                by_vector=dict.fromkeys(range(8), 99_999.0),
            )
            for node, core in places
        ),
        queues=tuple(
            dataclasses.replace(
                view.queues[0],
                node=node,
                queue=queue,
                interrupts=123_456.0,
                affinity=(0, 2, 4, 6),
                endpoints=(SEAT,) * 8,
            )
            for node, queue in places
        ),
        processes=tuple(
            dataclasses.replace(
                view.processes[0], name=f"rank{n}", busy=1.0, waits=99_999.0, received=123_456.0
            )
            for n in range(16)
        ),
    )


def lines_of(width: int, height: int | None) -> list[str]:
    console = Console(width=width, height=100)
    with console.capture() as shown:
        console.print(
            live_tables(
                Snapshot(NOW, "12345678", "shrimpmx run x", 59.0, 2, POSITION, a_large_view()),
                height,
                width,
            )
        )
    return shown.get().rstrip("\n").split("\n")


def test_a_large_cluster_fits_a_small_terminal_the_busiest_first() -> None:
    lines = lines_of(80, 24)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert sum("more" in line for line in lines) == 3
    heads = (
        "run 12345678",
        "command  shrimpmx run x",
        f"sweep    {POSITION}",
        "drops/s  1.00M",
        "core ",
        "rx queue",
        "process",
    )
    for head in heads:
        assert any(line.startswith(head) for line in lines), head
    assert any(line.startswith("node1.core5") for line in lines)


def test_a_tall_terminal_shows_all() -> None:
    for lines in (lines_of(200, 60), lines_of(80, None)):
        assert not any("more" in line for line in lines)
        assert sum(line.startswith("node") for line in lines) == 32
        assert sum(line.startswith("rank") for line in lines) == 16


def test_a_narrow_screen_has_fewer_columns_each_whole() -> None:
    lines = lines_of(60, 24)
    assert max(map(len, lines)) <= 60
    assert lines[0].endswith("q quits")
    heads = [line.split() for line in lines if line.startswith(("core ", "process "))]
    assert {"busy", "irq/s", "packets/s"} <= set(heads[0])
    assert {"state", "busy", "received/s"} <= set(heads[1])
    assert not any("\u2026" in line for line in lines if ".rx" not in line)


def test_a_wide_screen_names_pids() -> None:
    lines = lines_of(100, None)
    assert [line.split()[1] for line in lines if line.startswith(("core ", "process "))] == [
        *("pid", "pid")
    ]
    assert [line.split()[1] for line in lines if line.startswith("rank0")] == ["13"]
    assert "q quits" not in lines[0]


def test_an_mpi_rank_that_waits_long_says_for_what() -> None:
    before, after = a_reading(10), a_reading(12)
    words = "MPI_Recv from rank 1, tag 3, in MPI_COMM_WORLD"
    waiting = dataclasses.replace(after.processes[3], wait=(words, 31.4))
    view = live_view(before, dataclasses.replace(after, processes=(*after.processes[:3], waiting)))
    assert (view.processes[0].waits_for, view.processes[0].waits_s) == (words, 31.4)
    console = Console(width=200)
    with console.capture() as shown:
        console.print(live_tables(Snapshot(NOW, "1", "x", 59.0, 1, "", view), None, 200))
    assert ["rank0", "31", "s", *words.split()] in map(str.split, shown.get().splitlines())


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (("ready", "starting"), "rank1 to be ready"),
        (("running", "running"), ""),
        (("done", "running"), "rank1 to finish"),
        (("done", "done"), ""),
    ],
)
def test_the_ranks_that_others_wait_for(states: tuple[str, str], words: str) -> None:
    before, after = a_reading(10), a_reading(12)
    agent = after.agents["rank0"]
    both = {**after.agents, "rank1": dataclasses.replace(agent, process="rank1")}
    ranks = [
        dataclasses.replace(after.processes[3], name=f"rank{number}", state=state)
        for number, state in enumerate(states)
    ]
    readings = [
        dataclasses.replace(each, agents=both, processes=(*after.processes[:3], *ranks))
        for each in (before, after)
    ]
    assert live_view(*readings).awaited == words
