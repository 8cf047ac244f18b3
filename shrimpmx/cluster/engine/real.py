"""What real processes on this machine cannot run."""

from __future__ import annotations

from shrimpmx.cluster.launch import Launch, check_command
from shrimpmx.cluster.rules import program_problems
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import InputError, NotHereError
from shrimpmx.native.cores import niceness_permitted


def check_real(spec: ClusterSpec) -> None:
    """NotHereError if it asks for another scheduler than this machine's, for times of computing
    that are none of its own, for switches, or for a priority that its ranks may not have.
    """
    if spec.nic.network != "direct":
        raise NotHereError(
            f"network={spec.nic.network} needs --engine simulated: real processes have a direct "
            "line between nodes"
        )
    if spec.compute != "none":
        raise NotHereError(
            f"compute={spec.compute} needs --engine simulated: a real program computes for as long "
            "as it takes here"
        )
    if spec.host.scheduler != "kernel":
        raise NotHereError(
            f"scheduler={spec.host.scheduler} needs --engine simulated: real processes have this "
            "machine's scheduler"
        )

    niceness = min(rank.niceness for rank in spec.ranks)
    permitted, why = niceness_permitted(niceness) if niceness < 0 else (True, "")
    if not permitted:
        raise NotHereError(f"company 'raised': {why}")


def check_programs(spec: ClusterSpec) -> None:
    """InputError if the program of a rank cannot be started."""
    for number, rank in enumerate(spec.ranks):
        if not rank.command:
            continue
        wait = spec.wait_of(number).strategy
        for problem in program_problems(wait if wait in spec.waits else ""):
            raise InputError(problem)
        check_command(rank.command, rank.launch or Launch())
