"""A rank that waits for requests, which come rarely, an MPI program.

Usage: shrimpmx explore -n 2 --for cpu python scenarios/programs/server.py
"""

import time

import numpy as np
from mpi4py import MPI

REQUESTS, PAUSE_S = 200, 0.005

world = MPI.COMM_WORLD
value = np.zeros(1)
if world.rank == 0:
    for _ in range(REQUESTS * (world.size - 1)):
        status = MPI.Status()
        world.Recv(value, status=status)
        world.Send(value + 1, status.source)
else:
    for _ in range(REQUESTS):
        time.sleep(PAUSE_S)
        world.Sendrecv(value.copy(), 0, recvbuf=value, source=0)
    assert value[0] == REQUESTS
