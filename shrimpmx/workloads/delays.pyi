import numpy as np
from numpy.typing import NDArray

def draw_delays(low_ns: int, high_ns: int, seed: int, count: int) -> NDArray[np.int64]: ...
def draw_arrivals(
    arrivals: str, mean_ns: int, limit_ns: int, seed: int, count: int
) -> NDArray[np.int64]: ...
