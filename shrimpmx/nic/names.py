"""Coalescing policies by name, or by the user's own class."""

from __future__ import annotations

from shrimpmx.errors import InputError
from shrimpmx.nic.coalescing import CoalescingPolicy
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.python_policy import PythonPolicy
from shrimpmx.nic.strategies import Disabled, OpenMx, Stream, Timeout
from shrimpmx.params import COALESCING_NAMES, NicParameters


def make_policy(choice: NicParameters | Policy | CoalescingPolicy) -> CoalescingPolicy:
    """The policy that NIC parameters name, or an adapter around a user's own one.

    A policy has state: make one for each NIC.
    """
    if isinstance(choice, CoalescingPolicy):
        return choice
    if isinstance(choice, Policy):
        return PythonPolicy(choice)
    if not isinstance(choice, NicParameters):
        raise InputError(
            f"a coalescing policy is a name ({', '.join(COALESCING_NAMES)}) or derives from "
            f"shrimpmx.nic.policy.Policy; {choice!r} is neither"
        )
    delay_ns = choice.rx_usecs * 1000
    if choice.coalescing == "disabled":
        return Disabled()
    if choice.coalescing == "timeout":
        return Timeout(delay_ns, choice.rx_frames)
    kind = OpenMx if choice.coalescing == "open-mx" else Stream
    return kind(delay_ns, choice.mark_resets_timer)
