"""What the papers' abstracts promise, in their own terms, and the claims that stand for it."""

from __future__ import annotations

from typing import NamedTuple


class Headline(NamedTuple):
    """A statement of a paper's abstract. `parts` are ids of claims, each with what the texts of its
    statistics begin with: '' for all of them.
    """

    paper: str
    text: str
    parts: tuple[tuple[str, str], ...]


def _all(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, "") for name in names)


_OPEN_MX_LARGE = "half round trip of 1 MiB with Open-MX"

HEADLINES = (
    Headline(
        "coalescing",
        "disabling coalescing may not be relevant for most metrics",
        (
            *_all("IC-1", "IC-7"),
            *((name, "message rate without") for name in ("IC-9", "IC-10", "IC-11")),
            *(("IC-19", f"run time of {kernel}, disabled") for kernel in ("IS", "CG", "FT")),
        ),
    ),
    Headline("coalescing", "except small-message latency", _all("IC-6", "IC-25")),
    Headline(
        "coalescing",
        "a low small-message latency with the new strategies",
        (("IC-8", "half round trip of an empty message"),),
    ),
    Headline(
        "coalescing",
        "a high large-message throughput with them",
        (("IC-8", _OPEN_MX_LARGE), ("IC-11", "ranking")),
    ),
    Headline(
        "coalescing",
        "a satisfying message rate with them",
        (("IC-9", "ranking"), ("IC-10", "ranking")),
    ),
    Headline("coalescing", "without having to manually tune the delay", _all("IC-26", "IC-30")),
    Headline(
        "coalescing",
        "NAS IS executes 7-8 % faster",
        (("IC-19", "run time of IS, open-mx"),),
    ),
    Headline(
        "coalescing",
        "by up to 20 % of additional interrupts at the correct time",
        (("IC-20", "interrupts of IS, open-mx"), ("IC-20", "interrupts of IS, stream")),
    ),
    Headline(
        "multiqueue",
        "all incoming packets for the same process are handled on the same core",
        _all("MQ-6", "MQ-10"),
    ),
    Headline("multiqueue", "a more cache-efficient receive stack", _all("MQ-5", "MQ-9")),
    Headline(
        "multiqueue",
        "not as efficient as some manually tuned micro-benchmarks",
        (("MQ-1", "multiqueue between"), ("MQ-13", "")),
    ),
    Headline(
        "multiqueue",
        "generally better than the single queue stack",
        tuple((name, "round-robin worse than multiqueue") for name in ("MQ-1", "MQ-2", "MQ-3")),
    ),
    Headline(
        "multiqueue",
        "especially on large communication patterns of multiple processes",
        _all("MQ-7", "MQ-8"),
    ),
    Headline(
        "waiting",
        "a hybrid spin-then-block strategy offers good performance in a wide variety of situations",
        (
            ("WC-2", "spin-block"),
            ("WC-3", "wall time by strategy"),
            ("WC-3", "reschedules of spin-block"),
            *(("WC-7", text) for text in ("time per block", "spin-block", "cost of")),
            ("WC-12", ""),
            *(("WC-13", text) for text in ("spin-block", "cost of", "extra")),
        ),
    ),
    Headline(
        "waiting",
        "waiting costs less by carefully controlling when to interrupt and when to poll",
        _all("WC-5", "WC-8", "WC-10"),
    ),
    Headline(
        "waiting",
        "speeding up the interrupt path significantly improves performance",
        (("WC-3", "wall time of notify"), ("WC-4", "")),
    ),
)
