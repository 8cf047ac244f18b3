"""The loop of a simulated run: agents and tasks on emulated CPUs, under a virtual clock.

Agents are stepped as they are, and what they do takes as long as they say. A task is code that
waits, computes and sleeps through its Host: it is a coroutine, and goes on when its CPU has done
that. Nothing else takes time. What happens at one instant happens in a fixed order, so that a run
gives the same bytes each time.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL, NEVER_NS
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.control cimport Control
from shrimpmx.simulation.host cimport SimulatedHost
from shrimpmx.simulation.scheduler cimport Schedulable, Scheduler

import contextlib
import traceback

from greenlet import GreenletExit, getcurrent, greenlet

from shrimpmx.errors import AgentError, DeadlineError, InputError
from shrimpmx.simulation.fair import FairScheduler

# Handlers tick for ever. When no agent has done anything for so long, and no task has a time of its
# own, nothing more will happen: no timer of the protocol is longer than a second (ours).
cdef int64_t REST_NS = 5_000_000_000

cdef enum State:
    RUNNABLE, COMPUTING, POLLING, ASLEEP, ENDED

STATES = ("runnable", "computing", "polling", "asleep", "ended")
WORDS = ("is ready", "computes", "polls", "sleeps", "has ended")


cdef class Task(Schedulable):
    """Code on a CPU: a rank or a hog.

    Its state is what it waits for. `left_ns` of CPU time are missing until it has computed, or may
    look again, which it does every `period_ns`; it `offers` its CPU to others then. `until_ns` ends
    a poll or a sleep. `used_ns`: CPU time so far.
    """

    cdef readonly str name
    cdef readonly Cpu cpu
    cdef readonly SimulatedHost host
    cdef readonly int64_t looks
    cdef State status
    cdef bint offers
    cdef int64_t left_ns, until_ns, period_ns
    cdef uint64_t *news              # how much has happened on its node
    cdef uint64_t seen               # ... at its last look
    cdef uint64_t deeds              # its host's, then
    cdef object coroutine, switch    # ... to the loop
    cdef World world

    def __init__(self, World world not None, str name not None, uint32_t cpu, work, weight,
                 uint32_t node):
        if node >= world.nodes:
            raise IndexError(f"no node {node}; there are {world.nodes}")
        self.world = world
        self.news = &world.news[node]
        self.name = name
        self.weight = weight
        self.cpu = world.cpu(cpu)
        self.host = SimulatedHost(world.control, self)
        self.coroutine = greenlet(lambda: work(self.host), world.loop)
        self.switch = world.loop.switch

    @property
    def state(self):
        """What it waits for, one of STATES."""
        return STATES[self.status]

    # -- the operations of its Host ---------------------------------------------------

    cpdef int compute(self, int64_t duration_ns) except -1:
        return self._wait(COMPUTING, duration_ns, NEVER_NS)

    cpdef int poll(self, int64_t until_ns) except -1:
        return self._look(self.world.poll_ns, until_ns, False)

    cpdef int64_t offer(self, int64_t until_ns) except -1:
        self._look(self.world.yield_ns, until_ns, True)
        return self.looks

    cpdef int sleep(self, int64_t until_ns) except -1:
        self.sleeps += 1
        return self._wait(ASLEEP, 0, until_ns)

    def move(self, uint32_t cpu) -> None:
        """Go on upon another CPU. The task calls it itself."""
        cdef Cpu other = self.world.cpu(cpu)
        if other is self.cpu:
            return
        other.count(self.world.now_ns())
        other.scheduler.arrive(self, self.cpu.scheduler, self.world.now_ns())
        self.cpu.scheduler.leave()
        self.cpu = other
        self._wait(RUNNABLE, 0, NEVER_NS)

    cdef int _look(self, int64_t period_ns, int64_t until_ns, bint offers) except -1:
        self.period_ns = period_ns
        self.offers = offers
        self.looks = 0
        return self._wait(POLLING, period_ns, until_ns)

    cdef int _wait(self, State status, int64_t left_ns, int64_t until_ns) except -1:
        if self.world.closed:
            raise GreenletExit
        self.status = status
        self.left_ns = left_ns
        self.until_ns = until_ns
        self.switch()
        return 0

    # -- for its CPU ------------------------------------------------------------------

    cdef bint has_news(self, int64_t now_ns) noexcept:
        """Whether its next look is not in vain."""
        return self.until_ns <= now_ns or self.seen != self.news[0]

    cdef int goes_on(self) except -1:
        """Run its code until the next operation, or to its end."""
        cdef State before = self.status
        cdef uint64_t deeds
        self.status = RUNNABLE
        self.coroutine.switch()
        if self.coroutine.dead:
            self.status = ENDED
        deeds = self.host.deeds()
        # A look in vain is nothing that others could look for.
        if before != POLLING or self.status != POLLING or deeds != self.deeds:
            self.news[0] += 1
        self.deeds = deeds
        self.seen = self.news[0]
        return 0


cdef class Cpu:
    """An emulated CPU: the task that has it, and those that want it.

    Handlers come first: until `handling_until_ns` they have it. Tasks take turns as its scheduler
    says. `since_ns`: up to when the running task's time has been counted.
    """

    cdef World world
    cdef Scheduler scheduler
    cdef int64_t since_ns, handling_until_ns

    def __init__(self, World world not None, Scheduler scheduler not None):
        self.world = world
        self.scheduler = scheduler

    def handles(self, int64_t now_ns, int64_t until_ns) -> None:
        """A handler takes the CPU."""
        self.handle(now_ns, until_ns)

    cdef void handle(self, int64_t now_ns, int64_t until_ns) noexcept:
        if until_ns > now_ns and until_ns > self.handling_until_ns:
            self.count(now_ns)
            self.handling_until_ns = self.since_ns = until_ns

    cdef void count(self, int64_t now_ns) noexcept:
        """Count what the running task has had of the CPU."""
        cdef int64_t ran_ns = now_ns - self.since_ns
        cdef Task task
        if ran_ns <= 0:
            return
        self.since_ns = now_ns
        if self.scheduler.running is None:
            return
        self.scheduler.charge(ran_ns)
        task = <Task>self.scheduler.running
        task.used_ns += ran_ns
        if task.status != POLLING:
            task.left_ns = max(<int64_t>0, task.left_ns - ran_ns)
        elif ran_ns <= task.left_ns:
            task.left_ns -= ran_ns
        else:
            # It has looked in vain in between: the next look is at its period.
            ran_ns -= task.left_ns
            task.looks += (ran_ns + task.period_ns - 1) // task.period_ns
            task.left_ns = (task.period_ns - ran_ns % task.period_ns) % task.period_ns

    cdef int take(self, Task task, int64_t now_ns) except -1:
        """A task wants to run here; it may do so at once."""
        self.count(now_ns)
        self.scheduler.wake(task, now_ns)
        return 0

    cdef int act(self, int64_t now_ns) except -1:
        """Let the task go on whose turn it is, if it may; whether it did anything."""
        cdef Scheduler scheduler = self.scheduler
        if now_ns < self.handling_until_ns:
            return False
        if scheduler.running is None and not scheduler.waiting:
            return False
        self.count(now_ns)
        if scheduler.running is not None and scheduler.waiting:
            scheduler.review(now_ns)
        if scheduler.running is None:
            scheduler.dispatch(now_ns)
            self.since_ns = now_ns
        return self._go_on(<Task>scheduler.running, now_ns)

    cdef int _go_on(self, Task task, int64_t now_ns) except -1:
        if task.left_ns > 0:
            return False
        if task.status == POLLING:
            if task.offers and self.scheduler.waiting:
                task.looks += 1
                task.status = RUNNABLE
                self.scheduler.give_way(now_ns)
                self.since_ns = now_ns
                return True
            if not task.has_news(now_ns):
                return False
            task.looks += 1
        task.goes_on()
        if self.scheduler.running is task and task.status in (ASLEEP, ENDED):
            self.scheduler.leave()
        return True

    cdef int64_t due_ns(self) noexcept:
        """When something can happen here by itself; NEVER_NS: never."""
        cdef Task task
        cdef bint wanted = bool(self.scheduler.waiting)
        cdef int64_t due_ns = NEVER_NS, look_ns
        if self.scheduler.running is None:
            return self.handling_until_ns if wanted else NEVER_NS
        task = <Task>self.scheduler.running
        if wanted:
            due_ns = self.scheduler.turn_ends_ns()
        if task.status == POLLING:
            look_ns = self.since_ns + task.left_ns
            if task.has_news(look_ns) or (task.offers and wanted):
                due_ns = min(due_ns, look_ns)
            elif task.until_ns != NEVER_NS:
                due_ns = min(due_ns, max(task.until_ns, look_ns))
        else:
            due_ns = min(due_ns, self.since_ns + task.left_ns)
        return NEVER_NS if due_ns == NEVER_NS else max(due_ns, self.handling_until_ns)


cdef struct Seated:
    void *agent
    void *cpu                        # NULL: hardware, which needs none
    uint32_t node
    int64_t until_ns, worked_ns      # until when it works on its CPU; how long it has


cdef class World:
    """The agents, CPUs and tasks of one run.

    `agents` are triples: an agent, its node, and the number of its CPU, None for hardware that has
    none. Agents and tasks of a node meet there only: what happens on one is no news on another.
    `model` is a HostModel. InputError if the clock of `control` is not virtual.
    """

    cdef readonly Control control
    cdef readonly list tasks
    cdef object loop, model
    cdef dict cpus
    cdef list cpu_list, agents
    cdef Seated *seats
    cdef uint32_t seats_count, nodes
    cdef bint closed
    cdef uint64_t *news              # counts what tasks may look for, by node
    cdef int64_t poll_ns, yield_ns, deadline_ns
    cdef int64_t happened_ns         # when an agent last did something

    def __cinit__(self, Control control not None, agents, model, int64_t deadline_ns,
                  uint32_t nodes=1):
        if control.clock().kind != CLOCK_KIND_VIRTUAL:
            raise InputError("a simulated run needs a virtual clock")
        self.control = control
        self.loop = getcurrent()
        self.tasks, self.cpu_list, self.cpus = [], [], {}
        self.model = model
        self.poll_ns, self.yield_ns = model.poll_ns, model.yield_ns
        self.deadline_ns = deadline_ns
        self.agents = [agent for agent, _, _ in agents]
        self.nodes = nodes
        self.news = <uint64_t *>calloc(nodes, sizeof(uint64_t))
        self.seats = <Seated *>calloc(max(1, len(self.agents)), sizeof(Seated))
        if self.seats == NULL or self.news == NULL:
            raise MemoryError
        for agent, node, cpu in agents:
            self._seat(agent, node, None if cpu is None else self.cpu(cpu))

    def __dealloc__(self):
        free(self.seats)
        free(self.news)

    cdef int _seat(self, Agent agent, uint32_t node, Cpu cpu) except -1:
        if node >= self.nodes:
            raise IndexError(f"no node {node}; there are {self.nodes}")
        self.seats[self.seats_count].agent = <void *>agent
        self.seats[self.seats_count].node = node
        self.seats[self.seats_count].cpu = NULL if cpu is None else <void *>cpu
        self.seats_count += 1
        return 0

    def cpu(self, uint32_t number) -> Cpu:
        """The CPU of that number."""
        found = self.cpus.get(number)
        if found is None:
            found = self.cpus[number] = Cpu(
                self, FairScheduler(self.model.slice_ns, self.model.wakeup_ns))
            self.cpu_list.append(found)
        return found

    def add(self, name, uint32_t cpu, work, weight, uint32_t node=0) -> Task:
        """A task that does `work`, a function of its Host."""
        cdef Task task = Task(self, name, cpu, work, weight, node)
        self.tasks.append(task)
        task.cpu.take(task, self.now_ns())
        return task

    def run(self, until) -> None:
        """Let all go on until that holds; it is asked when a task has run.

        Raises what a task raises; AgentError if nothing will ever happen, with what each task waits
        for; DeadlineError.
        """
        while not until():
            while not self._act():
                self._pass_time()

    def close(self) -> None:
        """End the tasks of a run that is given up: each leaves its code where it waits."""
        cdef Task task
        self.closed = True
        for task in self.tasks:
            with contextlib.suppress(Exception):  # the run has an error of its own
                task.coroutine.throw()
            task.status = ENDED

    cdef int64_t now_ns(self) noexcept nogil:
        return self.control.header.clock.virtual_ns

    cdef int _act(self) except -1:
        """Let agents do what there is to do, then a task on each CPU; whether one has run."""
        cdef Cpu cpu
        cdef bint acted = False
        while self._step_agents():
            pass
        self._wake()
        for cpu in self.cpu_list:
            acted |= cpu.act(self.now_ns())
        return acted

    cdef int _step_agents(self) except -1:
        cdef int64_t now_ns = self.now_ns()
        cdef bint acted = False
        cdef uint32_t index
        cdef Seated *seat
        for index in range(self.seats_count):
            seat = &self.seats[index]
            if (<Agent>seat.agent).step(now_ns) > 0:
                self.news[seat.node] += 1
                acted = True
            if <void *>(<Agent>seat.agent).failure != <void *>None:
                self._fail(<Agent>seat.agent)
            if seat.cpu != NULL and (<Agent>seat.agent).busy_until_ns > now_ns:
                seat.worked_ns += (
                    (<Agent>seat.agent).busy_until_ns - max(now_ns, seat.until_ns))
                seat.until_ns = (<Agent>seat.agent).busy_until_ns
                (<Cpu>seat.cpu).handle(now_ns, seat.until_ns)
        if acted:
            self.happened_ns = now_ns
        return acted

    cdef int _fail(self, Agent agent) except -1:
        error = agent.failure
        text = "".join(traceback.format_exception(error))
        raise AgentError(f"{agent.name} failed: {error}", agent.name, text) from error

    def worked_ns(self) -> list[int]:
        """How long each agent has worked on its CPU, in the order in which they were given."""
        return [self.seats[index].worked_ns for index in range(self.seats_count)]

    cdef int _wake(self) except -1:
        cdef int64_t now_ns = self.now_ns()
        cdef Task task
        for task in self.tasks:
            if task.status == ASLEEP and (task.until_ns <= now_ns or task.host.is_roused()):
                task.status = RUNNABLE
                task.cpu.take(task, now_ns)
        return 0

    cdef int _pass_time(self) except -1:
        cdef int64_t now_ns = self.now_ns(), of_tasks_ns = NEVER_NS, of_agents_ns = NEVER_NS
        cdef int64_t next_ns
        cdef uint32_t index
        cdef Cpu cpu
        cdef Task task
        for cpu in self.cpu_list:
            of_tasks_ns = min(of_tasks_ns, cpu.due_ns())
        for task in self.tasks:
            if task.status == ASLEEP:
                of_tasks_ns = min(of_tasks_ns, task.until_ns)
        for index in range(self.seats_count):
            of_agents_ns = min(of_agents_ns, (<Agent>self.seats[index].agent).next_due_ns)
        next_ns = min(of_tasks_ns, of_agents_ns)
        if next_ns == NEVER_NS or (
                of_tasks_ns == NEVER_NS and now_ns - self.happened_ns > REST_NS):
            raise AgentError(f"nothing will ever happen again: {self.waits()}")
        if next_ns > self.deadline_ns:
            raise DeadlineError(f"the run did not end in its virtual time: {self.waits()}")
        self.control.header.clock.virtual_ns = max(next_ns, now_ns + 1)
        return 0

    def waits(self) -> str:
        """What each task waits for, in words."""
        cdef Task task
        return "; ".join([f"{task.name} {WORDS[task.status]}" for task in self.tasks])
