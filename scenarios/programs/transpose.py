"""Large blocks that all ranks exchange with all others while they compute, an MPI program: each
interrupt takes its time from the computing.

Usage: shrimpmx explore -n 2 python scenarios/programs/transpose.py
"""

import numpy as np
from mpi4py import MPI

TIMES, BLOCK_BYTES, STEPS = 40, 1 << 20, 10

world = MPI.COMM_WORLD
mine = np.full((world.size, BLOCK_BYTES), world.rank, dtype=np.uint8)
theirs = np.empty_like(mine)
own = np.random.default_rng(world.rank).random((100, 100))
for _ in range(TIMES):
    arriving = world.Ialltoall(mine, theirs)
    for _ in range(STEPS):
        np.einsum("ij,jk->", own, own)
    arriving.Wait()
assert (theirs == np.arange(world.size, dtype=np.uint8)[:, None]).all()
