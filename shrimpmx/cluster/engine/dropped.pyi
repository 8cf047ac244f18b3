from collections.abc import Callable
from typing import Any

from shrimpmx.cluster.engine.ending import FirstInterrupt

def raising_again(
    first: FirstInterrupt, otherwise: Callable[[Any], Any]
) -> Callable[[Any], Any]: ...
