"""A coalescing policy written in Python."""

from __future__ import annotations

from types import FunctionType

from shrimpmx.errors import InputError, did_you_mean

# How alike a method and one of the policy's are for it to be a misspelt one, 0 to 1 (ours).
MISSPELT = 0.85


def _sound(name: str) -> str:
    """What is left of a method's name without the ways to write it."""
    return name.replace("_", "").lower().removeprefix("on")


class Policy:
    """Base of a user's own coalescing policy.

    Override what the policy needs; InputError for a method `on_...` that there is not, and for one
    whose name is near to one of these (those of helpers may begin with `_`). All times
    are ns of the emulated hosts: a time dilation is taken off before each call, and applied to
    `deadline_ns` behind it. Three methods decide: they return True, or the name of a cause
    ("packet", "marked", "deferred", "timeout", "frames", "sent"), to raise an interrupt, and False
    or None not to. The causes are counted.

    `deadline_ns` is the policy's one timer: set it to the time at which `on_deadline` is to
    be called, or to None. It is None again when `on_deadline` is called.

    A call costs some hundred nanoseconds, each packet takes two. An exception ends the run.

    Example: an interrupt once three packets wait, after 20 us at the latest.

        class Three(Policy):
            waiting = 0

            def on_dma_complete(self, now_ns, marked, dma_pending):
                self.waiting += 1
                if self.deadline_ns is None:
                    self.deadline_ns = now_ns + 20_000
                return self.waiting >= 3

            def on_raised(self, now_ns, cause):
                self.waiting = 0
                self.deadline_ns = None
    """

    deadline_ns: int | None = None

    def __init_subclass__(cls) -> None:
        import difflib

        known = {_sound(name): name for name in METHODS}
        for name in dir(cls):
            if name in METHODS or name.startswith("_") or not callable(getattr(cls, name)):
                continue
            near = difflib.get_close_matches(_sound(name), known, n=1, cutoff=MISSPELT)
            if near or name.startswith("on_"):
                meant = f"; did you mean {known[near[0]]!r}?" if near else ""
                raise InputError(
                    f"{cls.__name__}.{name} is not a method of a coalescing policy; there are "
                    f"{', '.join(METHODS)}{meant or did_you_mean(name, METHODS)}"
                )
        for name in METHODS:
            _check_arguments(cls, name)

    def on_arrival(self, now_ns: int, marked: bool, length_bytes: int) -> None:
        """A packet arrived; its DMA to host memory is submitted."""

    def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool | str | None:
        """A packet is in host memory; `dma_pending` others are on their way there."""
        return None

    def on_send_complete(self, now_ns: int) -> bool | str | None:
        """A frame was sent; called with `tx_interrupts` only. By default the next interrupt tells
        the host.
        """
        return None

    def on_deadline(self, now_ns: int) -> bool | str | None:
        """The deadline has come."""
        return True

    def on_raised(self, now_ns: int, cause: str) -> None:
        """All packets in host memory have been reported, by an interrupt or without one."""


METHODS = tuple(name for name in dir(Policy) if name.startswith("on_"))


def _check_arguments(policy: type[Policy], name: str) -> None:
    """InputError if a policy's method does not take what the NIC gives it."""
    import inspect

    given = list(inspect.signature(getattr(Policy, name)).parameters)
    # A static or class method has no place for the policy itself.
    own = isinstance(inspect.getattr_static(policy, name), FunctionType)
    words = repr(getattr(policy, name))
    try:
        taken = inspect.signature(getattr(policy, name))
        words = f"({', '.join(taken.parameters)})"
        taken.bind(*(given if own else given[1:]))
    except TypeError:
        raise InputError(
            f"{policy.__name__}.{name} must take ({', '.join(given)}), not {words}"
        ) from None
    except ValueError:
        return  # compiled code may not tell what it takes
