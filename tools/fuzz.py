"""Coverage-guided fuzzing of the receive path: from a frame to the application's request.

    python tools/fuzz.py --frames 1000000 --seed 1
    python tools/fuzz.py --replay build/fuzz/crashes/seed1-frame4711.bin

Two nodes talk under a virtual clock; between them frames are damaged, repeated and made up, and
handed to the first node, whose memory lies between guard pages: to its receive handler, or to its
NIC. Frames that reach a new edge of the compiled wire, link, host and mx code are kept and damaged
further. Every frame must be a legal one or a counted drop. Tells in the end how many branch targets
of each module were reached. Needs gcc; builds its own copy in build/fuzz.
Ends with exit code 1, and the last frames in a file, if the process crashes.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import fuzz_build
import inputs
from fuzz_world import GuardedMemory, World

from shrimpmx.native.files import write_whole

PLACE = fuzz_build.ROOT / "build/fuzz"
KEPT_FRAMES = 4096  # of those that reached something new
LAST_FRAMES, SLOT_BYTES, HEAD_BYTES = 512, 9 * 1024, 12  # what a crash leaves behind
WORLD_FRAMES = 20_000  # then two new nodes
BATCH_FRAMES = 16


class LastFrames:
    """The frames handed over last, and the seed of their world, in memory that outlives the
    process that crashes.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, HEAD_BYTES + LAST_FRAMES * SLOT_BYTES)
        self.count = 0

    def begin(self, world_seed: int) -> None:
        self._memory[8:HEAD_BYTES] = world_seed.to_bytes(HEAD_BYTES - 8, "big")

    def note(self, frame: bytes) -> None:
        start = HEAD_BYTES + self.count % LAST_FRAMES * SLOT_BYTES
        self._memory[start : start + 2 + len(frame)] = len(frame).to_bytes(2, "big") + frame
        self.count += 1
        self._memory[:8] = self.count.to_bytes(8, "big")

    def read(self) -> tuple[int, bytes]:
        """How many there were; the world's seed and the last frames, each behind its length."""
        count = int.from_bytes(self._memory[:8], "big")
        parts = [self._memory[8:HEAD_BYTES]]
        for number in range(max(0, count - LAST_FRAMES), count):
            start = HEAD_BYTES + number % LAST_FRAMES * SLOT_BYTES
            size = int.from_bytes(self._memory[start : start + 2], "big")
            parts.append(self._memory[start : start + 2 + size])
        return count, b"".join(parts)


class Fuzzer:
    """Makes frames and keeps those that reach something new."""

    def __init__(self, seed: int, last: LastFrames) -> None:
        from support import hostile

        self.hostile = hostile
        self.draw = random.Random(seed)
        self.last = last
        self.kept: list[bytes] = []
        self.coverage = ctypes.CDLL(os.environ["FUZZ_COVERAGE"])

    def frame(self, world: World) -> bytes:
        draw = self.draw
        choice = draw.random()
        if choice < 0.3 or not world.recent:
            return self.hostile.hostile_frame(draw, world.mtu, world.wire_format == "compatible")
        base = draw.choice(self.kept) if choice < 0.6 and self.kept else draw.choice(world.recent)
        form = draw.randrange(4)
        if form == 0:
            return base  # a duplicate, perhaps a very old one
        if form == 1:
            return self.hostile.damaged(draw, base)
        data = bytearray(base.ljust(60, b"\0"))
        if form == 2:
            other = draw.choice(world.recent)
            start = draw.randrange(16, 60)
            data[start : start + 8] = other[start : start + 8]
        else:
            width = draw.choice((1, 2, 4))
            start = draw.randrange(16, 60)
            value = int.from_bytes(data[start : start + width], "big") + draw.choice((-1, 1, 255))
            data[start : start + width] = (value % (1 << 8 * width)).to_bytes(width, "big")
        return bytes(data)

    def run(self, frames: int) -> None:
        start = shown = time.monotonic()
        world: World | None = None
        while self.last.count < frames:
            if world is None or self.last.count % WORLD_FRAMES < BATCH_FRAMES:
                world = None
                GuardedMemory.free()
                seed = self.draw.randrange(1 << 32)
                self.last.begin(seed)
                world = World(random.Random(seed))
            self._batch(world)
            if time.monotonic() > shown + 2 or self.last.count >= frames:
                shown = time.monotonic()
                rate = self.last.count / (shown - start)
                print(
                    f"{self.last.count:>9} frames, {self.coverage.edges_taken():>6} edges, "
                    f"{len(self.kept):>5} kept, {rate:,.0f} frames/s",
                    flush=True,
                )
        for module, count in sorted(targets_by_module(self.coverage).items()):
            print(f"{count:>9} branch targets of {module}")

    def _hand_over(self, world: World, frame: bytes, finish: bool) -> None:
        frame = frame[: SLOT_BYTES - 2]
        self.last.note(frame)
        world.take(frame, finish)
        if self.coverage.end_input():
            self._keep(frame)

    def _keep(self, *frames: bytes) -> None:
        self.kept.extend(frames)
        while len(self.kept) > KEPT_FRAMES:
            del self.kept[self.draw.randrange(KEPT_FRAMES)]

    def _batch(self, world: World) -> None:
        """Some frames, then what the library does about them."""
        frames = [self.frame(world) for _ in range(BATCH_FRAMES)]
        for number, frame in enumerate(frames):
            self._hand_over(world, frame, number == BATCH_FRAMES - 1)
        before = self.coverage.edges_taken()
        world.work()
        self.coverage.end_input()
        if self.coverage.edges_taken() != before:
            self._keep(*frames)
        world.check()

    def replay(self, path: Path) -> None:
        data = path.read_bytes()
        world = World(random.Random(int.from_bytes(data[: HEAD_BYTES - 8], "big")))
        data = data[HEAD_BYTES - 8 :]
        while data:
            size = int.from_bytes(data[:2], "big")
            finish = self.last.count % BATCH_FRAMES == BATCH_FRAMES - 1 or len(data) == 2 + size
            self._hand_over(world, data[2 : 2 + size], finish)
            data = data[2 + size :]
            if finish:
                world.work()
                world.check()


def targets_by_module(coverage: ctypes.CDLL) -> dict[str, int]:
    """Branch targets that were reached, by compiled module: "host/pull" and the like."""
    coverage.targets_taken.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    found: dict[str, int] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, _, *path = line.split(maxsplit=5)
        module = Path(*path)
        if "x" in rights and module.suffix == ".so" and module.parts[-2] in fuzz_build.INSTRUMENTED:
            start, end = (int(address, 16) for address in span.split("-"))
            name = f"{module.parent.name}/{module.name.partition('.')[0]}"
            found[name] = found.get(name, 0) + coverage.targets_taken(start, end)
    return found


def inside(options: argparse.Namespace) -> int:
    """Fuzz in a child and keep what it was doing if it crashes; the exit code."""
    ctypes.CDLL(os.environ["FUZZ_COVERAGE"], ctypes.RTLD_GLOBAL)
    last = LastFrames()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fuzzer = Fuzzer(options.seed, last)
            fuzzer.replay(options.replay) if options.replay else fuzzer.run(options.frames)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status == 0:
        print("no crash; every frame was a legal one or a counted drop")
        return 0
    how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "an error"
    count, data = last.read()
    crashes = PLACE / "crashes"
    path = crashes / f"seed{options.seed}-frame{count}.bin"
    write_whole(path, data)
    print(f"{how} at frame {count} of seed {options.seed}; the last frames are in {path}")
    return 1


def has_frames(path: Path) -> bool:
    """Whether there is something to replay; if not, says so."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES - 7)
        if len(head) > HEAD_BYTES - 8:
            return True
        reason = "it holds no frames"
    except OSError as error:
        reason = str(error.strerror)
    kept = PLACE / "crashes"
    print(f"fuzz.py: cannot replay {path}: {reason}; crashes are kept in {kept}", file=sys.stderr)
    return False


def main() -> int:
    """Build, then run the same program with the instrumented copy."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--address-sanitizer", action="store_true", help="slower; sees more")
    parser.add_argument("--replay", type=Path, help="frames of a crash")
    options = parser.parse_args()
    inputs.check(options, {"frames": (1, 10**12), "seed": inputs.SEED})
    if options.replay and not has_frames(options.replay):
        return 2
    if "FUZZ_COVERAGE" in os.environ:
        return inside(options)
    place = PLACE / ("address-sanitizer" if options.address_sanitizer else "plain")
    print(f"building in {place}", flush=True)
    environment = fuzz_build.build(place, options.address_sanitizer)
    return subprocess.call([sys.executable, *sys.argv], env=environment)


if __name__ == "__main__":
    raise SystemExit(main())
