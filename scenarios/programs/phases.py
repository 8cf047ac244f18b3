"""Two ranks take turns at many small messages and a few large ones: one's own program as a rank.

Usage: shrimpmx run program=scenarios/programs/phases.py
"""

import numpy

import shrimpmx

ROUNDS, SMALL, LARGE = 3, 40, 4
SIZES = {SMALL: 0, LARGE: 1 << 20}

with shrimpmx.join() as rank:
    other = rank.number ^ 1
    endpoint, partner = rank.endpoint, rank.partners[other]
    buffers = {
        size: (numpy.full(size, rank.number, numpy.uint8), numpy.empty(size, numpy.uint8))
        for size in SIZES.values()
    }
    for _ in range(ROUNDS):
        for count, size in SIZES.items():
            mine, theirs = buffers[size]
            # To and fro: rank 0 sends first.
            for _ in range(count):
                receive = endpoint.irecv(theirs, match=size)
                if rank.number == 0:
                    endpoint.send(mine, partner, match=size)
                endpoint.wait(receive)
                if rank.number == 1:
                    endpoint.send(mine, partner, match=size)
                if (theirs != other).any():
                    raise SystemExit(f"rank {rank.number}: wrong data in {size} B")
