"""A number that each rank passes on, an MPI program: the time of a hop.

Usage: shrimpmx mpirun -n 4 python scenarios/programs/ring.py [TURNS]
"""

import sys

import numpy as np
from mpi4py import MPI

TURNS = int(sys.argv[1]) if len(sys.argv) > 1 else 200

world = MPI.COMM_WORLD
right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
hops = np.zeros(1)
world.Barrier()
begin = MPI.Wtime()
for _ in range(TURNS):
    if world.rank == 0:
        world.Send(hops + 1, right)
        world.Recv(hops, left)
    else:
        world.Recv(hops, left)
        world.Send(hops + 1, right)
if world.rank == 0:
    assert hops[0] == TURNS * world.size
    print(f"{(MPI.Wtime() - begin) / TURNS / world.size * 1e6:.1f} µs a hop")
