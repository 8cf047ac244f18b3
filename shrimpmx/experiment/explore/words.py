"""The findings of an exploration in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shrimpmx.experiment.explore.findings import NEAR, Findings, Setting
from shrimpmx.experiment.explore.measured import ALIKE, BETTER, FIGURES, OBJECTIVES
from shrimpmx.results.words import number_words, part_words, virtual_times_words

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
# How each figure breaks a tie.
DECIDES = {
    "time": "run time decides: {} runs fastest",
    "cpu": "CPU time decides: {} uses the least",
    "interrupts": "interrupts decide: {} causes the fewest",
}
# The titles of commands, which are shown as they are to be typed.
COMMANDS, REPEAT = TYPED = ("On a real machine", "In the emulator")
# More tied settings than these are not all named, but so many of them (ours).
TIED_MOST, TIED_NAMED = 5, 3
# Below this chance to be near the best nothing is decided (ours).
DECIDED = 0.5
UNDECIDED = "Not decided yet: {next_step}."
MARGIN = f"{100 * ALIKE - 100:.0f} %"
WITHIN = f"within {MARGIN}"
FRONTIER = (
    "beats every other setting there in run time, CPU time or interrupts, by more than noise and "
    f"{100 * BETTER - 100:.0f} %"
)


def alike_words(objective: str, *, exact: bool) -> str:
    """What is marked as about as good as the best, and the mark's meaning."""
    if exact:
        return f"as good: {PLACES[objective]} {WITHIN} of the least"
    return f"may be as good: {PLACES[objective]} perhaps {WITHIN} of the least"


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
    if len(findings.contenders) > 1:
        names = _listed([_with_ratio(findings, index) for index in _others(findings)])
        least = LEAST[findings.objective]
        lines.append(f"Also {WITHIN} of the {least}: {names}. {_why(findings)}")
    worse = [each.index for each in findings.usable if each.index not in findings.contenders]
    if worse:
        following = min(worse, key=findings.ratio)
        lines.append(f"Next best: {_with_ratio(findings, following)}.")
    return [*lines, _repeated_words(findings)]


def _repeated_words(findings: Findings) -> str:
    """The reason why figures are called exact: the settings that ran again and gave the same."""
    again = [each for each in findings.usable if each.measured.runs > 1]
    if not again:
        return "Figures are exact unless the program itself draws at random: no setting ran twice."
    names = _listed([f"{each.name} ({_times(each.measured.runs)})" for each in again])
    return f"Figures are exact: nothing is drawn at random, and further runs repeat them: {names}."


def _others(findings: Findings) -> list[int]:
    """The contenders beside the recommended setting."""
    return [index for index in findings.contenders if index != findings.best]


def _with_ratio(findings: Findings, index: int) -> str:
    ratio, name = findings.ratio(index), findings.settings[index].name
    return f"{name} (the same)" if ratio == 1.0 else f"{name} ({ratio:.3f} times the least)"


def _sure_words(findings: Findings) -> list[str]:
    others = [findings.settings[index] for index in _others(findings)]
    lines = []
    if others and findings.near is not None:
        names = _listed([each.name for each in others])
        lines.append(f"May be as good ({WITHIN}): {names}. {_why(findings)}")
    once = sum(each.measured.runs == 1 for each in others)
    if once and findings.near is not None:
        lines.append(f"{once} of these ran only once: {findings.next_step}.")
    return [*lines, _agreed_words(findings) or _surely(findings)]


def _agreed_words(findings: Findings) -> str:
    """Of runs that draw something, but did not differ; "" of others."""
    again = [each.measured for each in findings.usable if each.measured.runs > 1]
    drawn = dict.fromkeys(name for each in findings.usable for name in each.measured.drawn)
    if not drawn or findings.near is None or any(each.varies for each in again):
        return ""
    return (
        f"Runs draw {', '.join(drawn)} at random, yet runs of the same setting never differed: "
        f"{len(again)} of {len(findings.usable)} settings ran more than once, the recommended one "
        f"{_times(findings.settings[findings.best].measured.runs)}."
    )


def _untried_words(findings: Findings) -> str:
    """How many settings have not run, and what runs them."""
    if not findings.rest:
        return ""
    return (
        f"{len(findings.settings)} of {findings.count} settings have run, spread over the grid; "
        f"the budget was too short for the rest. They run if you repeat the command with "
        f"{findings.rest}"
    )


def _listed(names: Sequence[str]) -> str:
    """All names, or a few and how many more the table marks, where these and one are too many."""
    if len(names) < TIED_MOST:
        return "; ".join(names)
    rest = len(names) - TIED_NAMED
    return f"{'; '.join(names[:TIED_NAMED])} and {rest} others (marked so among the settings)"


def _why(findings: Findings) -> str:
    """What decided between settings that may be as good."""
    first, second, third = OBJECTIVES[findings.objective]
    name, decided = findings.settings[findings.best].name, findings.decided_by
    if len(findings.as_good) == 1:
        return f"{name} has the {MEDIANS[first]}."
    if not decided:
        words = f"several tie in {PLACES[second]} and {PLACES[third]}, too"
    elif decided == second:
        words = DECIDES[second].format(name)
    else:
        words = f"several tie in {PLACES[second]}, too; {DECIDES[third].format(name)}"
    among = "" if findings.is_exact else f"among the settings probably {WITHIN}, "
    words = f"{among}{words}."
    return words[0].upper() + words[1:]


def _surely(findings: Findings) -> str:
    runs = findings.settings[findings.best].measured.runs
    if findings.chance is None or findings.near is None:
        return f"Too few settings ran twice to say how sure that is. {_undecided(findings)}"
    settings = f"{len(findings.usable)} settings{' that have run' if findings.rest else ''}"
    where = "among these" if len(findings.contenders) > 1 else "this one"
    best = f"With a probability of {_share(findings.chance)} the best of the {settings} is {where}."
    if len(findings.contenders) == len(findings.usable):
        best = f"Any of the {settings} may be the best."
    undecided = "" if _is_decided(findings) else f" {_undecided(findings)}"
    return (
        f"{best} With {_share(findings.near)} the recommended one is within "
        f"{100 * NEAR - 100:.0f} % of the best (it ran {_times(runs)}; bootstrap over runs)."
        f"{undecided}"
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def closing(findings: Findings) -> str:
    """What it comes to and what to do next, the last sentence of all."""
    best, wish = findings.settings[findings.best].name, WISHES[findings.objective]
    if not _is_decided(findings):
        return f"For {wish}, {best} leads so far. {_undecided(findings)}"
    ordinary = ""
    if findings.ordinary is not None:
        other = findings.settings[findings.ordinary].name
        ordinary = f"; with a NIC that heeds no marks, {other}"
    return f"For {wish}, take {best}{ordinary}. The commands are above."


def counted_words(findings: Findings, *, computes: bool) -> str:
    """Which part of a run its figures are of, and how much of it that is; `computes`: what the
    program does between its calls takes time.
    """
    counted = part_words(marked=findings.marked, share_percent=findings.share)
    if findings.marked:
        return counted
    imports = (
        " That includes a Python program's imports after `from mpi4py import MPI`: import MPI last."
    )
    alone = " For a part of it alone: MPI.Pcontrol(1) before that part, MPI.Pcontrol(0) behind it."
    return f"{counted}{imports if computes else ''}{alone}"


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
    costs = f"{ratio:.2f} times its" if ratio > ALIKE else "about the same"
    return (
        f"With a NIC that heeds no marks, take {other.name}: {costs} {PLACES[findings.objective]} "
        f"({figure_words(other, findings.objective)})."
    )


def rests_on(agents: int, cpus: int, dilation: float, limits: Sequence[str]) -> list[str]:
    """What the figures are worth: whose times they are, and which are exact."""
    if dilation != 1.0:
        times = (
            f"Times are those of the emulated hosts, {dilation:g} times as fast as this "
            "emulation; the program's own computing takes its real time, and so appears that "
            "much faster."
        )
    else:
        times = (
            "Times are this machine's own: computing, interrupts and wake-ups are real, the "
            "network is emulated."
        )
    shared = f"had {cpus} CPUs"
    if agents > cpus:
        shared = f"shared {cpus} CPU{'s' * (cpus > 1)}: compare the times, but do not quote them"
    return [
        times,
        f"{agents} processes (ranks, NICs, interrupt handlers) {shared}.",
        *(f"Placement: {limit}." for limit in limits),
        "Interrupts and packets are counts: only the program's own timing changes them.",
    ]


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


def texts_of(
    findings: Findings, repeat: str, rests: Sequence[str], *, crowded: bool = False
) -> list[tuple[str, list[str]]]:
    """What is said below the settings: titles, each with its lines; `repeat` is the command that
    runs the program so, and the last ones say what it `rests` on. `crowded`: a run had fewer CPUs
    than processes.
    """
    commands = []
    for advice in findings.advice(crowded=crowded):
        notes = [f"# {line}" for line in advice.note.splitlines()]
        commands += [f"# {advice.heading}", *advice.commands, *notes]
    return [
        ("Recommended", recommendation(findings)),
        (COMMANDS, commands),
        (REPEAT, [repeat]),
        ("What it rests on", list(rests)),
    ]
