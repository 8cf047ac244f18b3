"""The findings of an exploration in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shrimpmx.results.words import number_words, virtual_times_words
from shrimpmx.study.explore.choice import OBJECTIVES
from shrimpmx.study.explore.findings import NEAR, Findings, Setting
from shrimpmx.study.explore.measured import ALIKE, FIGURES

# What each objective asks for.
WISHES = {
    "time": "the shortest run time",
    "cpu": "the least CPU time of ranks and handlers",
    "interrupts": "the fewest interrupts",
}
# Units of times, and their us.
UNITS = (("s", 1e6), ("ms", 1e3), ("µs", 1.0))
# The least figure that is written in a unit and not in the next one (ours).
WRITTEN_LEAST = 0.1
# What each figure is, and the least of it.
PLACES = {"time": "run time", "cpu": "CPU time", "interrupts": "interrupts"}
LEAST = {"time": "shortest run time", "cpu": "least CPU time", "interrupts": "fewest interrupts"}


MEDIANS = {
    "time": "shortest median run time",
    "cpu": "least median CPU time",
    "interrupts": "fewest interrupts in the median",
}
# More tied settings than these are not all named, but so many of them (ours).
TIED_MOST, TIED_NAMED = 5, 3
# Below this chance to be near the best nothing is decided (ours).
DECIDED = 0.5
UNDECIDED = "Not decided: {next_step}."
EXACT = "Figures are exact: nothing that is drawn changes them, and any further run gives the same."
WITHIN = f"within {100 * ALIKE - 100:.0f} %"


def unit_of(times_us: Iterable[float]) -> tuple[str, float]:
    """The unit in which to write some times, by the least of them that is none, and its us."""
    least = min((each for each in times_us if each > 0), default=UNITS[0][1])
    return next((unit for unit in UNITS if least >= WRITTEN_LEAST * unit[1]), UNITS[-1])


def figure_words(setting: Setting, figure: str) -> str:
    """A median with its unit."""
    median = setting.summary(figure).median
    if figure == "interrupts":
        return f"{median:,.0f} interrupts"
    unit, scale = unit_of([median])
    of_what = " of CPU time" if figure == "cpu" else ""
    return f"{number_words(median / scale)} {unit}{of_what}"


def recommendation(findings: Findings) -> list[str]:
    """The recommended setting, those that may be as good, and how sure that is."""
    best = findings.settings[findings.best]
    figures = ", ".join(figure_words(best, figure) for figure in FIGURES)
    lines = [f"For {WISHES[findings.objective]}: {best.name} ({figures})."]
    lines += _exact_words(findings) if findings.is_exact else _sure_words(findings)
    return [*lines, *filter(None, [_ordinary_words(findings), _untried_words(findings)])]


def _exact_words(findings: Findings) -> list[str]:
    """Of figures that have no noise: which others are as good, and what the next one is worth."""
    lines = []
    others = [index for index in findings.contenders if index != findings.best]
    if others:
        names = [_with_ratio(findings, index) for index in others]
        lines.append(f"{WITHIN.capitalize()} of the least are: {_listed(names)}. {_why(findings)}")
    worse = [each.index for each in findings.usable if each.index not in findings.contenders]
    if worse:
        following = min(worse, key=findings.ratio)
        lines.append(f"The next one is {_with_ratio(findings, following)}.")
    return [*lines, EXACT]


def _with_ratio(findings: Findings, index: int) -> str:
    ratio, name = findings.ratio(index), findings.settings[index].name
    return f"{name} (the same)" if ratio == 1.0 else f"{name} ({ratio:.3f} times the least)"


def _sure_words(findings: Findings) -> list[str]:
    others = [findings.settings[index] for index in findings.contenders if index != findings.best]
    lines = []
    if others and findings.near is not None:
        names = _listed([each.name for each in others])
        lines.append(f"May be as good, {WITHIN}: {names}. {_why(findings)}")
    once = sum(each.measured.runs == 1 for each in others)
    if once and findings.near is not None:
        lines.append(f"{once} of these ran only once: {findings.next_step}.")
    return [*lines, _surely(findings)]


def _untried_words(findings: Findings) -> str:
    """How many settings have not run, and what runs them."""
    if not findings.rest:
        return ""
    tried = len(findings.settings)
    return (
        f"{tried} of {findings.count} settings have run, spread over all: the budget is too short "
        f"for the others. The same options with {findings.rest} run them."
    )


def _listed(names: Sequence[str]) -> str:
    """All names, or a few and how many more the table marks, where these and one are too many."""
    if len(names) < TIED_MOST:
        return "; ".join(names)
    rest = len(names) - TIED_NAMED
    return f"{'; '.join(names[:TIED_NAMED])} and {rest} others (= above)"


def _why(findings: Findings) -> str:
    """What decided between settings that may be as good."""
    first, second, third = OBJECTIVES[findings.objective]
    if len(findings.as_good) == 1:
        return f"The recommended one has the {MEDIANS[first]}."
    those = "these" if findings.is_exact else "those that are more likely than not as good"
    return (
        f"Of {those} the recommended one has the {LEAST[second]}, or where that is as good too the "
        f"{LEAST[third]}."
    )


def _surely(findings: Findings) -> str:
    runs = findings.settings[findings.best].measured.runs
    if findings.chance is None or findings.near is None:
        return (
            f"How sure that is cannot be said: too few settings ran twice. {_undecided(findings)}"
        )
    count = len(findings.contenders)
    subject = "one of these" if count > 1 else "it"
    undecided = "" if _is_decided(findings) else f" {_undecided(findings)}"
    tried = "" if not findings.rest else " that have run"
    return (
        f"How sure that is: {subject} is the best of the {len(findings.usable)} settings{tried} "
        f"with a probability of {_share(findings.chance)}, and the recommended one is at most "
        f"{100 * NEAR - 100:.0f} % from the best with {_share(findings.near)} (it ran "
        f"{'once' if runs == 1 else f'{runs} times'}; bootstrap over runs).{undecided}"
    )


def closing(findings: Findings) -> str:
    """What it comes to and what to do next, the last sentence of all."""
    best, wish = findings.settings[findings.best].name, WISHES[findings.objective]
    if not _is_decided(findings):
        return f"So far {best} looks best for {wish}. {_undecided(findings)}"
    ordinary = ""
    if findings.ordinary is not None:
        ordinary = f", or {findings.settings[findings.ordinary].name} if the NIC heeds no marks"
    return f"For {wish} take {best}{ordinary}: the commands for a real machine stand above."


def counted_words(findings: Findings) -> str:
    """Which part of a run its figures are of, and how much of it that is."""
    part = (
        "of the sections that the program marks by MPI_Pcontrol"
        if findings.marked
        else "of the program's work: from the last rank's return from MPI_Init until each ends"
    )
    return f"Figures are {part}. That is {findings.share:.3g} % of a whole run."


def _is_decided(findings: Findings) -> bool:
    return findings.is_exact or (findings.near is not None and findings.near >= DECIDED)


def _undecided(findings: Findings) -> str:
    return UNDECIDED.format(next_step=findings.next_step)


def _share(share: float) -> str:
    """A probability; resamples of runs cannot make it certain."""
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"


def _ordinary_words(findings: Findings) -> str:
    """What a NIC without marks should do instead, and what that costs."""
    if findings.ordinary is None:
        return ""
    best, other = findings.settings[findings.best], findings.settings[findings.ordinary]
    over, under = (each.summary(findings.objective).median for each in (other, best))
    ratio = over / under if under > 0 else 1.0
    costs = f"{ratio:.2f} times its" if ratio > ALIKE else "the same"
    return (
        f"Without a NIC that heeds marks take {other.name}: {costs} {PLACES[findings.objective]} "
        f"({figure_words(other, findings.objective)})."
    )


def rests_on(agents: int, cpus: int, dilation: float, limits: Sequence[str]) -> list[str]:
    """What the figures are worth: whose times they are, and which are exact."""
    lines = []
    if dilation != 1.0:
        lines.append(
            f"Times are those of the emulated hosts, which run {dilation:g} times slower here; the "
            "program's own computing counts as that much faster than it is."
        )
    else:
        lines.append(
            "Times are this machine's own, in proportion to what the program computes: interrupt "
            "and wake-up cost what they cost here, the network is emulated."
        )
    shared = "" if agents <= cpus else ": some share one, so compare times and do not quote them"
    lines.append(f"{agents} processes (ranks, NICs, interrupt handlers) had {cpus} CPUs{shared}.")
    lines += [f"Placement: {limit}." for limit in limits]
    lines.append(
        "Interrupts and packets are counted, not timed; they vary only as the program's own "
        "timing does."
    )
    return lines


def rests_on_simulated(
    platform: str, compute: str | int, cores: int, costs: Mapping[str, int]
) -> list[str]:
    """The same of simulated hosts of that platform, "none" for none, with so many cores each and
    these costs, ns, and of what a program computes on them between its calls.
    """
    has = "1 core" if cores == 1 else f"{cores} cores"
    return [
        *virtual_times_words(platform, compute, costs),
        f"Each node has {has} for its ranks and interrupt handlers; its NIC needs none.",
    ]
