"""Sets of CPUs or cores as the kernel writes them: lists, masks, and one list per rx queue.

`smp_affinity_list` has lists ("0-3,8"), `smp_affinity` hexadecimal masks in groups of 32 bits
("1,0000000f"). What cannot be read is a ValueError of one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable

ROUND_ROBIN, PER_QUEUE, AUTO = "round-robin", "per-queue", "auto"
_RANGE = r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?"
_GROUP = "[0-9a-fA-F]{1,8}"


def parse_core_list(text: str) -> tuple[int, ...]:
    """The numbers of a list, ascending, each once: "0-3,8" -> (0, 1, 2, 3, 8).

    "+" separates as "," does, for where a comma means something else. An empty list is none.
    """
    import re  # ranks parse no lists

    found: set[int] = set()
    for part in re.split("[,+]", text) if text.strip() else ():
        match = re.fullmatch(_RANGE, part, re.ASCII)
        if match is None:
            raise ValueError(f"{text.strip()!r} is not a list of cores such as 0-3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last > 0xFFFF:
            raise ValueError(
                f"{text.strip()!r} is not a list of cores: {part.strip()} is not a range"
            )
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def format_core_list(cores: Iterable[int]) -> str:
    """The reverse of parse_core_list: (0, 1, 2, 3, 8) -> "0-3,8"."""
    ranges: list[list[int]] = []
    for core in sorted(set(cores)):
        if ranges and ranges[-1][1] == core - 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def parse_core_mask(text: str) -> tuple[int, ...]:
    """The numbers of a mask, ascending: "1,0000000f" -> (0, 1, 2, 3, 32)."""
    import re

    groups = text.strip().split(",")
    if not all(re.fullmatch(_GROUP, group) for group in groups):
        raise ValueError(f"{text.strip()!r} is not a mask of cores such as 0000000f")
    bits = 0
    for group in groups:
        bits = bits << 32 | int(group, 16)
    return tuple(number for number in range(bits.bit_length()) if bits >> number & 1)


def format_core_mask(cores: Iterable[int]) -> str:
    """The reverse of parse_core_mask, eight digits to a group."""
    bits = sum(1 << core for core in set(cores))
    groups = [bits & 0xFFFFFFFF]
    while bits := bits >> 32:
        groups.append(bits & 0xFFFFFFFF)
    return ",".join(f"{group:08x}" for group in reversed(groups))


def checked_affinity(text: str, cores: int) -> tuple[int, ...]:
    """The cores of a list that interrupts may go to, of a node that has `cores` of them."""
    found = parse_core_list(text)
    if not found:
        raise ValueError("an affinity list names at least one core, such as 0 or 0-3,8")
    if found[-1] >= cores:
        raise ValueError(
            f"affinity list {text.strip()!r} names core {found[-1]}, but a node's cores are "
            f"{format_core_list(range(cores))}"
        )
    return found


def queue_affinities(binding: str, queues: int, cores: int) -> tuple[tuple[int, ...], ...]:
    """What `affinities` gives for irq_binding, rx_queues and cores; ValueError by these names."""
    if queues > cores:
        raise ValueError(
            f"rx_queues is {queues}, more than the node's {cores} "
            f"core{'s' if cores > 1 else ''}, and each queue interrupts a core of its own: set "
            f"cores to at least {queues}"
        )
    try:
        return affinities(binding, queues, cores)
    except ValueError as error:
        raise ValueError(f"irq_binding: {error}") from None


def affinities(binding: str, queues: int, cores: int) -> tuple[tuple[int, ...], ...]:
    """For each rx queue the cores that its interrupts go to, in turn.

    `binding`: "round-robin" over all cores; "per-queue", queue q to core q; "auto", the first with
    one queue and the second with several; or a list, for all queues or one for each with "/"
    between them: "0/1/2-3".
    """
    if binding == AUTO:
        binding = ROUND_ROBIN if queues == 1 else PER_QUEUE
    if binding == ROUND_ROBIN:
        return (tuple(range(cores)),) * queues
    if binding == PER_QUEUE:
        return tuple((queue % cores,) for queue in range(queues))
    lists = [checked_affinity(part, cores) for part in binding.split("/")]
    if len(lists) not in (1, queues):
        raise ValueError(
            f"{binding!r} has {len(lists)} affinity lists, but there "
            + (f"are {queues} rx queues" if queues > 1 else "is 1 rx queue")
        )
    return tuple(lists) * (queues if len(lists) == 1 else 1)
