"""Small clusters under drawn schedules: every seed is an order of steps, faults and deaths.

    python tools/schedules.py                      # seeds 1 to 1000
    python tools/schedules.py --seeds 5000-9000    # others
    python tools/schedules.py --seeds 4711         # one, again: what it drew, and what happened
    python tools/schedules.py --mutation lost-wake-up --seeds 1-200    # how many find it?
    python tools/schedules.py --sanitize           # 1 to 1000, with sanitizers

The compiled modules are built once more, into build/schedules, with the headers of
tests/support/scheduled: before each atomic operation, sleep and lock the agent whose turn it is may
have to wait, or die. Each seed runs twice, in processes of their own; both must take the same
steps. Prints the seeds that show a problem; exit code 1 then. With --mutation a mistake is built
in, in the copy that is compiled; exit code 1 if no seed shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import inputs
import sanitizers
from mutations import MUTATIONS as ALL_MUTATIONS
from mutations import Mutation

ROOT = Path(__file__).parents[1]
SCHEDULED = ROOT / "tests" / "support" / "scheduled"
WORLD = ROOT / "tests" / "support" / "scheduled_world.py"
# What a world needs; the rest of the project is not built again.
PACKAGES = "costs,native,shared,wire,link,wait,nic,host,mx,cluster"
# Files of a sanitizer's reports, in the tree.
REPORT = "report"
# Mistakes of tools/mutations.py that this world can show, and some that only it shows. The table in
# docs/testing.md says how many seeds find each.
SHOWN = (
    "lost-wake-up",
    "token-freed-without-a-second-look",
    "sleepers-left-by-the-dead",
    "copy-believed-without-a-second-look",
)
MUTATIONS = (
    *(one for one in ALL_MUTATIONS if one.name in SHOWN),
    Mutation(
        "wake-up-without-a-count", "shrimpmx/native/futex.h",
        "    fetch_add_u32(&slot->word, 1);\n    fetch_add_u64(&slot->wakes, 1);",
        "    fetch_add_u64(&slot->wakes, 1);", (),
    ),
    Mutation(
        "supervisor-waits-for-a-lock", "shrimpmx/host/endpoint.pyx",
        "closed = endpoint_lock_try(node.header, descriptor)",
        "closed = endpoint_lock_take(node.header, descriptor)", (),
    ),
)  # fmt: skip


def main() -> int:
    """Run the seeds; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=inputs.seeds, default="1-1000", help="A-B or one (1-1000)")
    names = [mutation.name for mutation in MUTATIONS]
    parser.add_argument("--mutation", choices=names, help="build with this mistake put in")
    parser.add_argument(
        "--tx-interrupts",
        action="store_true",
        help="completed sends interrupt in each seed's world",
    )
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help="build with AddressSanitizer and UndefinedBehaviorSanitizer",
    )
    parser.add_argument("--build", type=Path, help="where to build (build/schedules)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="seeds at a time")
    options = parser.parse_args()
    inputs.check(options, {"jobs": inputs.JOBS})
    seeds = options.seeds
    mutation = next((one for one in MUTATIONS if one.name == options.mutation), None)
    name = "schedules-sanitized" if options.sanitize else "schedules"
    tree = built(options.build or ROOT / "build" / name, mutation, sanitize=options.sanitize)
    if options.sanitize:
        os.environ["SHRIMPMX_SCHEDULER"] = str(tree / "libscheduler.so")
        sanitizers.prove(tree)
        os.environ |= sanitizers.environment(tree / REPORT)
    if options.tx_interrupts:
        os.environ["SHRIMPMX_TX_INTERRUPTS"] = "1"
    began, steps, wrong = time.monotonic(), 0, 0
    for result in results(tree, seeds, options.jobs, 1 if mutation else 2):
        steps += result["steps"]
        problem = "; ".join(result["problems"])
        if problem or len(seeds) == 1:
            said = problem or "no problem"
            print(f"seed {result['seed']}: {said}\n  {json.dumps(result)}", flush=True)
        wrong += bool(problem)
    took = time.monotonic() - began
    found = f"{len(seeds)} seeds, {steps} steps in {took:.0f} s: {wrong} with a problem"
    print(f"{options.mutation}: {found}" if mutation else found)
    if said := sanitizers.told(tree / REPORT):
        print(said)
        return 1
    return int(not wrong) if mutation else int(wrong > 0)


def built(tree: Path, mutation: Mutation | None, *, sanitize: bool = False) -> Path:
    """The tree with the scheduled build, made or brought up to date; with a mistake in it, or with
    sanitizers, whose former reports are removed.
    """
    for report in tree.glob(f"{REPORT}.*"):
        report.unlink()
    listed = subprocess.run(
        ["git", "ls-files", "setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE*",
         "shrimpmx"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.split():
        text = (ROOT / name).read_bytes()
        if mutation is not None and name == mutation.file:
            text = mutated(text.decode(), mutation).encode()
        write_changed(tree / name, text)
    changed = [
        write_changed(tree / path.relative_to(ROOT), path.read_bytes())
        for path in (SCHEDULED / "scheduler.h", *SCHEDULED.rglob("native/*.h"))
    ]
    if any(changed):  # setup.py does not know that the modules depend on these
        shutil.rmtree(tree / "build", ignore_errors=True)
        for path in (tree / "shrimpmx").rglob("*.so"):
            path.unlink()
    flags = [
        f"-I{tree / SCHEDULED.relative_to(ROOT)}",
        "-Dprocess_vm_readv=schedule_read -Dprocess_vm_writev=schedule_write",
        *([sanitizers.FLAGS] if sanitize else []),
    ]
    environment = os.environ | {"CFLAGS": " ".join(flags), "SHRIMPMX_BUILD": PACKAGES}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--parallel",
               str(os.cpu_count() or 1)]  # fmt: skip
    subprocess.run(command, cwd=tree, check=True, env=environment)
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-O2", "-D_GNU_SOURCE", "-std=gnu11", "-fPIC", "-shared",
         f"-I{tree / 'shrimpmx'}", "-o", str(tree / "libscheduler.so"),
         *map(str, sorted(SCHEDULED.glob("*.c")))],
        check=True,
    )  # fmt: skip
    return tree


def mutated(text: str, mutation: Mutation) -> str:
    """The text with the mistake."""
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.name}: {mutation.file} has not its old text once")
    return text.replace(mutation.old, mutation.new)


def write_changed(path: Path, data: bytes) -> bool:
    """Write a file unless it is as it is; a build then takes only what has changed. Whether it was
    written.
    """
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True


def results(tree: Path, seeds: range, jobs: int, times: int) -> Iterator[dict[str, Any]]:
    """What became of each seed, run so many times; in no order."""
    environment = os.environ | {
        "SHRIMPMX_SCHEDULER": str(tree / "libscheduler.so"),
        "PYTHONPATH": f"{tree}:{ROOT / 'tests'}",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",  # whose threads are no agents
    }
    players = [
        subprocess.Popen(
            [sys.executable, str(WORLD), str(first), str(seeds[-1]), str(jobs), str(times)],
            env=environment, cwd=tree, stdout=subprocess.PIPE, text=True,
        )
        for first in seeds[:jobs]
    ]  # fmt: skip
    with selectors.DefaultSelector() as selector:
        for player in players:
            selector.register(player.stdout, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                line = key.fileobj.readline()
                if not line:
                    selector.unregister(key.fileobj)
                    continue
                yield json.loads(line)
    if any(player.wait() for player in players):
        raise SystemExit("a player of worlds has failed")


if __name__ == "__main__":
    sys.exit(main())
