"""What a run's ranks are told, as plain data that lies in one of the run's segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from shrimpmx.errors import InputError
from shrimpmx.native.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any, ClassVar

    from shrimpmx.settings.host import HostParameters, WaitParameters
    from shrimpmx.settings.mx import MxParameters
    from shrimpmx.settings.nic import NicParameters


class RankPlan(NamedTuple):
    """One rank: its process, its endpoint, where it runs, what it does and how it waits.

    `runner` and `agent` are its records in the control segment. It begins on `core`, which is
    `cpu`, at `niceness`, and opening its endpoint moves it to `home_cores`. A `spare` one starts
    when MPI_Comm_spawn fills its slot.
    """

    number: int
    name: str
    runner: int
    agent: int
    node: int
    endpoint: int
    core: int
    cpu: int
    home_cores: tuple[int, ...]
    workload: str
    wait: WaitParameters
    options: Mapping[str, Any] = {}
    niceness: int = 0
    spare: bool = False


class RanksPlan(NamedTuple):
    """What all ranks of a run need to know beside their own parts.

    `cpus[node][core]`: the CPU of an emulated core. `directory`: where ranks leave their samples
    and stacks. `traced`, `captured`: the run has segments for that. `position`: where it is in its
    sweep, in words. `lends`: senders carry out the NIC's short updates (nic/lent.pyx). `link`: of
    the kind of that name. `generated`: a generator is the ranks' partner. `deadline_s`: when the
    run is given up. `survive`: the run goes on without a rank that fails. Simulated hosts have the
    costs of their `model`, as Prices have them `lines[node]`, and `keeps_copies`: ranks pay for
    what they keep for a resend. `own_waits`: a user's own strategies by name, as fields of
    OwnClass, for programs. `compute`: what a program of a simulated run computes between its calls,
    "none", "measured" (times `compute_factor`), or ns for each call.
    """

    ranks: tuple[RankPlan, ...]
    nodes: int
    cpus: tuple[tuple[int, ...], ...]
    nic: NicParameters
    host: HostParameters
    mx: MxParameters
    directory: str
    deadline_s: float
    seed: int
    traced: bool = False
    captured: bool = False
    position: str = ""
    link: str = "rings"
    lends: bool = False
    generated: bool = False
    hardware_counters: bool = False
    survive: bool = False
    model: Mapping[str, Any] = {}
    lines: Sequence[Sequence[Sequence[int]]] = ()
    keeps_copies: bool = False
    compute: str | int = "none"
    compute_factor: float = 1.0
    own_waits: Mapping[str, Mapping[str, str]] = {}


class World(NamedTuple):
    """The ranks that begin together, by their numbers in the run, in the order of MPI_COMM_WORLD.

    Of spawned ones, `parent` is the rank that has spawned them, -1 of others, `application` the
    number of the command that this one runs (MPI_APPNUM), and `error_handler` the first one of its
    communicators, by the value of the info key mpi_initial_errhandler; "": MPI's default.
    """

    members: tuple[int, ...]
    parent: int = -1
    application: int = 0
    error_handler: str = ""


def first_world(plan: RanksPlan) -> World:
    """That of the ranks that the run begins with."""
    return World(tuple(rank.number for rank in plan.ranks if not rank.spare))


# The groups of parameters in a plan.
GROUPS = ("nic", "host", "mx")


def plan_bytes(plan: RanksPlan) -> bytes:
    """The plan as the bytes of its segment.

    InputError if an option of a rank is no number, text, or list or mapping (by texts) of such.
    """
    fields = plan._asdict()
    fields["ranks"] = [{**rank._asdict(), "wait": vars(rank.wait)} for rank in plan.ranks]
    for name in GROUPS:
        fields[name] = vars(fields[name])
    for rank in plan.ranks:
        check_options(rank.name, rank.options)
    import json

    return json.dumps(fields, allow_nan=False).encode()


def check_options(rank: str, options: Mapping[str, Any]) -> None:
    """InputError if an option of the rank of that name is no number, text, or list or mapping (by
    texts) of such.
    """
    import json

    for name, value in options.items():
        if type(value) in (int, str):
            continue
        try:
            same = json.loads(json.dumps({name: value}, allow_nan=False)) == {name: value}
        except (TypeError, ValueError):
            same = False
        if not same:
            raise InputError(
                f"option {name!r} of {rank} must be a number, a text, or a list or mapping of "
                f"such, not {value!r}"
            )


def plan_of(data: bytes) -> RanksPlan:
    """The plan that `data`, made by plan_bytes(), says.

    Its groups of parameters have the attributes of their declarations and no more: they were
    checked before they came here, and a rank does not load what checks them.
    """
    fields: dict[str, Any] = _parsed(data.decode())
    fields["ranks"] = tuple(_rank_of(rank) for rank in fields["ranks"])
    fields["cpus"] = tuple(map(tuple, fields["cpus"]))
    for name in GROUPS:
        fields[name] = _group_of(fields[name])
    return RanksPlan(**fields)


class _Plain:
    """How the scanner of Python's json reads: as json.loads()."""

    strict = True
    memo: ClassVar[dict[str, str]] = {}
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _parsed(text: str) -> Any:
    """What JSON says. The scanner alone: the modules around it load regular expressions, which
    would take a rank as long as ten modules.
    """
    from _json import make_scanner

    try:
        return make_scanner(_Plain)(text, 0)[0]  # type: ignore[arg-type]
    except StopIteration:
        raise ValueError("this is no JSON") from None


def position_of(data: bytes) -> str:
    """The position that such data says, for onlookers."""
    return str(_parsed(data.decode())["position"])


def _rank_of(fields: dict[str, Any]) -> RankPlan:
    wait = _group_of(fields.pop("wait"))
    return RankPlan(wait=wait, home_cores=tuple(fields.pop("home_cores")), **fields)


def _group_of(fields: dict[str, Any]) -> Any:
    # What is declared as a tuple came as a list.
    return SimpleNamespace(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields.items()
        }
    )
