"""Coalescing policies by name, or by the user's own class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shrimpmx.errors import InputError
from shrimpmx.nic.adaptive import Adaptive, MarksAdaptive
from shrimpmx.nic.coalescing import CoalescingPolicy
from shrimpmx.nic.dim import Dim, DimCqe
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.python_policy import PythonPolicy
from shrimpmx.nic.strategies import Disabled, OpenMx, Stream, Timeout
from shrimpmx.nic.watchdog import Watchdog
from shrimpmx.settings.parameters import NicParameters

AnyPolicy = NicParameters | Policy | CoalescingPolicy


@dataclass(frozen=True)
class Strategy:
    """A coalescing strategy: its rule and when it wins, in a sentence each; who makes the policy.

    `make(parameters, dilation)`: times of the parameters are dilated already; the dilation is for
    those that a policy brings along.
    """

    rule: str
    wins: str
    make: Callable[[NicParameters, float], CoalescingPolicy]


def _delay_ns(nic: NicParameters) -> int:
    return nic.rx_usecs * 1000


def _free(nic: NicParameters) -> bool:
    return nic.rx_timer == "free-running"


STRATEGIES: dict[str, Strategy] = {
    "disabled": Strategy(
        "an interrupt for each packet",
        "packets are few and each is waited for",
        lambda _nic, _dilation: Disabled(),
    ),
    "timeout": Strategy(
        "an interrupt rx_usecs after the first packet, or once rx_frames packets wait",
        "packets come in streams that nobody waits for one by one",
        lambda nic, _dilation: Timeout(_delay_ns(nic), nic.rx_frames, _free(nic)),
    ),
    "open-mx": Strategy(
        "a marked packet raises at once, others after rx_usecs",
        "messages have many packets, or are waited for",
        lambda nic, _dilation: OpenMx(_delay_ns(nic), nic.mark_resets_timer, _free(nic)),
    ),
    "stream": Strategy(
        "as open-mx, but a mark is put off while other packets are on their way",
        "small messages come in streams",
        lambda nic, _dilation: Stream(_delay_ns(nic), nic.mark_resets_timer, _free(nic)),
    ),
    "adaptive": Strategy(
        "at most 70 000, 20 000 or 4000 interrupts/s, by the size and number of packets of late",
        "nothing is marked and the traffic changes between single packets and streams",
        lambda nic, dilation: Adaptive(nic.adaptive_conservative, dilation),
    ),
    "marks-adaptive": Strategy(
        "a marked packet raises at once, others as under adaptive",
        "marked messages and other traffic share the NIC, and no one delay suits the latter",
        lambda nic, dilation: MarksAdaptive(nic.adaptive_conservative, dilation),
    ),
    "dim": Strategy(
        "a delay from the first packet and a packet limit, searched for anew every 64 interrupts",
        "traffic is steady over hundreds of interrupts, and nobody knows the right delay",
        lambda _nic, dilation: Dim(dilation),
    ),
    "dim-cqe": Strategy(
        "as dim, but each packet starts the delay anew",
        "packets come in bursts: one interrupt at a burst's end",
        lambda _nic, dilation: DimCqe(dilation),
    ),
    "watchdog": Strategy(
        "ranks poll; an interrupt only for packets that nobody has polled within rx_usecs",
        "ranks look for messages most of the time and now and then compute for long",
        lambda nic, _dilation: Watchdog(_delay_ns(nic)),
    ),
    "napi-defer": Strategy(
        "the handler leaves interrupts masked and polls by timer while there are packets",
        "packets keep coming, with gaps that are shorter than napi_defer_hard_irqs timers",
        lambda _nic, _dilation: Disabled(),
    ),
    "irq-suspend": Strategy(
        "while a rank polls and finds packets interrupts stay masked; else as napi-defer",
        "a rank is busy with messages under load, and latency counts when it is not",
        lambda _nic, _dilation: Disabled(),
    ),
}


def make_policy(choice: AnyPolicy, dilation: float = 1.0) -> CoalescingPolicy:
    """The policy that NIC parameters name, or an adapter around a user's own one.

    A policy has state: make one for each rx queue. Times in the parameters are taken as they are;
    rates and profiles that a policy brings along are those of real hardware, and `dilation` is how
    much longer times are here.
    """
    if isinstance(choice, CoalescingPolicy):
        return choice
    if isinstance(choice, Policy):
        return PythonPolicy(choice)
    if not isinstance(choice, NicParameters):
        raise InputError(
            f"a coalescing policy is a name ({', '.join(STRATEGIES)}) or derives from "
            f"shrimpmx.nic.policy.Policy; {choice!r} is neither"
        )
    return STRATEGIES[choice.coalescing].make(choice, dilation)


def make_policies(
    choice: AnyPolicy | Callable[[], AnyPolicy], queues: int, dilation: float = 1.0
) -> list[CoalescingPolicy]:
    """A policy for each of a NIC's rx queues, as `make_policy` makes one.

    `choice` may also be a function that makes a user's policy, called once for each queue.
    InputError if one policy is to serve several queues.
    """
    if isinstance(choice, NicParameters):
        return [make_policy(choice, dilation) for _ in range(queues)]
    if callable(choice) and not isinstance(choice, Policy | CoalescingPolicy):
        choices = [choice() for _ in range(queues)]
    else:
        choices = [choice] * queues
    if len({id(one) for one in choices}) < queues:
        raise InputError(
            f"a coalescing policy has state and serves one rx queue, but there are {queues}: give "
            "a function that makes a new one each time it is called"
        )
    return [make_policy(one, dilation) for one in choices]
