"""The papers' scenarios with a C program in place of the application that comes with shrimpmx."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.compiled import compiled

from shrimpmx.cli import main
from shrimpmx.mpi import library

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(
    not library.interpreter(), reason="this Python has no shared library"
)

RANKS = 4
HEAD = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
"""
# IMB's, by the same options: it reads its lengths twice, as IMB-MPI1 does.
ALLTOALL = r"""
int main(int argc, char **argv) {
    int length = 0, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int word = 2; word < argc; word++)
        for (int time = 0; time < 2 && strcmp(argv[word - 1], "-msglen") == 0; time++) {
            FILE *lengths = fopen(argv[word], "r");
            if (!lengths || fscanf(lengths, "%d", &length) != 1) return 3;
            fclose(lengths);
        }
    if (strcmp(argv[1], "Alltoall")) return 4;
    char *mine = calloc(size, length), *theirs = calloc(size, length);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    for (int call = 0; call < 20; call++)
        MPI_Alltoall(mine, length, MPI_BYTE, theirs, length, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Pcontrol(0);
    puts("a table");
    return MPI_Finalize();
}
"""
# NPB's EP as its messages go: three sums at the end.
EP = r"""
int main(int argc, char **argv) {
    double counts[10] = {0};
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    int lengths[] = LENGTHS;
    for (int sum = 0; sum < sizeof lengths / sizeof *lengths; sum++)
        MPI_Allreduce(MPI_IN_PLACE, counts, lengths[sum], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Pcontrol(0);
    return MPI_Finalize();
}
"""


def sent(scenario: str, output: Path, *settings: str) -> list[dict[str, int]]:
    """Data messages by rank, as the counters have them."""
    size = (f"ranks={RANKS}", "cores=2", "repeats=1", *settings)
    words = [word for setting in size for word in ("--set", setting)]
    run = ["run", scenario, "--engine", "simulated", "--output", str(output)]
    assert main([*run, *words]) == 0
    [point] = json.loads((output / "run.json").read_text())["points"]
    return [_data(point["counters"][f"rank{number}"]) for number in range(RANKS)]


def _data(counters: dict[str, Any]) -> dict[str, int]:
    kinds = ("tiny", "small", "medium", "rndv")
    return {
        name: count
        for name, count in counters.items()
        if name.startswith(("send_", "shared_")) and any(kind in name for kind in kinds)
    }


@pytest.mark.nightly("each benchmark", but=1)
@pytest.mark.parametrize("size_bytes", [100, 3000, 100_000])
def test_a_program_in_place_of_imb_sends_as_many_messages(size_bytes: int, tmp_path: Path) -> None:
    program = compiled(tmp_path, HEAD + ALLTOALL)
    words = f"arguments=Alltoall -npmin {RANKS} -msglen /dev/fd/3 -iter 20 -sync off"
    place = (words, f"size_bytes={size_bytes}", "nic=ethernet", "irq_binding=0")
    settings = (*place, "copy_offload=false")
    own = sent("multiqueue/fig5_alltoall", tmp_path / "own", *settings)
    c = sent("multiqueue/fig5_alltoall", tmp_path / "c", *settings, f"program={program}")
    assert sum(own[0].values()) >= 60
    for name in own[0]:
        if "tiny" not in name:  # of barriers, too, which overlap with the calls
            assert [counts[name] for counts in c] == [counts[name] for counts in own]


@pytest.mark.nightly("each benchmark")
def test_a_program_of_each_kernel_in_place_of_nas(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its path has words of the arguments; it may ignore these."""
    place = ("arguments=ep S", "coalescing=timeout")
    own = sent("coalescing/table4_nas", tmp_path / "own", *place)
    program = compiled(tmp_path, HEAD + EP.replace("LENGTHS", "{1, 1, 10, 1}"))
    Path(program).rename(tmp_path / "ep.S.x")
    named = f"program={tmp_path}/{{1}}.{{2}}.x"
    c = sent("coalescing/table4_nas", tmp_path / "c", *place, named)
    small = [[counts["send_small"], counts["shared_small"]] for counts in own]
    assert sum(map(sum, small)) > 0
    assert [[counts["send_small"], counts["shared_small"]] for counts in c] == small
    assert main(["run", "coalescing/table4_nas", "--set", named, "--set", "arguments=cg S"]) == 2
    assert f"there is no program '{tmp_path}/cg.S.x'" in capfd.readouterr().err
