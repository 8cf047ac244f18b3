"""Topologies of MPI in mpi4py programs; each program checks what it gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

HEAD = f"""{MPI4PY}
import ctypes
import os

library = ctypes.CDLL(os.environ["MPI4PY_LIBMPI"])

def class_of(call, *arguments):
    try:
        call(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()

def class_of_query(comm, name):
    numbers = (ctypes.c_int * 8)()
    return MPI.Get_error_class(library["MPI_" + name](comm.handle, numbers, numbers, numbers))
"""
PROGRAMS = {
    "a grid": """
rows, columns = min(size, 2), max(1, size // 2)
grid = world.Create_cart([rows, columns], [True, False], reorder=True)
assert (grid == MPI.COMM_NULL) == (rank >= rows * columns)
if grid != MPI.COMM_NULL:
    row, column = divmod(rank, columns)
    assert grid.rank == rank and grid.topology == MPI.CART
    assert grid.topo == ([rows, columns], [1, 0], [row, column])
    assert [grid.Get_coords(each) for each in range(grid.size)] == [
        [each // columns, each % columns] for each in range(grid.size)
    ]
    assert grid.Get_cart_rank([row - 3 * rows, column]) == rank
    assert grid.Shift(0, 1) == 2 * ((row + 1) % rows * columns + column,)
    assert grid.Shift(0, 2**31 - 1) == tuple(
        (row + way * (2**31 - 1)) % rows * columns + column for way in (-1, 1)
    )
    assert grid.Shift(1, 1) == (
        rank - 1 if column > 0 else MPI.PROC_NULL,
        rank + 1 if column + 1 < columns else MPI.PROC_NULL,
    )
    assert class_of(grid.Get_cart_rank, [row, columns]) == MPI.ERR_ARG
    assert class_of(grid.Get_coords, grid.size) == MPI.ERR_RANK
    assert class_of(grid.Shift, 2, 1) == MPI.ERR_DIMS
    for name in ("Graphdims_get", "Dist_graph_neighbors_count"):
        assert class_of_query(grid, name) == MPI.ERR_TOPOLOGY
    grid.Free()
for dims in ([size + 1], [0], [-1, -size], [2**16, 2**16]):
    assert class_of(world.Create_cart, dims) == MPI.ERR_DIMS
    assert class_of(world.Cart_map, dims) == MPI.ERR_DIMS
assert world.Cart_map([size]) == rank
assert world.Cart_map([1]) == (0 if rank == 0 else MPI.UNDEFINED)
assert class_of_query(world, "Cartdim_get") == MPI.ERR_TOPOLOGY
point = world.Create_cart([])
assert (point == MPI.COMM_NULL) == (rank > 0)
if rank == 0:
    assert (point.topo, point.Get_coords(0), point.Get_cart_rank([])) == (([], [], []), [], 0)
    point.Free()
""",
    "parts of a grid": """
grid = world.Create_cart([1, size, 1], [True, False, True])
line = grid.Sub([True, True, False])
assert (line.dims, line.periods, line.coords) == ([1, size], [1, 0], [0, rank])
assert (line.rank, line.allreduce(1)) == (rank, size)
point = grid.Sub([True, False, True])
assert (point.dims, point.periods, point.size) == ([1, 1], [1, 1], 1)
nothing = grid.Sub([False, False, False])
assert (nothing.dim, nothing.size, nothing.topology) == (0, 1, MPI.CART)
# Backwards: the rank in a part is that of the coordinates, not that of the parent.
half = world.Split(0, -rank).Create_cart([size], [True]).Sub([True])
assert half.Get_coords(half.rank) == [size - 1 - rank]
for comm in (nothing, point, line, grid, half):
    comm.Free()
""",
    "a topology outlives the communicator it was made for": """
grid = world.Create_cart([size], [True])
copies = [grid.Dup() for _ in range(3)]
grid.Free()
graph = world.Create_graph([1], [0])
assert (graph == MPI.COMM_NULL) == (rank > 0)
for copy in copies:
    assert copy.topology == MPI.CART and copy.topo == ([size], [1], [rank])
    plain = copy.Split(0)
    assert plain.topology == MPI.UNDEFINED
    plain.Free(), copy.Free()
if rank == 0:
    graph.Free()
""",
    "a graph": """
# Each node to all nodes below it, and twice to itself.
edges = [list(range(node)) + [node, node] for node in range(size)]
index = list(np.cumsum([len(each) for each in edges]))
graph = world.Create_graph(index, sum(edges, []), reorder=True)
assert (graph.topology, graph.topo) == (MPI.GRAPH, (index, sum(edges, [])))
assert (graph.nnodes, graph.nedges, graph.neighbors) == (size, index[-1], edges[rank])
assert [graph.Get_neighbors(node) for node in range(size)] == edges
assert class_of(graph.Get_neighbors_count, size) == MPI.ERR_RANK
assert class_of_query(graph, "Cartdim_get") == MPI.ERR_TOPOLOGY
assert world.Graph_map([1], [0]) == (0 if rank == 0 else MPI.UNDEFINED)
assert world.Create_graph([], []) == MPI.COMM_NULL
assert class_of(world.Create_graph, [1], [1]) == MPI.ERR_RANK
assert class_of(world.Create_graph, [1, 0], [0]) == MPI.ERR_ARG
assert class_of(world.Create_graph, (size + 1) * [1], [0]) == MPI.ERR_ARG
numbers = (ctypes.c_int * 99)()
for call in ("Graph_get", "Graph_neighbors"):
    code = library["MPI_" + call](graph.handle, 0, 0, numbers, numbers)
    assert MPI.Get_error_class(code) == MPI.ERR_ARG
graph.Free()
""",
    "a distributed graph": """
ring = world.Create_dist_graph_adjacent([left, rank], [right, rank], [3, 0], [4, 0])
assert ring.topology == MPI.DIST_GRAPH
assert ring.Get_dist_neighbors() == ([left, rank], [right, rank], ([3, 0], [4, 0]))
numbers = (ctypes.c_int * 4)(*4 * [-7])
weights, none = (ctypes.c_int * 4)(*4 * [-7]), ctypes.c_size_t.in_dll(library, "MPI_UNWEIGHTED")
# Of a list that is longer, the first part.
assert library.MPI_Dist_graph_neighbors(
    ring.handle, 1, numbers, ctypes.c_void_p(none.value), 1, weights, weights
) == 0
assert (numbers[:2], weights[:2]) == ([left, -7], [4, -7])
assert class_of_query(ring, "Cartdim_get") == MPI.ERR_TOPOLOGY
create = world.Create_dist_graph_adjacent
assert class_of(create, [size], [0]) == MPI.ERR_RANK
assert class_of(create, [0], [-1]) == MPI.ERR_RANK
assert class_of(create, [0], [0], [0], [-1]) == MPI.ERR_ARG
ring.Free()
""",
    "a distributed graph that other ranks describe": """
# Rank 0 names no edge; each other one those of the rank below it, the last one also its own.
mine = [(node, (node + step) % size, 10 * node + step)
        for node in range(size) for step in (0, 1, 1, 2)
        if rank == min(node + 1, size - 1)]
graph = world.Create_dist_graph(
    [node for node, _, _ in mine[::4]], [4] * (len(mine) // 4), [to for _, to, _ in mine],
    [weight for _, _, weight in mine],
)
sources, targets, weights = graph.Get_dist_neighbors()
assert targets == [(rank + step) % size for step in (0, 1, 1, 2)]
assert weights[1] == [10 * rank + step for step in (0, 1, 1, 2)]
assert sorted(zip(sources, weights[0])) == sorted(
    ((rank - step) % size, 10 * ((rank - step) % size) + step) for step in (0, 1, 1, 2)
)
copy = graph.Dup()
graph.Free()
assert copy.Get_dist_neighbors() == (sources, targets, weights)
copy.Free()
plain = world.Create_dist_graph([rank, rank], [0, 1], [right])
assert plain.Get_dist_neighbors() == ([left], [right], None)
plain.Free()
empty = world.Create_dist_graph([], [], [], MPI.WEIGHTS_EMPTY)
assert empty.Get_dist_neighbors_count() == (0, 0, True)
empty.Free()
assert class_of(world.Create_dist_graph, [size], [0], []) == MPI.ERR_RANK
assert class_of(world.Create_dist_graph, [0, 0], [2, -1], [0]) == MPI.ERR_ARG
""",
    "neighbours in a grid": """
# In a dimension of 1 or 2 both neighbours are one process: what goes left comes from the right.
for dims, periods in (([size], [True]), ([size], [False]), ([size, 1], [True, True]),
                      ([1, size, 1], [False, True, True])):
    grid = world.Create_cart(dims, periods)
    ways = [grid.Shift(dimension, 1)[way] for dimension in range(len(dims)) for way in (0, 1)]
    for count in (0, 1, 1000, 20_000):
        # Which rank sent it, and in which of its directions.
        mine = np.array([[10 * rank + way] * count for way in range(len(ways))])
        theirs = np.full_like(mine, -1)
        grid.Neighbor_alltoall(mine, theirs)
        expected = [-1 if other == MPI.PROC_NULL else 10 * other + (way ^ 1)
                    for way, other in enumerate(ways)]
        assert (theirs == np.array(expected)[:, None]).all(), (dims, theirs, expected)
        theirs[:] = -1
        grid.Neighbor_allgather(mine[0], theirs)
        assert (theirs == [[-1 if other == MPI.PROC_NULL else 10 * other] for other in ways]).all()
    # Of an element with a gap the gap stays, and all of it where there is no neighbour.
    spaced = MPI.INT64_T.Create_vector(2, 1, 2).Commit()
    theirs = np.full((len(ways), 3), -1)
    grid.Neighbor_alltoall([np.repeat(mine[:, :1], 2, 1).copy(), 2, MPI.INT64_T],
                           [theirs, 1, spaced])
    assert (theirs == [[each, -1, each] for each in expected]).all()
    spaced.Free(), grid.Free()
""",
    "neighbours in graphs": """
# To each of a node's neighbours as many elements as it has place in the list, and one less.
for edges in ([[(node + 1) % size, node, (node + 1) % size] for node in range(size)],
              [[(node + step) % size for step in range(node)] for node in range(size)]):
    sources = [other for other in range(size) for to in edges[other] if to == rank]
    sent = [(other, place) for other in range(size)
            for place, to in enumerate(edges[other]) if to == rank]
    graph = world.Create_dist_graph_adjacent(sources, edges[rank])
    counts = list(range(len(edges[rank])))
    mine = np.array([100 * rank + place for place in counts for _ in range(place)], "i4")
    into = [place for _, place in sent]
    # Backwards, with a gap behind each.
    theirs = np.full(sum(into) + len(into), -1, "i4")
    places = [sum(into[turn + 1:]) + len(into[turn + 1:]) for turn in range(len(into))]
    graph.Neighbor_alltoallv([mine, counts, MPI.INT32_T], [theirs, into, places, MPI.INT32_T])
    expected = [[100 * other + place] * place + [-1] for other, place in sent][::-1]
    assert (theirs == sum(expected, [])).all()
    request = graph.Ineighbor_alltoallw(
        [mine, counts, [4 * sum(counts[:place]) for place in counts], [MPI.INT32_T] * len(counts)],
        [theirs, into, [4 * place for place in places], [MPI.INT32_T] * len(into)],
    )
    request.Wait()
    assert (theirs == sum(expected, [])).all()
    lengths = np.array(graph.neighbor_allgather(rank + 1), int)
    assert list(lengths) == [other + 1 for other in sources]
    theirs = np.full(lengths.sum(), -1)
    request = graph.Ineighbor_allgatherv(np.full(rank + 1, rank), [theirs, lengths])
    request.Wait()
    assert (theirs == np.repeat(sources, lengths)).all()
    graph.Free()
ring = world.Create_graph(list(range(2, 2 * size + 2, 2)),
                          [other % size for node in range(size) for other in (node - 1, node + 1)])
assert ring.neighbor_alltoall([("down", rank), ("up", rank)]) == (
    # Messages of one process are received in the order in which they are sent.
    [("down", left), ("up", right)] if size < 3 else [("up", left), ("down", right)]
)
ring.Free()
assert MPI.Get_error_class(library.MPI_Neighbor_allgather(
    None, 0, MPI.BYTE.handle, None, 0, MPI.BYTE.handle, world.handle)) == MPI.ERR_TOPOLOGY
""",
}


@pytest.mark.nightly("each program on each engine", but=2)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_programs(size: int, tmp_path: Path) -> None:
    program = mpi_program(tmp_path, "".join(PROGRAMS.values()), HEAD)
    assert main(["mpirun", "-n", str(size), *program]) == 0
