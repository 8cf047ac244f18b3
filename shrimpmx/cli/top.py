"""`shrimpmx top`: what a live run does, second by second."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import math
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.live import Live

from shrimpmx.cli.live_tables import Snapshot, live_tables
from shrimpmx.cluster.live.attach import AttachedRun
from shrimpmx.cluster.live.openmetrics import Counted
from shrimpmx.cluster.live.runs import choose_run, command_of, live_runs, next_run
from shrimpmx.cluster.live.view import live_view
from shrimpmx.errors import InputError, SegmentError
from shrimpmx.native.segment import RunIdentity
from shrimpmx.native.streams import tell
from shrimpmx.results.json_file import STANDARD_OUTPUT, JsonLines, json_place
from shrimpmx.show.terminal import console

# How often a run is read within a long interval: its end is seen this soon.
LOOK_S = 0.25
LEAST_S = 0.01
# How long the next run of a sweep may take to begin.
FOLLOW_S = 3.0
# How long an asked number of tables waits for its next one while runs end too soon for any.
PATIENCE_S = 5.0
PORT_MAX = 65535


Pause = Callable[[float], None]
Publish = Callable[[Counted], None]


class Keys:
    """The keys of a terminal that shows a view, each read as it is typed, if one is `shown`. A
    context manager.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._before: list[Any] | None = None

    def __enter__(self) -> None:
        typed = all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout))
        if self._shown and typed and _is_in_foreground():
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def pause(self, seconds: float) -> None:
        """Wait so long; KeyboardInterrupt, as for Ctrl-C, if q is typed meanwhile."""
        until = time.monotonic() + seconds
        while self._before is not None and seconds > 0:
            if select.select([sys.stdin], [], [], seconds)[0]:
                typed = os.read(sys.stdin.fileno(), 64)
                if b"q" in typed.lower():
                    raise KeyboardInterrupt
                if not typed:
                    break  # the terminal is gone
            seconds = until - time.monotonic()
        time.sleep(max(0.0, seconds))


def _is_in_foreground() -> bool:
    """Whether the terminal is this process's: elsewhere a change of it would stop the process."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # it controls another session, or none
        return False


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "top",
        description="Show a live run once a second: interrupts and packets of each core, rx "
        "queues and their affinities, processes and their waits. Ends with the run, or by q or "
        "Ctrl-C. docs/watching.md explains the columns.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="RUN-ID",
        help="id of a live run, or its first characters; default: the newest run of real "
        "processes, then the next runs of its sweep",
    )
    parser.add_argument(
        "--interval", type=_seconds, default=1.0, metavar="SECONDS", help="between two tables (1)"
    )
    times = parser.add_mutually_exclusive_group()
    times.add_argument("--once", action="store_true", help="end after one table")
    times.add_argument("--count", type=_count, metavar="N", help="end after N tables")
    parser.add_argument(
        "--json",
        type=json_place,
        metavar="PATH",
        help="also write one line of JSON per table there, at once; -: lines in place of tables",
    )
    parser.add_argument(
        "--metrics",
        type=_port,
        metavar="PORT",
        help="also serve all counters to Prometheus, at http://127.0.0.1:PORT/metrics; 0: any "
        "free port, which is printed",
    )
    parser.set_defaults(function=run)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > PORT_MAX:
        raise InputError(f"--metrics takes a port from 0 to {PORT_MAX}, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not LEAST_S <= seconds <= 86400:
        raise InputError(f"--interval takes seconds from {LEAST_S} to 86400, not {text!r}")
    return seconds


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise InputError(f"--count takes a whole number from 1 on, not {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Watch a run; returns 0, also when the run ends or Ctrl-C is typed meanwhile.

    InputError if a number of tables is asked for, and the runs of a sweep end too soon for one.
    """
    identity = choose_run(options.target, real=True)
    lines = JsonLines(options.json) if options.json else None
    asked = options.once or options.count is not None
    keys = Keys(shown=options.json != STANDARD_OUTPUT)
    with contextlib.ExitStack() as stack:
        publish: Publish = _ignore
        if options.metrics is not None:
            # Its HTTP server loads slowly.
            from shrimpmx.cli.metrics_server import MetricsServer

            server = stack.enter_context(MetricsServer(options.metrics))
            tell(f"metrics: {server.address}")
            publish = server.publish
        looks = _looks(
            identity,
            options.interval,
            keys.pause,
            publish,
            follow=options.target is None,
            patience_s=PATIENCE_S if asked else math.inf,
        )
        written = _written(looks, stack.enter_context(lines)) if lines else looks
        stack.enter_context(keys)
        stack.enter_context(contextlib.closing(looks))
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        _watch(written, options)
    return 0


def _ignore(_counted: Counted) -> None:
    """Nobody asks."""


def _written(looks: Iterable[Snapshot], lines: JsonLines) -> Iterator[Snapshot]:
    """The same, each of which is written first."""
    for look in looks:
        lines.write(asdict(look))
        yield look


def _watch(looks: Iterator[Snapshot], options: argparse.Namespace) -> None:
    """Show the looks, as many as are asked for."""
    terminal = console()
    count = 1 if options.once else options.count
    looks = itertools.islice(looks, count)
    shown: list[Snapshot] = []
    if options.json == STANDARD_OUTPUT:
        for _ in looks:
            pass
    elif terminal.is_terminal and not terminal.is_dumb_terminal and not options.once:
        with contextlib.suppress(OSError):  # the terminal was closed
            _fill_screen(terminal, looks, shown)
            _say_end(terminal, count, shown)
    else:
        for look in looks:
            if shown:
                terminal.print()
            shown.append(look)
            terminal.print(live_tables(look, None, terminal.width))
        _say_end(terminal, count, shown)


def _fill_screen(terminal: Console, looks: Iterable[Snapshot], shown: list[Snapshot]) -> None:
    """Draw each look over the one before; the last one stays behind."""
    try:
        with Live(
            "reading; q ends this view", console=terminal, screen=True, auto_refresh=False
        ) as screen:
            for look in looks:
                shown.append(look)
                screen.update(live_tables(look, terminal.height, terminal.width), refresh=True)
    finally:
        if shown:
            terminal.print(live_tables(shown[-1], None, terminal.width))


def _say_end(terminal: Console, count: int | None, shown: list[Snapshot]) -> None:
    if len(shown) != count:
        name = f"run {shown[-1].run}" if shown else "the run"
        terminal.print(f"{name} has ended")


def _looks(
    run: RunIdentity,
    interval_s: float,
    pause: Pause,
    publish: Publish,
    *,
    follow: bool,
    patience_s: float,
) -> Generator[Snapshot, None, None]:
    """What a run does in each interval until it ends; `follow`: then the next one of a sweep.

    InputError if no run gives anything to show for `patience_s` because each ends too soon.
    """
    going_on: RunIdentity | None = run
    limit = time.monotonic() + patience_s
    while going_on is not None:
        try:
            with AttachedRun(going_on) as attached:
                for look in _looks_at(attached, interval_s, pause, publish):
                    yield look
                    limit = time.monotonic() + patience_s
        except SegmentError:
            if going_on in live_runs():
                raise
        going_on = next_run(going_on, FOLLOW_S) if follow else None
        if going_on is not None and time.monotonic() > limit:
            raise InputError(_too_soon(interval_s))


def _looks_at(
    attached: AttachedRun, interval_s: float, pause: Pause, publish: Publish
) -> Iterator[Snapshot]:
    """One look after each interval; if the run ends within one, what was read of that so far."""
    before, look = attached.reading(), None
    command, position = command_of(attached.run), attached.position()
    name = attached.run.run_id
    publish(Counted(name, command, attached.age_s(), before))
    ends = time.monotonic() + interval_s
    while True:
        pause(max(0.0, min(LOOK_S, ends - time.monotonic())))
        if not attached.is_live():
            break
        after = attached.reading()
        publish(Counted(name, command, attached.age_s(), after))
        look = Snapshot(
            datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            name,
            command,
            attached.age_s(),
            len(attached.nodes),
            position,
            live_view(before, after),
        )
        if time.monotonic() >= ends:
            yield look
            before, look = after, None
            ends = time.monotonic() + interval_s
    if look is not None:
        yield look


def _too_soon(interval_s: float) -> str:
    step = min(interval_s, LOOK_S)
    if step <= LEAST_S:
        return "runs are too short to be watched: raise iterations"
    shorter = f"{max(LEAST_S, step / 5):.2f}"
    return f"runs end within the interval: use a shorter one, --interval {shorter}"
