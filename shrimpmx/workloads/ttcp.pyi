import numpy as np
from numpy.typing import NDArray

from shrimpmx.sockets.stream import Stream

def send_messages(stream: Stream, size_bytes: int, count: int) -> None: ...
def receive_messages(
    stream: Stream, size_bytes: int, count: int
) -> dict[str, NDArray[np.int64]]: ...
