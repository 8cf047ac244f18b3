"""Coverage-guided fuzzing of the receive path: from a frame to the application's request.

    python tools/fuzz.py --frames 1000000 --seed 1
    python tools/fuzz.py --replay build/fuzz/crashes/seed1-frame4711.bin

Two nodes talk under a virtual clock; between them frames are damaged, repeated and made up, and
handed to the first node's receive handler, whose memory lies between guard pages. Frames that
reach a new edge of the compiled wire, link, host and mx code are kept and damaged further. Every
frame must be a legal one or a counted drop. Needs gcc; builds its own copy in build/fuzz.
Ends with exit code 1, and the last frames in a file, if the process crashes.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import mmap
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any, ClassVar

import fuzz_build

PLACE = fuzz_build.ROOT / "build/fuzz"
KEPT_FRAMES = 4096  # of those that reached something new
LAST_FRAMES, SLOT_BYTES = 512, 2048  # what a crash leaves behind
WORLD_FRAMES = 20_000  # then two new nodes
BATCH_FRAMES = 16
SIZES = (0, 1, 32, 33, 128, 129, 1452, 5000, 32768, 40_000, 200_000)


class LastFrames:
    """The frames handed over last, in memory that outlives the process that crashes."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8 + LAST_FRAMES * SLOT_BYTES)
        self.count = 0

    def note(self, frame: bytes) -> None:
        start = 8 + self.count % LAST_FRAMES * SLOT_BYTES
        self._memory[start : start + 2 + len(frame)] = len(frame).to_bytes(2, "big") + frame
        self.count += 1
        self._memory[:8] = self.count.to_bytes(8, "big")

    def read(self) -> tuple[int, bytes]:
        """How many there were, and the last of them, each behind its length."""
        count = int.from_bytes(self._memory[:8], "big")
        parts = []
        for number in range(max(0, count - LAST_FRAMES), count):
            start = 8 + number % LAST_FRAMES * SLOT_BYTES
            size = int.from_bytes(self._memory[start : start + 2], "big")
            parts.append(self._memory[start : start + 2 + size])
        return count, b"".join(parts)


class GuardedMemory:
    """Stands for Segment in the virtual cluster: its nodes get guard pages."""

    made: ClassVar[list[Any]] = []

    @classmethod
    def anonymous(cls, size_bytes: int, kind: int) -> Any:
        from support.guarded import GuardedSegment

        cls.made.append(GuardedSegment(-(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE))
        return cls.made[-1]

    @classmethod
    def free(cls) -> None:
        """Unmap all; nothing that used it is left."""
        gc.collect()
        while cls.made:
            cls.made.pop().close()


class World:
    """Two endpoints that keep sending to each other; `recent`: real frames for the first."""

    def __init__(self, draw: random.Random) -> None:
        from support import virtual_cluster

        from shrimpmx.settings.mx import MxParameters

        vars(virtual_cluster)["Segment"] = GuardedMemory
        self.draw = draw
        self.recent: list[bytes] = []
        self.cluster = virtual_cluster.VirtualCluster(seed=draw.randrange(1 << 30))
        parameters = MxParameters(resend_delay_ns=1_000_000, ack_delay_ns=100_000)
        self.one, self.other, self.to_other = self.cluster.pair(parameters)
        self.to_one = self.cluster.connect(self.other, 0)
        self.cluster.wire = self._wire
        self.handler = self.cluster.handlers[0]
        self._requests: list[tuple[Any, Any]] = []

    def _wire(self, frame: bytes) -> list[tuple[int, bytes]]:
        if frame[5] == 0:
            self.recent = [*self.recent[-63:], frame]
        return [] if self.draw.random() < 0.05 else [(1000, frame)]

    def work(self) -> None:
        """A few messages each way, and time passes."""
        from shrimpmx.errors import MxError

        draw = self.draw
        for endpoint, partner in ((self.one, self.to_other), (self.other, self.to_one)):
            if len(self._requests) < 64:
                size = draw.choice(SIZES)
                posted = (
                    functools.partial(endpoint.irecv, bytearray(size), 0, 0),
                    functools.partial(endpoint.isend, bytes(size), partner, 7),
                )
                for call in posted:
                    try:
                        self._requests.append((endpoint, call()))
                    except MxError:
                        return  # its partner was given up: as it should be
        for _ in range(4):
            self.cluster.step()
        self._requests = [(e, request) for e, request in self._requests if not e.test(request)]
        self.cluster.control.set_virtual_ns(self.cluster.now_ns + draw.choice((1000, 10**6)))
        self.cluster.frames.clear()

    def check(self) -> None:
        """Each frame that the handler saw was a legal one or a counted drop."""
        counts = self.cluster.control.agent_counters(0)
        sums = ("recv_packets", "recv_other_bytes", "recv_other_delay_ns")
        names = [n for n in counts if n.startswith(("recv_", "drop_")) and n not in sums]
        kept = sum(counts[n] for n in (*names, "unexp_eventq_full"))
        assert kept == counts["recv_packets"], {n: c for n, c in counts.items() if c}


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
            return self.hostile.hostile_frame(draw)
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
                world = World(self.draw)
            self._batch(world)
            if time.monotonic() > shown + 2 or self.last.count >= frames:
                shown = time.monotonic()
                rate = self.last.count / (shown - start)
                print(
                    f"{self.last.count:>9} frames, {self.coverage.edges_taken():>6} edges, "
                    f"{len(self.kept):>5} kept, {rate:,.0f} frames/s",
                    flush=True,
                )

    def _hand_over(self, world: World, frame: bytes, finish: bool) -> None:
        frame = frame[: SLOT_BYTES - 2]
        self.last.note(frame)
        world.handler.handle_frame(frame, finish)
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
        data, world = path.read_bytes(), World(self.draw)
        while data:
            size = int.from_bytes(data[:2], "big")
            self._hand_over(world, data[2 : 2 + size], True)
            data = data[2 + size :]
        world.work()
        world.check()


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
    crashes.mkdir(parents=True, exist_ok=True)
    path = crashes / f"seed{options.seed}-frame{count}.bin"
    path.write_bytes(data)
    print(f"{how} at frame {count} of seed {options.seed}; the last frames are in {path}")
    return 1


def has_frames(path: Path) -> bool:
    """Whether there is something to replay; if not, says so."""
    try:
        if path.stat().st_size:
            path.open("rb").close()
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
