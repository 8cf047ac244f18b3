"""Ranks that poll rx rings: what they do not go with is refused alike wherever a run is checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.experiment.point import PointParameters
from shrimpmx.mx.binding import board_of
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.workload import WorkloadParameters

TWO_CORES = HostParameters(cores=2)
COALESCING = ["watchdog", "irq-suspend"]


def cluster(nic: NicParameters, move_every: int = 0, process_binding: str = "none") -> ClusterSpec:
    """Two ranks on node 0, of which the second moves."""
    moving = RankSpec(0, "pingpong", options={"move_every": move_every})
    return ClusterSpec(
        ranks=(RankSpec(0, "pingpong"), moving),
        nic=nic,
        host=TWO_CORES,
        mx=MxParameters(process_binding=process_binding),
    )


def refusals(nic: NicParameters, move_every: int) -> tuple[str, str]:
    """Of a cluster, and of a point of a sweep."""
    with pytest.raises(InputError) as of_cluster:
        cluster(nic, move_every)
    with pytest.raises(ValidationError) as of_point:
        PointParameters(nic=nic, host=TWO_CORES, workload=WorkloadParameters(move_every=move_every))
    return str(of_cluster.value), str(of_point.value.errors()[0]["ctx"]["error"])


@pytest.mark.parametrize("steering", ["rss", "arfs"])
@pytest.mark.parametrize("coalescing", COALESCING)
def test_a_rank_polls_the_queue_that_its_frames_come_by(coalescing: str, steering: str) -> None:
    nic = NicParameters(coalescing=coalescing, rx_queues=2, steering=steering)
    told, also = refusals(nic, 0)
    assert f"steering '{steering}' lacks: set" in told
    assert told == also
    cluster(nic.model_copy(update={"rx_queues": 1}))
    cluster(nic.model_copy(update={"steering": "endpoint"}))
    cluster(nic.model_copy(update={"coalescing": "stream"}))


@pytest.mark.parametrize("coalescing", COALESCING)
def test_a_rank_that_polls_does_not_move(coalescing: str) -> None:
    told, also = refusals(NicParameters(coalescing=coalescing), 5)
    assert told.endswith("move_every must be 0")
    assert told == also
    cluster(NicParameters(), 5)


@pytest.mark.parametrize("coalescing", COALESCING)
def test_a_rank_that_polls_is_bound_to_one_core(coalescing: str, tmp_path: Path) -> None:
    path = tmp_path / "bindings"
    binding = f"file:{path}"
    path.write_text(f"board {board_of(0)} ep 1 irq 5 mask 3\n")
    cluster(NicParameters(), process_binding=binding)
    words = f"coalescing '{coalescing}' .* gives rank 1 cores 0-1: name one core"
    with pytest.raises(InputError, match=words):
        cluster(NicParameters(coalescing=coalescing), process_binding=binding)
    path.write_text(f"board {board_of(0)} ep 1 irq 5 mask 2\n")
    cluster(NicParameters(coalescing=coalescing), process_binding=binding)
