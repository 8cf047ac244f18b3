import numpy as np
import numpy.typing as npt

def wake_ups(
    cpu_a: int, cpu_b: int, seconds: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
def at_once(seconds: float) -> npt.NDArray[np.float64]: ...
