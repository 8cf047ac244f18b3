"""Coalescing policies by the names of the table of strategies, or by the user's own class."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeAlias

from shrimpmx.errors import InputError
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.strategies import CoalescingPolicy, PythonPolicy
from shrimpmx.settings.strategies import COALESCING, COALESCING_NAMES

if TYPE_CHECKING:
    from shrimpmx.settings.nic import NicParameters

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
    kind: type[CoalescingPolicy] = resolve_name(row.implementation)
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
