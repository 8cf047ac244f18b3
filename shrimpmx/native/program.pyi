from collections.abc import Collection, Mapping, Sequence

def start_program(
    words: Sequence[str],
    environment: Mapping[str, str],
    unblocked: Collection[int],
    *,
    directory: str = "",
    own_group: bool = False,
    numbers: Collection[tuple[int, int]] = (),
) -> int: ...
