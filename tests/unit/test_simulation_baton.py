"""What the process of a simulated rank may wish of its host, and what it may not."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.simulated import FOR_EVER_NS, Scene, burns

from shrimpmx.cluster.rank.baton import pipe_paths
from shrimpmx.errors import AgentError, DeadlineError
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.private import private_node
from shrimpmx.simulation.baton import Baton
from shrimpmx.simulation.outside import Outside

# As in cluster/rank/baton.pxd.
TURN, COMPUTE, SLEEP, POLL, OFFER, BLOCK, MOVE, NOTIFICATIONS, KNOCK, USED = range(10)
WISH = struct.Struct("@IIIIqQQ")
NAME = "rank0"
CPUS = (0, 1)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def noted(scene: Scene) -> list[int]:
    """When the process has asked for what all have used."""
    return []


@pytest.fixture
def baton(scene: Scene, noted: list[int], tmp_path: Path) -> Iterator[Baton]:
    """Its process has ended, or has written its next wish."""

    def note() -> None:
        noted.append(scene.control.now_ns())

    always, other = os.pipe()
    os.write(other, b"!")
    node = private_node(scene.control, NodeLayout(endpoints=1))
    made = Baton(
        node, tmp_path, NAME, CPUS, 50, always, lambda _began_ns: False, lambda: None, note
    )
    yield made
    made.close()
    os.close(always)
    os.close(other)


def write(directory: Path, *wishes: tuple[int, ...]) -> None:
    """Wishes of the process: what it wants, argument and detail of each; the endpoint whose event
    it awaits, plus 1, and how many it has taken.
    """
    with pipe_paths(directory, NAME)[0].open("wb") as pipe:
        for want, argument, detail, *awaited in wishes:
            pipe.write(WISH.pack(want, 0, *(awaited or (0, 0)), argument, 1, detail))


def test_what_it_wishes_is_done_until_it_ends(scene: Scene, baton: Baton, tmp_path: Path) -> None:
    write(tmp_path, (TURN, 0, 0), (COMPUTE, 3000, 0), (SLEEP, 5000, 0), (MOVE, 1, 0))
    assert baton.joins()
    task = scene.task("its task", baton.serve)
    assert scene.run() == [("its task", 8000)]
    assert task.host.usage()["task_clock_ns"] == 3000
    assert task.cpu is scene.world.cpu(1)


def test_a_knock_for_a_turn_that_has_come_is_nothing(
    scene: Scene, baton: Baton, tmp_path: Path
) -> None:
    write(tmp_path, (TURN, 0, 0), (KNOCK, 0, 0), (COMPUTE, 3000, 0), (KNOCK, 0, 0))
    assert baton.joins()
    scene.task("its task", baton.serve)
    assert scene.run() == [("its task", 3000)]


def test_a_knock_ends_what_its_process_waits_for(
    scene: Scene, baton: Baton, tmp_path: Path
) -> None:
    write(tmp_path, (TURN, 0, 0), (POLL, FOR_EVER_NS, 0), (KNOCK, 0, 0))
    assert baton.joins()
    task = scene.task("its task", baton.serve)
    outside = scene.world.outside = Outside(scene.world, lambda _: True)
    outside.add(0, baton, task)
    outside.note_threads(0)
    assert scene.run()[0][1] < FOR_EVER_NS


@pytest.mark.parametrize("want", [POLL, OFFER])
@pytest.mark.parametrize(
    ("awaited", "looks_early"),
    [
        ((0, 0), True),  # anything
        ((1, 0), False),  # an event, which does not come
        ((1, 7), True),  # ... which is there, since others were taken
    ],
)
def test_one_that_awaits_an_event_looks_at_nothing_else(
    want: int,
    awaited: tuple[int, int],
    looks_early: bool,
    scene: Scene,
    baton: Baton,
    tmp_path: Path,
) -> None:
    write(tmp_path, (TURN, 0, 0), (want, 5000, 0, *awaited))
    assert baton.joins()
    scene.task("its task", baton.serve)
    scene.task("another one", burns(1000), cpu=1)
    assert (dict(scene.run())["its task"] < 1000) == looks_early


@pytest.mark.parametrize(
    ("want", "argument", "detail"),
    [
        (10, 0, 0),
        (COMPUTE, -1, 0),
        (COMPUTE, (1 << 62) + 1, 0),
        (SLEEP, -1, 0),
        (BLOCK, 0, 2),
        (BLOCK, 0, 1 << 40),
        (BLOCK, 0, (1 << 64) - 4),
        (MOVE, 2, 0),
        (MOVE, -1, 0),
    ],
)
def test_what_there_is_not_ends_the_run(
    want: int, argument: int, detail: int, scene: Scene, baton: Baton, tmp_path: Path
) -> None:
    write(tmp_path, (TURN, 0, 0), (want, argument, detail))
    assert baton.joins()
    scene.task("its task", baton.serve)
    words = rf"rank0 made an unknown request .* \({want}, {argument}, {detail}, 0\)"
    with pytest.raises(AgentError, match=words) as caught:
        scene.run()
    assert caught.value.agent == NAME
    scene.world.close()


def test_what_processes_have_used_is_noted_at_once(
    scene: Scene, baton: Baton, noted: list[int], tmp_path: Path
) -> None:
    write(tmp_path, (TURN, 0, 0), (COMPUTE, 500, 0), (USED, 0, 0))
    assert baton.joins()
    scene.task("its task", baton.serve)
    scene.run()
    assert noted == [500]


def test_no_event_comes_to_an_endpoint_that_there_is_not(
    scene: Scene, baton: Baton, tmp_path: Path
) -> None:
    write(tmp_path, (TURN, 0, 0), (POLL, 5000, 0, 2, 0))
    assert baton.joins()
    scene.task("its task", baton.serve)
    with pytest.raises(AgentError, match=r"\(3, 5000, 0, 2\)"):
        scene.run()
    scene.world.close()


# More than the pipe holds turns of.
MANY = 10_000


@pytest.mark.parametrize("flood", [TURN, USED, COMPUTE, KNOCK])
def test_one_that_takes_no_turn_ends_the_run(
    flood: int, scene: Scene, noted: list[int], tmp_path: Path
) -> None:
    """It floods its host with wishes, and there is a limit to what the run may take."""
    looks = 0

    def attend(_began_ns: int) -> bool:
        nonlocal looks
        looks += 1
        if looks > MANY:
            raise DeadlineError("so long it may take")
        return True

    node = private_node(scene.control, NodeLayout(endpoints=1))
    never, other = os.pipe()
    made = Baton(
        node, tmp_path, NAME, CPUS, 50, never, attend, lambda: None, lambda: noted.append(0)
    )

    def flooding() -> None:
        with contextlib.suppress(BrokenPipeError):  # the run has ended
            write(tmp_path, (TURN, 0, 0), *[(flood, 0, 0)] * 2 * MANY)

    rank = threading.Thread(target=flooding)
    rank.start()
    try:
        assert made.joins()
        scene.task("its task", made.serve)
        with pytest.raises((AgentError, DeadlineError)):
            scene.run()
        scene.world.close()
    finally:
        made.close()  # the thread's write ends, as nobody reads
        rank.join()
        os.close(never)
        os.close(other)


def test_one_that_ends_before_its_first_wish_never_joins(baton: Baton) -> None:
    assert not baton.joins()
