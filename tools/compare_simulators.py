"""What a message costs to simulate: this engine beside SimGrid's SMPI and ns-3.

    compare_simulators.py --nodes 2 64

Each node sends 1 KiB to the next one and receives from the one before, over and over. A figure is
CPU time per message: of a long run, less that of a short one, so that neither starting nor building
the network counts. SimGrid (Debian: libsimgrid-dev) and ns-3 (libns3-dev) model no host: they have
neither interrupts nor handlers, no library that matches and acknowledges, and no waiting.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
BYTES = 1024
# Messages of the long run, about; the short one has the first rounds only.
MESSAGES = 50_000
SHORT_ROUNDS = 2
LEAST_ROUNDS = 20
NS3_MODULES = ("point-to-point", "network", "stats", "core")
# Takes nodes and rounds, gives the command that simulates them.
Command = Callable[[int, int], list[str]]


class MissingError(Exception):
    """A simulator is not installed, or its program cannot be built."""


def _built(compiler: str, source: str, place: Path, options: Sequence[str] = ()) -> Path:
    program = place / f"{compiler}-ring"
    if shutil.which(compiler) is None:
        raise MissingError(f"{compiler} is not installed")
    words = [compiler, "-O2", str(HERE / source), "-o", str(program), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"{source} cannot be built: {done.stderr.strip()[-200:]}")
    return program


def own(_place: Path) -> Command:
    """This engine, by tools/simulated_scale.py: ranks block, frames pass a fat tree."""
    words = [sys.executable, str(HERE / "simulated_scale.py"), "ring", "--size-bytes", str(BYTES)]
    return lambda nodes, rounds: [*words, "--nodes", str(nodes), "--rounds", str(rounds)]


def simgrid(place: Path) -> Command:
    """SimGrid's SMPI: a rank for each host of a cluster with links of 10 Gb/s."""
    program = _built("smpicc", "simulators_ring.c", place)

    def command(nodes: int, rounds: int) -> list[str]:
        platform, hosts = place / f"{nodes}.xml", place / f"{nodes}.hosts"
        platform.write_text(
            "<?xml version='1.0'?>\n"
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            f'<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-{nodes - 1}" '
            'speed="1Gf" bw="1.25GBps" lat="500ns"/></platform>\n'
        )
        hosts.write_text("".join(f"n{number}\n" for number in range(nodes)))
        words = ["smpirun", "-np", str(nodes), "-platform", str(platform), "-hostfile", str(hosts)]
        return [*words, "--cfg=smpi/host-speed:1Gf", str(program), str(rounds), str(BYTES)]

    return command


def ns3(place: Path) -> Command:
    """ns-3: packets over point-to-point links of 10 Gb/s, no protocol above them."""
    libraries = [f"-lns3-{name}" for name in NS3_MODULES]
    program = _built("g++", "simulators_ring.cc", place, libraries)
    return lambda nodes, rounds: [str(program), str(nodes), str(rounds), str(BYTES)]


SIMULATORS = {"shrimpmx": own, "SimGrid SMPI": simgrid, "ns-3": ns3}


def cpu_s(command: Sequence[str]) -> float:
    """The CPU time of a command; MissingError if it fails."""
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"{command[0]} ended with {done.returncode}: {done.stderr[-200:]}")
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def message_us(command: Command, nodes: int, messages: int) -> float:
    """CPU time per message, in us."""
    rounds = max(LEAST_ROUNDS, messages // nodes)
    took_s = cpu_s(command(nodes, SHORT_ROUNDS + rounds)) - cpu_s(command(nodes, SHORT_ROUNDS))
    return 1e6 * took_s / (rounds * nodes)


def table(counts: Sequence[int], messages: int) -> list[str]:
    """A row for each simulator, a column for each number of nodes; a reason where there is none."""
    lines = [
        "| simulator | " + " | ".join(f"{count} nodes, µs a message" for count in counts) + " |",
        "| --- " * (1 + len(counts)) + "|",
    ]
    with tempfile.TemporaryDirectory() as place:
        for name, prepared in SIMULATORS.items():
            try:
                command = prepared(Path(place))
                cells = [f"{message_us(command, count, messages):.2g}" for count in counts]
            except MissingError as error:
                cells = [str(error)]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all and print the table; returns 0."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 64])
    parser.add_argument("--messages", type=int, default=MESSAGES)
    options = parser.parse_args(arguments)
    if min(*options.nodes, 4096) < 2 or options.messages < 1:
        parser.error("--nodes takes 2 and more, --messages 1 and more")
    print("\n".join(table(options.nodes, options.messages)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
