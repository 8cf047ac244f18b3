from typing_extensions import Buffer

from shrimpmx.mx.library import Library

def reach_buffer(library: Library, data: Buffer) -> tuple[str, bool, bool, bool] | str: ...
