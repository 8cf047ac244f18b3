"""Ranks that compute and then add up their results, an MPI program: with more ranks than CPUs a
rank that waits has to leave its CPU to one that computes.

Usage: shrimpmx explore -n 4 python scenarios/programs/crowd.py
"""

import numpy as np
from mpi4py import MPI

ROUNDS = 60

world = MPI.COMM_WORLD
own = np.random.default_rng(world.rank).random((200, 200))
total = np.zeros(1)
for _ in range(ROUNDS):
    part = np.einsum("ij,jk->", own, own)
    world.Allreduce(part, total)
