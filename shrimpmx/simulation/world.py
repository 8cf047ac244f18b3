"""The loop of a simulated run: agents and tasks on emulated CPUs, under a virtual clock.

Agents are stepped as they are, and what they do takes as long as they say. A task is code that
waits, computes and sleeps through its Host: it is a coroutine, and goes on when its CPU has done
that. Nothing else takes time. What happens at one instant happens in a fixed order, so that a run
gives the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from greenlet import getcurrent, greenlet

from shrimpmx.errors import AgentError, DeadlineError
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.model import HostModel
from shrimpmx.simulation.scheduler import FairQueue

# Handlers tick for ever. When no agent has done anything for so long, and no task has a time of its
# own, nothing more will happen: no timer of the protocol is longer than a second (ours).
REST_NS = 5_000_000_000

State = Literal["runnable", "computing", "polling", "asleep", "ended"]


class Task:
    """Code on a CPU: a rank or a hog. `weight` is its share of the CPU beside others.

    Its state is what it waits for. `left_ns` of CPU time are missing until it has computed, or may
    look again, which it does every `period_ns`; it `offers` its CPU to others then. `until_ns` ends
    a poll or a sleep, None: nothing does.
    """

    def __init__(
        self, world: World, name: str, cpu: int, work: Callable[[SimulatedHost], None], weight: int
    ) -> None:
        self.name, self.weight = name, weight
        self.state: State = "runnable"
        self.left_ns = 0
        self.until_ns: int | None = None
        self.seen = 0  # how much had happened at its last look
        self.period_ns, self.offers, self.looks = 0, False, 0
        self.used_ns = self.sleeps = self.preemptions = 0
        self.host = SimulatedHost(world.control, self)
        self.coroutine = greenlet(lambda: work(self.host), world.loop)
        self._world = world
        self.cpu = world.cpu(cpu)

    # -- the operations of its Host ---------------------------------------------------

    def compute(self, duration_ns: int) -> None:
        """Use so much CPU time."""
        self._wait("computing", duration_ns)

    def poll(self, until_ns: int | None) -> None:
        """Keep the CPU until something has happened that a look may show."""
        self._look(self._world.model.poll_ns, until_ns, offers=False)

    def offer(self, until_ns: int | None) -> int:
        """Let others on the CPU go first; alone there, as poll(). How often it has offered it."""
        self._look(self._world.model.yield_ns, until_ns, offers=True)
        return self.looks

    def sleep(self, until_ns: int | None) -> None:
        """Leave the CPU until its host is roused, or until then."""
        self.sleeps += 1
        self._wait("asleep", 0, until_ns)

    def move(self, cpu: int) -> None:
        """Go on upon another CPU. The task calls it itself."""
        self.cpu.running = None
        self.cpu = self._world.cpu(cpu)
        self.cpu.take(self, self._world.control.now_ns())
        self._wait("runnable", 0)

    def _look(self, period_ns: int, until_ns: int | None, *, offers: bool) -> None:
        self.period_ns, self.offers, self.looks = period_ns, offers, 0
        self._wait("polling", period_ns, until_ns)

    def _wait(self, state: State, left_ns: int, until_ns: int | None = None) -> None:
        self.state, self.left_ns, self.until_ns = state, left_ns, until_ns
        self._world.loop.switch()

    # -- for its CPU ------------------------------------------------------------------

    def has_news(self, now_ns: int) -> bool:
        """Whether its next look is not in vain."""
        late = self.until_ns is not None and self.until_ns <= now_ns
        return late or self.seen != self._world.happened

    def goes_on(self) -> None:
        """Run its code until the next operation, or to its end."""
        before, deeds = self.state, self.host.deeds()
        self.state = "runnable"
        self.coroutine.switch()
        if self.coroutine.dead:
            self.state = "ended"
        # A look in vain is nothing that others could look for.
        if [before, self.state] != ["polling", "polling"] or deeds != self.host.deeds():
            self._world.happened += 1
        self.seen = self._world.happened


@dataclass(eq=False)
class Cpu:
    """An emulated CPU: the task that has it, and those that want it.

    Handlers come first: until `handling_until_ns` they have it. `since_ns`: up to when the running
    task's time has been counted. `slice_until_ns`: when another one's turn comes.
    """

    model: HostModel
    queue: FairQueue[Task] = field(default_factory=FairQueue)
    running: Task | None = None
    since_ns: int = 0
    slice_until_ns: int = 0
    handling_until_ns: int = 0

    def handles(self, now_ns: int, until_ns: int) -> None:
        """A handler takes the CPU."""
        if until_ns > max(self.handling_until_ns, now_ns):
            self.count(now_ns)
            self.handling_until_ns = self.since_ns = until_ns

    def count(self, now_ns: int) -> None:
        """Count what the running task has had of the CPU."""
        ran_ns = now_ns - self.since_ns
        if ran_ns <= 0:
            return
        self.since_ns = now_ns
        task = self.running
        if task is None:
            return
        task.used_ns += ran_ns
        self.queue.charge(task, ran_ns, task.weight)
        if task.state == "polling":
            # It has looked in vain in between: the next look is at its period.
            task.looks += max(0, ran_ns - task.left_ns + task.period_ns - 1) // task.period_ns
            task.left_ns = (task.left_ns - ran_ns) % task.period_ns
        else:
            task.left_ns = max(0, task.left_ns - ran_ns)

    def take(self, task: Task, now_ns: int) -> None:
        """A task wants to run here; it may do so at once."""
        self.count(now_ns)
        self.queue.add(task)
        current = self.running
        if current is not None and self.queue.precedes(task, current, self.model.wakeup_ns):
            self._put_back(current)

    def act(self, now_ns: int) -> bool:
        """Let the task go on whose turn it is, if it may; False if not."""
        if now_ns < self.handling_until_ns:
            return False
        self.count(now_ns)
        if self.running is not None and self.queue and now_ns >= self.slice_until_ns:
            self._put_back(self.running)
        if self.running is None:
            if not self.queue:
                return False
            self._start(self.queue.take(), now_ns)
        assert self.running is not None
        return self._go_on(self.running, now_ns)

    def _start(self, task: Task, now_ns: int) -> None:
        self.running = task
        self.since_ns, self.slice_until_ns = now_ns, now_ns + self.model.slice_ns

    def _go_on(self, task: Task, now_ns: int) -> bool:
        if task.left_ns > 0:
            return False
        if task.state == "polling" and task.offers and self.queue:
            task.looks += 1
            task.state = "runnable"
            self._start(self.queue.take(), now_ns)
            self.queue.add(task)
            return True
        if task.state == "polling":
            if not task.has_news(now_ns):
                return False
            task.looks += 1
        task.goes_on()
        if task.state in ("asleep", "ended") and self.running is task:
            self.running = None
        return True

    def _put_back(self, task: Task) -> None:
        task.preemptions += 1
        self.running = None
        self.queue.add(task)

    def due_ns(self) -> int | None:
        """When something can happen here by itself; None: never."""
        task = self.running
        if task is None:
            return self.handling_until_ns if self.queue else None
        times = [self.slice_until_ns] if self.queue else []
        if task.left_ns > 0 and task.state != "polling":
            times.append(self.since_ns + task.left_ns)
        elif task.state == "polling":
            times += self._look_times(task)
        else:
            times.append(self.handling_until_ns)
        return max(min(times), self.handling_until_ns) if times else None

    def _look_times(self, task: Task) -> list[int]:
        """When a polling task looks with success, as far as that is known."""
        look_ns = self.since_ns + task.left_ns
        if task.has_news(look_ns) or (task.offers and self.queue):
            return [look_ns]
        return [] if task.until_ns is None else [max(task.until_ns, look_ns)]


class World:
    """The agents, CPUs and tasks of one run.

    `agents` are pairs of an agent and its CPU, None for hardware that needs none.
    """

    def __init__(
        self,
        control: Control,
        agents: Sequence[tuple[Agent, int | None]],
        model: HostModel,
        deadline_ns: int,
    ) -> None:
        self.control, self.model = control, model
        self.loop = getcurrent()
        self.happened = 0  # counts what tasks may look for
        self.tasks: list[Task] = []
        self._cpus: dict[int, Cpu] = {}
        self._agents = [(each, None if cpu is None else self.cpu(cpu)) for each, cpu in agents]
        self._deadline_ns = deadline_ns
        self._happened_ns = 0  # when an agent last did something

    def cpu(self, number: int) -> Cpu:
        """The CPU of that number."""
        if number not in self._cpus:
            self._cpus[number] = Cpu(self.model)
        return self._cpus[number]

    def add(self, name: str, cpu: int, work: Callable[[SimulatedHost], None], weight: int) -> Task:
        """A task that does `work`."""
        task = Task(self, name, cpu, work, weight)
        self.tasks.append(task)
        task.cpu.take(task, self.control.now_ns())
        return task

    def run(self, until: Callable[[], bool]) -> None:
        """Let all go on until that holds.

        Raises what a task raises; AgentError if nothing will ever happen, with what each task waits
        for; DeadlineError.
        """
        while not until():
            if not (self._step_agents() or self._wake() or self._act()):
                self._pass_time()

    def _step_agents(self) -> bool:
        now_ns = self.control.now_ns()
        done = 0
        for agent, cpu in self._agents:
            done += agent.step_at(now_ns)
            if cpu is not None:
                cpu.handles(now_ns, agent.working_until_ns)
        if done == 0:
            return False
        self.happened += 1
        self._happened_ns = now_ns
        return True

    def _wake(self) -> bool:
        now_ns = self.control.now_ns()
        woken = [
            task
            for task in self.tasks
            if task.state == "asleep"
            and (task.host.roused() or (task.until_ns is not None and task.until_ns <= now_ns))
        ]
        for task in woken:
            task.state = "runnable"
            task.cpu.take(task, now_ns)
        return bool(woken)

    def _act(self) -> bool:
        now_ns = self.control.now_ns()
        acted = False
        for cpu in list(self._cpus.values()):
            acted |= cpu.act(now_ns)
        return acted

    def _pass_time(self) -> None:
        now_ns = self.control.now_ns()
        times = [due for cpu in self._cpus.values() if (due := cpu.due_ns()) is not None]
        times += [t.until_ns for t in self.tasks if t.state == "asleep" and t.until_ns is not None]
        agents = [due for agent, _ in self._agents if (due := agent.due_ns) is not None]
        if not times and (not agents or now_ns - self._happened_ns > REST_NS):
            raise AgentError(f"nothing will ever happen again: {self.waits()}")
        next_ns = min([*times, *agents])
        if next_ns > self._deadline_ns:
            raise DeadlineError(f"the run did not end in its virtual time: {self.waits()}")
        self.control.set_virtual_ns(max(next_ns, now_ns + 1))

    def waits(self) -> str:
        """What each task waits for, in words."""
        words = {"asleep": "sleeps", "computing": "computes", "runnable": "is ready"}
        return "; ".join(f"{task.name} {words.get(task.state, 'waits')}" for task in self.tasks)
