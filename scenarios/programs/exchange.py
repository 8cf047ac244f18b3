"""Two ranks exchange messages of every size and check them: one's own program as a rank."""

import numpy

import shrimpmx

SIZES = (0, 32, 128, 4096, 32768, 1 << 20)

with shrimpmx.join() as rank:
    other = rank.number ^ 1
    for size in SIZES:
        mine = numpy.full(size, rank.number, numpy.uint8)
        theirs = numpy.empty(size, numpy.uint8)
        receive = rank.endpoint.irecv(theirs, match=size)
        rank.endpoint.send(mine, rank.partners[other], match=size)
        rank.endpoint.wait(receive)
        if (theirs != other).any():
            raise SystemExit(f"rank {rank.number}: wrong data in {size} B")
    rank.samples["bytes"] = sum(SIZES)
