"""The machine that the emulated cluster stands for: which one, and what one is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Literal

from shrimpmx.costs.table import ALL_CHARGED, CHARGED
from shrimpmx.errors import did_you_mean
from shrimpmx.settings.declared import (
    HARDWARE_RATE,
    HARDWARE_TIME,
    HOST_COST,
    HOST_RATE,
    Before,
    Declared,
    Field,
    FreeCost,
    Limits,
    literal_error,
)
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.sentences import validation_sentence

# Those that come with shrimpmx, a file each.
DIRECTORY = Path(__file__).parents[1] / "experiment" / "platforms"
KNOWN = tuple(sorted(path.stem for path in DIRECTORY.glob("*.toml")))
# The one that is made of this machine's calibration.
THIS_MACHINE = "this-machine"

Origin = Literal["paper", "public", "measured", "derived", "fitted", "ours"]
Name = Annotated[str, Limits(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Sentence = Annotated[str, Limits(min_length=1)]


# Groups of which a platform has parameters: all that describe a machine, and no run.
TABLES: dict[str, type[Declared]] = {
    "nic": NicParameters,
    "host": HostParameters,
    "mx": MxParameters,
    "model": HostModelParameters,
}
_OF_A_MACHINE = {HARDWARE_TIME, HARDWARE_RATE, HOST_COST, HOST_RATE}
_ALSO = {
    "nic": {"tx_gap_jitter", "rx_timer", "tx_interrupts"},
    "host": {
        *("cores", "irq_binding", "event_ring"),
        *("time_slice_ns", "scheduler", "sched_yield", "wake_ups"),
    },
    "mx": set[str](),
    "model": set(HostModelParameters.fields),
}
# Which draw of a fitted platform's values a run has.
DRAW = "draw"
# The part of an interrupt before it reaches its core.
DELIVERY = "interrupt_delivery_ns"
_BY_COSTS = {cost.name: name for name, cost in CHARGED.items()}


class Entry(Declared):
    """A value of a platform, of a cost in ns: where it comes from, in a word and in a sentence.

    `calibrated_by`: the claims whose figures it was chosen by, which it says nothing about. `hosts`
    are those that have it: real processes, simulated hosts, or both. Of a fitted value: its 95 %
    `interval`, the groups of measurements it was `fitted_by`, its value in a fit `without` one of
    them, and `draws` from its distribution, which go together with those of the platform's other
    values.
    """

    value: Any
    origin: Origin
    source: Sentence
    calibrated_by: tuple[str, ...] = ()
    interval: tuple[int, int] | None = None
    fitted_by: tuple[str, ...] = ()
    without: dict[str, float] = Field(default_factory=dict)
    draws: tuple[int, ...] = ()
    hosts: Literal["all", "real", "simulated"] = "all"

    @property
    def chosen_by(self) -> tuple[str, ...]:
        """The claims, or groups of measurements, that it was chosen or fitted by."""
        return (*self.calibrated_by, *self.fitted_by)


class Platform(Declared):
    """A machine: costs by the names of CHARGED, and parameters of its NIC, host, library; `model`
    are those of a simulated host only. Such hosts have the entries of `fitted`, by table, in place
    of the others.

    `dilation` is the one that every machine takes, for the reason `dilation_source`; None: as
    this machine's calibration proposes.
    """

    name: Name
    title: Sentence
    dilation: Annotated[float, Limits(ge=0.1, le=1000)] | None = None
    dilation_source: str = ""
    costs: dict[str, Entry] = Field(default_factory=dict)
    nic: dict[str, Entry] = Field(default_factory=dict)
    host: dict[str, Entry] = Field(default_factory=dict)
    mx: dict[str, Entry] = Field(default_factory=dict)
    model: dict[str, Entry] = Field(default_factory=dict)
    fitted: dict[str, dict[str, Entry]] = Field(default_factory=dict)

    def check(self) -> None:
        self._check_entries()
        for real in (True, False):
            self.on(real=real).check_values()
        for table in self.fitted:
            if table not in ("costs", *TABLES):
                raise ValueError(f"fitted.{table} is no table of a platform")
        if self.fitted:
            self.on(real=False)._check_entries()
        if self.dilation is None and "interrupt_to_handler" not in self.costs:
            raise ValueError("costs.interrupt_to_handler is missing: give it, or a dilation")
        if (self.dilation is None) != (not self.dilation_source):
            raise ValueError("dilation and dilation_source go together: give both or neither")

    def _check_entries(self) -> None:
        for name, cost in self.costs.items():
            if name not in CHARGED:
                raise ValueError(f"costs.{name} is not a cost{_instead(name, CHARGED)}")
            number = isinstance(cost.value, int | float) and not isinstance(cost.value, bool)
            if not number or not 0 < cost.value <= 100_000_000:
                raise ValueError(
                    f"costs.{name} must be more than 0 and at most 100000000 ns, not {cost.value!r}"
                )
        for table, group in TABLES.items():
            self._check_table(table, group)
        whole, part = self.costs.get("interrupt_to_handler"), self.model.get(DELIVERY)
        if whole is not None and part is not None and part.value > ceil(whole.value):
            raise ValueError(
                f"model.{DELIVERY} must be at most {ceil(whole.value)} ns, not {part.value}: it is "
                "a part of costs.interrupt_to_handler"
            )

    def _check_table(self, table: str, group: type[Declared]) -> None:
        entries: Mapping[str, Entry] = getattr(self, table)
        allowed = parameters_of_machines(table)
        for name in entries:
            if name in _BY_COSTS and name in group.fields:
                raise ValueError(
                    f"{table}.{name} is computed from a cost: set costs.{_BY_COSTS[name]}"
                )
            if name not in allowed:
                raise ValueError(
                    f"{table}.{name} is not a parameter of a platform{_instead(name, allowed)}"
                )

    def check_values(self) -> None:
        """ValueError, with its table, if a value is none that its parameter takes, or does not go
        with others.
        """
        for table, group in TABLES.items():
            entries: Mapping[str, Entry] = getattr(self, table)
            try:
                made = group.model_validate(
                    {n: each.value for n, each in entries.items()}, strict=True
                )
            except ValueError as error:
                sentence = validation_sentence(error)
                each = "each of " if sentence.startswith("each of ") else ""
                raise ValueError(f"{each}{table}.{sentence.removeprefix(each)}") from None
            if isinstance(made, HostModelParameters):
                made.idle_states()

    def on(self, *, real: bool) -> Platform:
        """The platform as real processes have it, or simulated hosts."""
        others = "simulated" if real else "real"
        platform = self if real else self.merged()
        tables: dict[str, Any] = {
            table: {n: each for n, each in getattr(platform, table).items() if each.hosts != others}
            for table in ("costs", *TABLES)
        }
        return platform.model_copy(update={**tables, "fitted": {}})

    def merged(self) -> Platform:
        """The platform with its fitted entries in place of the others."""
        tables: dict[str, Any] = {
            table: {**getattr(self, table), **entries} for table, entries in self.fitted.items()
        }
        return self.model_copy(update={**tables, "fitted": {}})

    def drawn(self, number: int) -> Platform:
        """The platform with that draw of its fitted values, 1 the first; 0: as it is. ValueError if
        there is none.
        """
        if number == 0:
            return self
        most = max((len(each.draws) for _, each in self.entries()), default=0)
        if number > most:
            has = f"has {most} draws" if most else "has no draws: shrimpmx fit makes them"
            raise ValueError(f"draw is {number}, and platform {self.name} {has}")
        return self._with(
            lambda each: {"value": each.draws[number - 1]} if each.draws else {},
        )

    def held_out(self, group: str) -> Platform:
        """The platform with the values of fits without a group of measurements; "": of all. The
        others stay as they are. ValueError if there was no such fit.
        """
        if not group:
            return self
        groups = sorted({name for _, each in self.entries() for name in each.without})
        if group not in groups:
            has = (
                f"there are fits without {', '.join(groups)}"
                if groups
                else "no fits leave out groups"
            )
            raise ValueError(f"no fit of platform {self.name} leaves out {group!r}: {has}")

        def change(entry: Entry) -> dict[str, Any]:
            if group not in entry.without:
                return {}
            left = tuple(name for name in entry.fitted_by if name != group)
            return {"value": entry.without[group], "fitted_by": left}

        return self._with(change)

    def _with(self, change: Callable[[Entry], dict[str, Any]]) -> Platform:
        """The platform with what `change` says of each entry."""

        def changed(entries: Mapping[str, Entry]) -> dict[str, Entry]:
            return {n: each.model_copy(update=change(each)) for n, each in entries.items()}

        fitted = {table: changed(entries) for table, entries in self.fitted.items()}
        tables = {table: changed(getattr(self, table)) for table in ("costs", *TABLES)}
        return self.model_copy(update={**tables, "fitted": fitted})

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """All that it says, by table and name, such as "model.poll_ns"."""
        for table in ("costs", *TABLES):
            for name, each in getattr(self, table).items():
                yield f"{table}.{name}", each
        for table, entries in self.fitted.items():
            for name, each in entries.items():
                yield f"fitted.{table}.{name}", each


def parameters_of_machines(table: str) -> list[str]:
    """The parameters of a group that platforms may give."""
    fields = TABLES[table].model_fields.items()
    return [
        name
        for name, field in fields
        if name not in _BY_COSTS
        and (name in _ALSO[table] or any(mark in _OF_A_MACHINE for mark in field.metadata))
    ]


def _instead(name: str, names: Mapping[str, Any] | list[str]) -> str:
    return did_you_mean(name, names) or f"; there are: {', '.join(names)}"


def _known_or_own(value: Any) -> Any:
    """One that comes with shrimpmx, by its name, or a whole one."""
    if isinstance(value, Mapping):
        return Platform.model_validate(value)
    if isinstance(value, Platform) or value in ("none", *KNOWN):
        return value
    names = ", ".join(map(repr, ("none", *KNOWN, THIS_MACHINE)))
    raise literal_error(f"{names} or a file (mine.toml)")


class PlatformParameters(Declared):
    """The machine that the emulated cluster stands for."""

    profile: Annotated[str | Platform, Before(_known_or_own)] = Field(
        "none",
        description="source of the hardware times and host costs that you do not set: "
        "'myri10g-2009', the coalescing paper's hosts; 'shrimp-1996', the waiting paper's; "
        "'xeon-100g', a host with 100 Gb/s; 'this-machine', this machine's calibration; or a "
        "TOML file of your own (a path)",
    )
    time_dilation: float | Literal["auto"] = Field(
        "auto",
        description="factor of all times of the emulated hardware; 'auto': the calibration's "
        "proposal for the profile, 1 without one",
    )
    hosts: Literal["modelled", "as-real"] = Field(
        "modelled",
        description="charges of simulated hosts with a profile: 'modelled', all of its costs; "
        "'as-real', only those of real processes, for comparisons between the engines (ours)",
    )

    free_cost: FreeCost = Field(
        ALL_CHARGED,
        description="parameter of a cost to make free, to show the cost's effect; 'none': all "
        "costs are charged (ours)",
    )

    draw: int = Field(
        0,
        ge=0,
        le=1000,
        description="number of a draw, from 1 on, of a fitted platform's values; 0: the most "
        "probable values (shrimpmx fit)",
    )

    held_out: str = Field(
        "",
        description="claim, such as IC-9, whose table or plot is left out of the fit of the "
        "platform's values; '': none is",
    )

    @property
    def name(self) -> str:
        """The platform's; "none" without one."""
        return self.profile.name if isinstance(self.profile, Platform) else self.profile

    def check(self) -> None:
        if self.time_dilation != "auto" and not 0.1 <= self.time_dilation <= 1000:
            raise ValueError(
                f"time_dilation must be 'auto' or from 0.1 to 1000, not {self.time_dilation:g}"
            )
