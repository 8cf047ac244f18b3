"""Coalescing policies by the names of the table of strategies, or by the user's own class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from shrimpmx.errors import InputError
from shrimpmx.native.drawing import stream_of
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.strategies import CoalescingPolicy, PythonPolicy, TimedPolicy
from shrimpmx.settings.strategies import COALESCING, COALESCING_NAMES, object_at

if TYPE_CHECKING:
    from shrimpmx.settings.nic import NicParameters


# -- When the coalescing timers of a NIC tick that run freely: each NIC has a clock of its own.

RANDOM = "random"


def start_timers(
    policies: Iterable[CoalescingPolicy], parameters: NicParameters, seed: int, node: int
) -> None:
    """Draw how fast the clock of a NIC is, and where in its period the timer of each of its rx
    queues is when the run begins.

    Without it all timers tick at whole multiples of the delay, so that those of two NICs expire at
    the same instant, which no two real ones do.
    """
    policies = list(policies)
    if not any(isinstance(policy, TimedPolicy) for policy in policies):
        return
    draw = stream_of("timers", seed, node)
    drift = draw.uniform(-1, 1) * parameters.rx_timer_drift_ppm * 1e-6
    for policy in policies:
        phase = draw.random()
        if isinstance(policy, TimedPolicy):
            policy.use_clock(phase if parameters.rx_timer_phase == RANDOM else 0.0, drift)


AnyPolicy: TypeAlias = "NicParameters | Policy | CoalescingPolicy"


def make_policy(choice: AnyPolicy, dilation: float = 1.0) -> CoalescingPolicy:
    """The policy that NIC parameters name, or an adapter around a user's own one.

    A policy has state: make one for each rx queue. Times in the parameters are taken as they are;
    rates and profiles that a policy brings along, and all times of a user's own, are those of real
    hardware, and `dilation` is how much longer times are here.
    """
    if isinstance(choice, CoalescingPolicy):
        return choice
    if isinstance(choice, Policy):
        return PythonPolicy(choice, dilation)
    row = COALESCING.get(getattr(choice, "coalescing", ""))
    if row is None:
        raise InputError(
            f"a coalescing policy is a name ({', '.join(COALESCING_NAMES)}) or derives from "
            f"shrimpmx.nic.policy.Policy; {choice!r} is neither"
        )
    if row.lets_none_wait(choice.rx_usecs, choice.rx_frames):
        row = COALESCING["disabled"]
    kind: type[CoalescingPolicy] = object_at(row.implementation)
    return kind.from_parameters(choice, dilation)


def make_policies(
    choice: AnyPolicy | Callable[[], AnyPolicy], queues: int, dilation: float = 1.0
) -> list[CoalescingPolicy]:
    """A policy for each of a NIC's rx queues, as `make_policy` makes one.

    `choice` may also be a function that makes a user's policy, called once for each queue.
    InputError if one policy is to serve several queues.
    """
    if callable(choice) and not isinstance(choice, Policy | CoalescingPolicy):
        choices = [choice() for _ in range(queues)]
    else:
        choices = [choice] * queues
    own = [one for one in choices if isinstance(one, Policy | CoalescingPolicy)]
    if len({id(one) for one in own}) < len(own):
        raise InputError(
            f"a coalescing policy has state and serves one rx queue, but there are {queues}: give "
            "a function that makes a new one each time it is called"
        )
    return [make_policy(one, dilation) for one in choices]
