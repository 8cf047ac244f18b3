"""Every error that a user of shrimpmx can meet, and the exit code each one gets.

Each process loads this; what only an error needs is loaded with the error.
"""

from __future__ import annotations

# `typing` would take every rank as long as five modules.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# Behind the sentence of a run that was late, where it is no option that has set the limit.
RAISE = "; raise deadline_s if it needs longer"
# How alike a mistyped name and a known one are at least, 0 to 1: "name" is no "frames" (ours).
ALIKE = 0.7
# So many letters are the beginning of one name rather than a mistake (ours).
BEGINNING = 3


class ShrimpmxError(Exception):
    """Base of all errors that shrimpmx reports in one sentence, without a traceback."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled whole, whatever its class is made with."""
        return _made_again, (type(self), self.args, self.__dict__)


class InputError(ShrimpmxError):
    """A file, option, scenario or environment value that cannot be used as given."""

    exit_code = 2


class MachineError(ShrimpmxError):
    """This machine cannot do what was asked: no space, no permission, too few CPUs."""

    exit_code = 2


class NotHereError(MachineError):
    """What a point needs is not here: this machine, or the engine that was asked for, lacks it."""


class PlacementError(NotHereError):
    """This machine has no CPUs at the distance that was asked for."""


class SegmentError(MachineError):
    """A shared segment cannot be created, attached or verified."""


class OtherBuildError(SegmentError):
    """Another build of shrimpmx made a shared segment."""


class AgentError(ShrimpmxError):
    """An agent failed or was killed; the run ended early."""

    exit_code = 3
    # Whether a program failed before it had exchanged a message: no setting can change that.
    at_start = False

    def __init__(self, message: str, agent: str = "", traceback: str = "") -> None:
        super().__init__(message)
        self.agent = agent
        self.traceback = traceback


class RankEndedError(AgentError):
    """An MPI program's rank failed; the run's exit code is the rank's, 128 + the signal's number if
    one killed it.
    """

    def __init__(self, message: str, agent: str, exit_code: int, *, at_start: bool = False) -> None:
        super().__init__(message, agent)
        self.exit_code, self.at_start = exit_code, at_start


class OutputError(AgentError):
    """What ranks print is lost."""

    exit_code = 2


class ReaderGoneError(OutputError):
    """Nobody reads the ranks' output: a run ends as SIGPIPE ends a program, silently."""

    exit_code = 128 + 13  # SIGPIPE


class InterruptedRunError(AgentError):
    """The user ended a run by `signal`."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


class DeadlineError(AgentError):
    """A run did not end within its deadline. `what`: just that, where a message says more."""

    what = ""


class DeadlockError(AgentError):
    """All wait for what will never happen. `what`: just that, where a message says more."""

    what = ""


class StandstillError(DeadlineError):
    """A run did not end, and nothing in it moved any more: more time would not help."""


class NeverReportedError(StandstillError):
    """A run did not end since a user's policy let packets wait."""


class PointFailedError(AgentError):
    """What one point of a sweep runs fails there; the sweep keeps the reason and goes on."""


class RunCutError(AgentError):
    """A run of a sweep was ended since time was up; the sweep keeps nothing of it and goes on."""


class AbortedError(AgentError):
    """A wait ended because the run is being stopped."""


class MxError(ShrimpmxError):
    """A call of the MX library failed; `status` is its MX status name."""

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status


class VmmcError(ShrimpmxError):
    """A call of VMMC failed; `status` says why in one word, e.g. "not-exported"."""

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status


def late_words(error: DeadlineError, advice: str) -> str:
    """The sentence of a run that was late, with `advice` of the caller's own if time would help."""
    late, _, _ = str(error).partition(RAISE)
    return late if isinstance(error, StandstillError) else f"{late}; {advice}"


def _made_again(kind: type[ShrimpmxError], args: Any, attributes: dict[str, Any]) -> ShrimpmxError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


def failure_of(agent: str, error: BaseException) -> AgentError:
    """What ends a run in which an agent raised `error`; of an error of ours no traceback."""
    if isinstance(error, ShrimpmxError):
        return AgentError(f"{agent} failed: {error}", agent)
    import traceback

    text = "".join(traceback.format_exception(error))
    return AgentError(f"{agent} failed: {type(error).__name__}: {error}", agent, text)


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The known name nearest to a mistyped one, or the first that it begins, to stand behind a
    message; '' if there is none.
    """
    import difflib

    text, names = str(given), [str(name) for name in known]
    near = difflib.get_close_matches(text, names, n=1, cutoff=ALIKE)
    if not near and len(text) >= BEGINNING:
        near = [name for name in names if name.startswith(text)]
    return f"; did you mean {near[0]!r}?" if near else ""
