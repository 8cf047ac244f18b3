import numpy as np
import numpy.typing as npt

def per_packet(steering: str, seconds: float) -> npt.NDArray[np.float64]: ...
