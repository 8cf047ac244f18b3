"""User-level threads of a process, which wait for sockets together.

The waiting paper's future work (section 7): "integration of this mechanism with user-level
threads". A thread that would wait for a socket lets another thread of the process run. The process
itself spins or blocks only when all its threads wait, and then once, for any of their sockets. The
threads are coroutines (greenlets): they switch only where they wait, so that what lies between two
waits needs no lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from greenlet import GreenletExit, getcurrent, greenlet

from shrimpmx.vmmc.process import Tally, VmmcProcess

# (stream, want_read, want_write) each; a selector's set of sockets may take a stream's place.
Waits = Sequence[tuple[Any, bool, bool]]

# A deadline that never comes, as compiled code has it.
NEVER_NS = 2**63 - 1


class DeadlockError(RuntimeError):
    """All threads of a scheduler wait for each other."""


class WaitingNetwork(Protocol):
    """What a scheduler needs of a Network."""

    wait_hook: Callable[[Waits, int], bool] | None

    @property
    def process(self) -> VmmcProcess: ...

    def wait_in_process(self, waits: Waits, deadline: int) -> Sequence[int]: ...


class Thread:
    """A user-level thread; made by Scheduler.spawn."""

    def __init__(
        self, scheduler: Scheduler, name: str, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        self.name = name
        self.done = False
        self._scheduler = scheduler
        self._function, self._args = function, args
        self._coroutine: greenlet | None = None  # from when it first runs
        self._value: Any = None
        self._error: BaseException | None = None
        self._ended = Condition(scheduler, f"the end of {name}")
        self._waits_for = ""  # in words, for a deadlock's report

    def __repr__(self) -> str:
        return f"<Thread {self.name}>"

    def join(self) -> Any:
        """Wait for the thread to end; returns what its function returned, or raises its error."""
        while not self.done:
            self._ended.wait()
        return self.result

    @property
    def result(self) -> Any:
        """What its function returned, or raises its error; RuntimeError while it runs."""
        if not self.done:
            raise RuntimeError(f"thread {self.name} has not ended")
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        """What its coroutine does."""
        try:
            self._value = self._function(*self._args)
        except GreenletExit as ended:
            self._error = ended
        except Exception as error:
            self._error = error
            if not self._ended.waiting:
                self._scheduler._fail(error)
        self.done = True
        self._ended.notify_all()


class Condition:
    """Something that threads wait for, and another thread tells them of."""

    def __init__(self, scheduler: Scheduler, what: str = "a condition") -> None:
        self.waiting: list[Thread] = []
        self._scheduler, self._what = scheduler, what

    def wait(self) -> None:
        """Wait for the next `notify_all`; RuntimeError outside of a thread."""
        thread = self._scheduler._running()
        thread._waits_for = self._what
        self.waiting.append(thread)
        self._scheduler._switch_away()

    def notify_all(self) -> None:
        """Let all waiting threads go on, in the order in which they came."""
        waiting, self.waiting = self.waiting, []
        for thread in waiting:
            self._scheduler._make_ready(thread)


class Scheduler:
    """The user-level threads of the process that `network` belongs to.

    While `run` runs, ordinary calls of sockets, of selectors, select() and Network.wait_any let
    other threads run instead of waiting. What waits otherwise, as VmmcProcess.map does, keeps the
    whole process waiting.
    """

    def __init__(self, network: WaitingNetwork) -> None:
        self._network = network
        self._now_ns = network.process.host.now_ns
        self._tally = Tally(network.process, "thread_switches")
        self._ready: deque[tuple[Thread, bool]] = deque()  # and what its wait returns
        # Of each thread that waits: for what, and until when.
        self._waits: dict[Thread, Waits] = {}
        self._deadlines: dict[Thread, int] = {}  # of those that have one
        self._alive: dict[Thread, None] = {}
        self._current: Thread | None = None
        self._last: Thread | None = None
        self._loop: greenlet | None = None
        self._failure: BaseException | None = None
        self._ending = False
        self._spawned = self._switches = self._counted = 0

    def spawn(self, function: Callable[..., Any], *args: Any) -> Thread:
        """A thread that calls `function(*args)`; it begins when others wait, in `run`."""
        name = f"{getattr(function, '__name__', 'thread')} {self._spawned}"
        self._spawned += 1
        thread = Thread(self, name, function, args)
        self._alive[thread] = None
        self._ready.append((thread, True))
        return thread

    def run(self) -> None:
        """Run until all threads are done.

        The first error of a thread that no other is joining ends them all and is raised; so do a
        stop of the run (AbortedError) and threads that all wait for each other (DeadlockError).
        Threads that are ended so get a GreenletExit where they wait.
        """
        if self._loop is not None:
            raise RuntimeError("the scheduler is running already")
        before, self._network.wait_hook = self._network.wait_hook, self.wait_any
        self._loop, self._ending = getcurrent(), False
        try:
            while self._alive:
                self._run_ready()
                if self._failure is not None:
                    raise self._failure
                if self._alive:
                    self._wait()
        finally:
            self._end_all()
            self._network.wait_hook = before
            self._loop = self._failure = None
            self._count()

    def current(self) -> Thread | None:
        """The thread that is running, if any is."""
        return self._current

    @property
    def switches(self) -> int:
        """Switches from one thread to another so far."""
        return self._switches

    def yield_(self) -> None:
        """Let the others run that can."""
        self._make_ready(self._running())
        self._switch_away()

    def sleep(self, duration_ns: int) -> None:
        """Let others run for so long."""
        self._deadlines[self._running()] = self._now_ns() + duration_ns
        self._switch_away()

    def wait_any(self, waits: Waits, deadline_ns: int = NEVER_NS) -> bool:
        """Let others run until any of `waits` is ready; False past the deadline (the run's clock).

        It may be ready no longer when this returns: another thread may have run before.
        """
        thread = self._running()
        self._waits[thread] = waits
        if deadline_ns != NEVER_NS:
            self._deadlines[thread] = deadline_ns
        return self._switch_away()

    # -- for threads and conditions

    def _running(self) -> Thread:
        if self._current is None:
            raise RuntimeError("only a thread of the scheduler can wait for others")
        return self._current

    def _make_ready(self, thread: Thread, value: bool = True) -> None:
        if not thread.done:
            self._ready.append((thread, value))

    def _fail(self, error: BaseException) -> None:
        if self._failure is None and not self._ending:
            self._failure = error

    def _switch_away(self) -> bool:
        """From a thread to the loop; returns what its wait is to return."""
        if self._ending:
            raise GreenletExit("the scheduler is ending its threads")
        assert self._loop is not None
        return bool(self._loop.switch())

    # -- the loop

    def _run_ready(self) -> None:
        """Let each thread run that can, once, until it waits."""
        ready = self._ready
        for _ in range(len(ready)):
            thread, value = ready.popleft()
            self._resume(thread, value)
            if self._failure is not None:
                return

    def _resume(self, thread: Thread, value: bool) -> None:
        if thread is not self._last:
            self._switches += 1
            self._last = thread
        self._current = thread
        try:
            if thread._coroutine is None:
                thread._coroutine = greenlet(thread._run, self._loop)
                thread._coroutine.switch()
            else:
                thread._coroutine.switch(value)
        finally:
            self._current = None
            if thread._coroutine is None or thread._coroutine.dead:
                self._alive.pop(thread, None)

    def _wait(self) -> None:
        """For any socket of all threads; without waiting if a thread can run meanwhile."""
        if not self._waits and not self._deadlines:
            if not self._ready:
                raise DeadlockError(self._deadlock())
            return
        self._count()
        deadline_ns = 0 if self._ready else min(self._deadlines.values(), default=NEVER_NS)
        owners = [thread for thread, waits in self._waits.items() for _ in waits]
        union = [wait for waits in self._waits.values() for wait in waits]
        # A thread may have several that are ready.
        for thread in dict.fromkeys(
            owners[index] for index in self._network.wait_in_process(union, deadline_ns)
        ):
            self._end_wait(thread, True)
        if self._deadlines:
            now_ns = self._now_ns()
            for thread in [one for one, until in self._deadlines.items() if until <= now_ns]:
                self._end_wait(thread, False)

    def _end_wait(self, thread: Thread, ready: bool) -> None:
        self._waits.pop(thread, None)
        self._deadlines.pop(thread, None)
        self._make_ready(thread, ready)

    def _deadlock(self) -> str:
        waits = ", ".join(f"{thread.name} for {thread._waits_for}" for thread in self._alive)
        return f"all threads wait for each other, and none for a socket: {waits}"

    def _end_all(self) -> None:
        """End the threads that are left, where they wait; what they still wake is not run."""
        self._ending = True
        for thread in list(self._alive):
            self._current = thread
            if thread._coroutine is not None:
                thread._coroutine.throw(GreenletExit)
            else:
                thread.done, thread._error = True, GreenletExit()
        self._current = None
        for kept in (self._alive, self._ready, self._waits, self._deadlines):
            kept.clear()

    def _count(self) -> None:
        self._tally.add(self._switches - self._counted)
        self._counted = self._switches
