"""The loop of a simulated run: agents and tasks on emulated CPUs, under a virtual clock.

Agents are stepped as they are, and what they do takes as long as they say. A task is code that
waits, computes and sleeps through its Host: it is a coroutine, and goes on when its CPU has done
that. Nothing else takes time. What happens at one instant happens in a fixed order, so that a run
gives the same bytes each time.
"""

import contextlib

cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_Import
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, note_paid, pay
from shrimpmx.costs.rows cimport (
    COST_idle_exit_ns, COST_interrupt_exit_ns, COST_interrupt_stall_ns, COST_nic_step_ns,
    COST_poll_ns, COST_preempt_ns, COST_reschedule_cost_ns, COST_sleep_call_ns, COST_switch_ns,
    COST_timer_cancel_ns, COST_timer_late_ns, COST_timer_set_ns, COST_timer_stall_ns,
    COST_wake_call_ns, COST_wake_here_call_ns, COST_wake_ns, COST_warm_up_ns, COST_yield_ns,
    cost_row,
)
from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL, NEVER_NS
from shrimpmx.native.perf cimport SwitchLog
from shrimpmx.shared.control cimport Control
from shrimpmx.simulation.agents cimport DRAWN_WAKE_UPS, Agenda, Agents
from shrimpmx.simulation.group cimport FAILED, Group
from shrimpmx.simulation.host cimport SimulatedHost
from shrimpmx.simulation.logged cimport LoggedCpu
from shrimpmx.simulation.scheduler cimport Scheduler
from shrimpmx.simulation.sleeping cimport wake_ups, wake_ups_of
from shrimpmx.simulation.tally cimport Tally
from shrimpmx.simulation.tasks cimport (
    ASLEEP, COMPUTING, ENDED, POLLING, QUIET_NS, RUNNABLE, State, Waiting, are_in_vain, deadlock_of,
    lateness_of, sets_timer,
)

from greenlet import GreenletExit, greenlet

from shrimpmx.costs.meter import OF_COMPANY
from shrimpmx.errors import InputError

cdef enum:
    # Places in greenlet's C interface (greenlet.h), which spares a switch its Python calls.
    GREENLET_CURRENT = 4
    GREENLET_SWITCH = 6

ctypedef object (*current_function)()
ctypedef object (*switch_function)(object one, PyObject *arguments, PyObject *named)

cdef void **GREENLETS = <void **>PyCapsule_Import("greenlet._C_API", 0)
cdef current_function current_greenlet = <current_function>GREENLETS[<int>GREENLET_CURRENT]
cdef switch_function switch_to = <switch_function>GREENLETS[<int>GREENLET_SWITCH]

# No timer of agents is longer, unless the caller of World says so (ours).
REST_NS = 5_000_000_000
cdef uint32_t NO_PASSES = 0xFFFFFFFF


@cython.final
cdef class Task(Waiting):
    """Code on a CPU: a rank or a hog. `used_ns`: CPU time so far."""
    cdef readonly Cpu cpu
    cdef uint32_t index, node, process  # in the world's list; where it is; its process
    cdef Task next_here              # another one of its node
    cdef uint64_t deeds              # its host's at its last look, if it polls
    cdef object coroutine
    cdef bint begun, done            # its code has begun; it has come to its end
    cdef object waits                # the coroutine that goes on: this one, or a thread of its code
    cdef World world

    def __init__(self, World world not None, str name not None, uint32_t cpu, work,
                 uint32_t node, nice, policy, gang, realtime, Prices prices):
        Waiting.__init__(self, nice, policy, gang, realtime)
        if node >= world.agents.nodes:
            raise IndexError(f"no node {node}; there are {world.agents.nodes}")
        self.world, self.node = world, node
        self.news = &world.agents.news[node]
        self.name = name
        self.cpu = world.cpu(cpu)
        self.host = SimulatedHost(
            world.control, self, world.prices if prices is None else prices)
        self.coroutine = self.waits = greenlet(lambda: self._live(work), world.loop)

    def _live(self, work):
        try:
            work(self.host)
        finally:
            self.done = True

    # -- the operations of its Host ---------------------------------------------------

    cpdef int compute(self, int64_t duration_ns) except -1:
        return self._wait(COMPUTING, duration_ns, NEVER_NS)

    cpdef int poll(self, int64_t until_ns) except -1:
        cdef int64_t poll_ns = self.world.prices.list.ns[COST_poll_ns]
        self._look(max(self.host.pass_ns, poll_ns), until_ns, False)
        note_paid(self.host.meter.paid,
                  COST_poll_ns if self.period_ns == poll_ns else COST_nic_step_ns,
                  self.looks, self.looks * self.period_ns)
        return 0

    cpdef int64_t offer(self, int64_t until_ns) except -1:
        cdef int64_t yield_ns = self.world.prices.list.ns[COST_yield_ns]
        self._look(yield_ns + self.host.price_ns(COST_reschedule_cost_ns), until_ns, True)
        note_paid(self.host.meter.paid, COST_yield_ns, self.looks, self.looks * yield_ns)
        note_paid(self.host.meter.paid, COST_reschedule_cost_ns, self.looks,
                  self.looks * (self.period_ns - yield_ns))
        self.kernel_ns += self.looks * self.period_ns
        return self.looks

    cpdef int sleep(self, int64_t until_ns) except -1:
        while True:
            self.sleeps += 1
            self._wait(ASLEEP, 0, until_ns)
            # A notification may have ended it, which is nothing that it slept for.
            if self.host.is_roused() or self.world.now_ns() >= self.until_ns:
                return 0

    def move(self, uint32_t cpu) -> None:
        """Go on upon another CPU. The task calls it itself."""
        cdef Cpu other = self.world.cpu(cpu)
        cdef int64_t now_ns = self.world.now_ns()
        if other is self.cpu:
            return
        other.count(now_ns)
        other.drawn_ns(0, DRAWN_WAKE_UPS)
        other.handle(now_ns, now_ns + other.wakes_for(self, now_ns))
        other.scheduler.arrive(self, self.cpu.scheduler, now_ns)
        self.cpu.left_ns = now_ns
        self.cpu.leaves(now_ns)
        self.cpu = other
        self.world.cpu_turns.mark(other.index)
        self._wait(RUNNABLE, 0, NEVER_NS)

    cdef int _look(self, int64_t period_ns, int64_t until_ns, bint offers) except -1:
        self.period_ns, self.offers, self.looks = period_ns, offers, 0
        return self._wait(POLLING, period_ns, until_ns)

    cdef int _wait(self, State status, int64_t left_ns, int64_t until_ns) except -1:
        if self.world.closed:
            raise GreenletExit
        self.status, self.left_ns, self.until_ns = status, left_ns, until_ns
        self.waits = current_greenlet()
        return self.world.hand_over(self)

    # -- for its CPU ------------------------------------------------------------------

    cdef void calls(self, int64_t now_ns, int64_t call_ns) noexcept:
        """A call, a switch or an interrupt takes its CPU so long: time that it has had."""
        self.cpu.calls(now_ns, call_ns)
        self.used_ns, self.kernel_ns = self.used_ns + call_ns, self.kernel_ns + call_ns
        if self.cpu.scheduler.running is self:
            self.cpu.scheduler.charge(now_ns, call_ns)

    cdef void has_gone_on(self) noexcept:
        """Its code has run until its next operation, or to its end."""
        cdef uint64_t deeds
        cdef bint polls
        if self.done:
            self.status = ENDED
        elif self.status == ASLEEP:
            self.timer_ns = self.until_ns
            self.world.task_turns.set_due(self.index, self.timer_ns)
        polls = self.status == POLLING
        deeds = self.host.deeds() if polls else 0
        # A look in vain is nothing that others could look for.
        if not self.polls or not polls or deeds != self.deeds:
            self.world.agents.note(self.node)
        self.world.agents.look(self.node)
        self.world.agents.pollers[self.node] += polls - self.polls
        self.deeds, self.polls = deeds, polls
        self.seen = self.news[0]


@cython.final
cdef class Cpu(LoggedCpu):
    """An emulated CPU: handlers have it first, until `handling_until_ns`; tasks take turns as its
    scheduler says. `since_ns`: up to when the running task's time has been counted.
    """

    cdef World world
    cdef uint32_t index              # in the world's list
    cdef Scheduler scheduler
    cdef int64_t since_ns
    cdef Task last                   # the one whose state it holds; None: it was idle

    def __init__(self, World world not None, Scheduler scheduler not None):
        self.world, self.scheduler, self.wakes = world, scheduler, &world.wakes

    cdef int64_t exit_ns(self) noexcept:
        if self.scheduler.running is None:
            return 0
        return self.world.prices.list.ns[COST_interrupt_exit_ns]

    cdef int64_t preempt_ns(self) noexcept:
        return self.world.prices.list.ns[COST_preempt_ns] if self.has_tasks() else 0

    cdef void brings(self, Task task, int64_t from_ns, cost_row way, cost_row stall) noexcept:
        """An interrupt that will begin a task is on its way, to a core at work for longer; that
        stops at the end of the way, before a task of real-time priority begins."""
        cdef int64_t way_ns = pay(&task.host.meter, way), stall_ns = 0
        if self.has_tasks():
            way_ns += pay(&task.host.meter, COST_preempt_ns)
        way_ns = self.drawn_ns(way_ns, DRAWN_WAKE_UPS)
        if task.realtime > 0 and self.has_tasks():
            stall_ns = min(way_ns, self.world.prices.list.ns[stall])
        task.comes(from_ns + way_ns, stall_ns, stall)

    cdef int64_t wakes_for(self, Task task, int64_t now_ns) noexcept:
        """What the core takes to wake up, for a task."""
        cdef int64_t exit_ns = self.wake_up_ns(now_ns)
        if exit_ns != 0:
            note_paid(task.host.meter.paid, COST_idle_exit_ns, 1, exit_ns)
        return exit_ns

    cdef bint begins(self, Task task, int64_t now_ns) noexcept:
        """Whether a task that comes may have this core now. Until it begins the core stops, if the
        task will take it from one of lower priority; else it goes on."""
        cdef Task stopped = <Task>self.scheduler.running
        cdef int64_t stall_ns = task.stall_ns, taken_ns = max(0, self.handling_until_ns - now_ns)
        task.stall_ns = 0
        if stall_ns > 0 and (stopped is None or stopped.realtime >= task.realtime):
            task.comes_ns += stall_ns
            return False
        if stall_ns > taken_ns:
            self.count(now_ns)
            stopped.calls(now_ns, note_paid(
                task.host.meter.paid, task.stalled_by, 1, stall_ns - taken_ns))
        return True

    cdef void handle(self, int64_t now_ns, int64_t until_ns) noexcept:
        if until_ns > now_ns and until_ns > self.handling_until_ns:
            self.count(now_ns)
            self.handling_until_ns = self.since_ns = until_ns
            self.world.cpu_turns.mark(self.index)

    cdef void count(self, int64_t now_ns) noexcept:
        cdef int64_t ran_ns = now_ns - self.since_ns
        if ran_ns <= 0:
            return
        self.since_ns = now_ns
        if self.scheduler.running is None:
            return
        self.scheduler.charge(now_ns, ran_ns)
        (<Task>self.scheduler.running).runs(ran_ns)

    cdef int take(self, Task task, int64_t now_ns) except -1:
        """A task wants to run here: at once, or when a sleeping core has woken up."""
        self.count(now_ns)
        self.handle(now_ns, now_ns + self.wakes_for(task, now_ns))
        self.scheduler.wake(task, now_ns)
        self.world.cpu_turns.mark(self.index)
        return 0

    cdef void interrupt(self, Task task, int64_t now_ns) noexcept:
        """The task handles its notifications before it goes on."""
        cdef int64_t cost_ns = task.host.handle_notifications()
        if cost_ns > 0 and task.status != ENDED:
            self.count(now_ns)
            task.left_ns += cost_ns
            self.world.cpu_turns.mark(self.index)

    cdef Task next_one(self, int64_t now_ns):
        """The task whose turn it is and whose code may go on; None: there is none."""
        cdef Scheduler scheduler = self.scheduler
        if now_ns < self.handling_until_ns or not self.has_tasks():
            return None
        self.count(now_ns)
        if scheduler.running is not None and scheduler.waiting:
            scheduler.review(now_ns)
        if scheduler.running is None:
            scheduler.dispatch(now_ns)
            self.since_ns = now_ns
        self.gets((<Task>scheduler.running).process, now_ns)
        if scheduler.running is not self.last:
            self.last = <Task>scheduler.running
            self.last.left_ns += pay(&self.last.host.meter, COST_warm_up_ns)
            self.last.calls(now_ns, pay(&self.last.host.meter, COST_switch_ns))
        if now_ns >= self.handling_until_ns and self._may_go_on(<Task>scheduler.running, now_ns):
            return <Task>scheduler.running
        return None

    cdef int _may_go_on(self, Task task, int64_t now_ns) except -1:
        cdef bint yields
        if task.left_ns > 0:
            return False
        if task.status == POLLING:
            yields = task.offers and self.scheduler.waiting
            if yields and self.scheduler.give_way(now_ns):
                task.looks += 1
                task.status = RUNNABLE
                self.since_ns = now_ns
                self.world.lives = True
                return False
            if not task.has_news(now_ns):
                if yields:
                    # In vain: it does so again.
                    task.looks += 1
                    task.left_ns = task.period_ns
                return False
            task.looks += 1
        return True

    cdef int has_let_go_on(self, Task task, int64_t now_ns) except -1:
        """The code of the task whose turn it was has run: the CPU is another's if it waits."""
        cdef int64_t call_ns
        if self.scheduler.running is task and task.status in (ASLEEP, ENDED):
            call_ns = pay(&task.host.meter, COST_sleep_call_ns)
            if task.status == ASLEEP and sets_timer(self.world.tick_ns, task.until_ns, now_ns):
                call_ns += pay(&task.host.meter, COST_timer_set_ns)
            task.calls(now_ns, call_ns)
            self.scheduler.leave()
            self.left_ns = now_ns
            if not self.scheduler.waiting:
                self.last = None
            self.leaves(now_ns)
        return 0

    cdef bint has_tasks(self) noexcept:
        return self.scheduler.running is not None or bool(self.scheduler.waiting)

    cdef int64_t due_ns(self) noexcept:
        """When something can happen here by itself; NEVER_NS: never."""
        cdef Task task = <Task>self.scheduler.running
        cdef bint wanted = bool(self.scheduler.waiting), yields
        cdef int64_t due_ns = NEVER_NS, look_ns
        if task is None:
            return self.handling_until_ns if wanted else NEVER_NS
        if wanted:
            due_ns = self.scheduler.turn_ends_ns(self.since_ns)
        if task.status == POLLING:
            look_ns = self.since_ns + task.left_ns
            yields = task.offers and wanted and self.scheduler.may_give_way()
            if yields or task.has_news(look_ns):
                due_ns = min(due_ns, look_ns)
            elif task.until_ns != NEVER_NS:
                due_ns = min(due_ns, max(task.until_ns, look_ns))
        else:
            due_ns = min(due_ns, self.since_ns + task.left_ns)
        return NEVER_NS if due_ns == NEVER_NS else max(due_ns, self.handling_until_ns)


@cython.final
cdef class World:
    """The agents, CPUs and tasks of one run.

    `agents` are triples: an agent, its node, and the number of its CPU, None for hardware. Agents
    and tasks of a node meet there only: what happens on one is no news on another.
    `model` are HostModelParameters; `scheduler` makes the Scheduler of a CPU, given its number;
    `asleep` gives the numbers of the CPUs without which it does not sleep, its own apart.
    `switches` gets those of all CPUs; what is drawn has a `seed`. Agents do nothing for `rest_ns`
    at most, if they will do anything again. InputError if the clock of `control` is not virtual.

    Only what has a turn is looked at: agents as Agents says, CPUs and tasks if due or changed.
    `outside` is an Outside, if anything but agents and tasks may act; else None.
    """

    cdef readonly Control control
    cdef readonly list tasks
    cdef public object outside
    cdef object loop, scheduler, asleep, seed
    cdef SwitchLog switches
    cdef dict cpus
    cdef list cpu_list, tasks_of_node  # the latter: the first task of each
    cdef readonly Agents agents
    cdef Agenda cpu_turns, task_turns
    cdef bint closed
    cdef Task acts                   # it has just run; None: agents have
    cdef Prices prices               # of its hosts
    cdef int64_t tick_ns
    cdef wake_ups wakes
    cdef int64_t deadline_ns, rest_ns
    cdef Group group                 # None: it has all
    cdef readonly list own_tasks     # of its group
    # The turns of tasks. The one that waits finds the next one, and lets it go on by itself.
    cdef object until                # what run() waits for; None: nothing but time
    cdef int64_t place               # of the last CPU that had its turn in this pass; -1: none has
    cdef bint passed                 # the pass is over: all CPUs have had their turn
    cdef bint lives                  # ... and a task has gone on in it: so does the instant
    cdef bint stops                  # run() returns
    cdef Task turn                   # run() is to begin its code
    cdef object trouble              # run() is to raise it
    # In its group.
    cdef uint32_t passes             # of this instant
    cdef int64_t end_ns              # of the part of a window that it goes on for
    cdef uint32_t most_passes        # ... of its last instant

    def __cinit__(self, Control control not None, agents, model, scheduler, int64_t deadline_ns,
                  uint32_t nodes=1, asleep=lambda _number: (), SwitchLog switches=None,
                  int64_t rest_ns=REST_NS, seed=0):
        if control.clock().kind != CLOCK_KIND_VIRTUAL:
            raise InputError("a simulated run needs a virtual clock")
        self.control, self.loop = control, current_greenlet()
        self.tasks, self.cpu_list, self.cpus = [], [], {}
        self.scheduler, self.asleep, self.switches, self.seed = scheduler, asleep, switches, seed
        self.prices = Prices(model.model_dump(), (), False, seed, OF_COMPANY)
        self.tick_ns = model.tick_ns
        self.wakes, self.deadline_ns, self.rest_ns = wake_ups_of(model), deadline_ns, rest_ns
        self.cpu_turns, self.task_turns = Agenda(), Agenda()
        self.tasks_of_node = [None] * nodes
        seated = [(agent, node, None if cpu is None else self.cpu(cpu))
                  for agent, node, cpu in agents]
        self.agents = Agents(control, seated, nodes)

    def cpu(self, uint32_t number) -> Cpu:
        found = self.cpus.get(number)
        if found is None:
            found = self.cpus[number] = Cpu(self, self.scheduler(number))
            (<Cpu>found).index = <uint32_t>self.cpu_turns.add_one()
            (<Cpu>found).draw_from(self.seed, number)
            found.use_log(self.switches, number, self.now_ns())
            self.cpu_list.append(found)
            for other in self.asleep(number):
                if other in self.cpus:
                    (<Cpu>found).sleep_with(self.cpus[other])
        return found

    def add(self, name, uint32_t cpu, work, uint32_t node=0, int nice=0, policy="normal",
            int gang=-1, int realtime=0, uint32_t process=0, Prices prices=None,
            agent=None) -> Task:
        """A task that does `work`, a function of its Host, and takes turns as a Schedulable. It
        pays by `prices`, which include those of the model (None: these), as that `agent`.
        """
        cdef Task task = Task(self, name, cpu, work, node, nice, policy, gang, realtime, prices)
        if agent is not None:
            task.host.pay_as(agent)
        task.index, task.process = <uint32_t>self.task_turns.add_one(), process
        task.next_here = self.tasks_of_node[node]
        self.tasks_of_node[node] = task
        self.tasks.append(task)
        task.cpu.take(task, self.now_ns())
        return task

    def run(self, until, goes_on=False) -> None:
        """Let all go on until that holds; it is asked when a task has run. Raises what a task
        raises; DeadlockError if nothing will ever happen, with what each waits for; DeadlineError.
        `goes_on`: the caller has changed nothing since the last time.
        """
        if not goes_on:
            self._look_everywhere()
        self.until, self.passed, self.lives = until, True, True
        self._let_go_on()
        if self.now_ns() > self.deadline_ns:
            raise lateness_of(self.tasks)

    cdef int _let_go_on(self) except -1:
        """Let tasks go on until one finds that run() is to return, or raises."""
        cdef Task task
        self.turn, self.stops = None, False
        while True:
            task, self.turn = self.turn, None
            if task is None:
                task = self._next_turn()
            if self.stops:
                return 0
            task.begun = True
            switch_to(task.waits, NULL, NULL)
            if self.trouble is not None:
                error, self.trouble = self.trouble, None
                raise error
            if self.stops:
                return 0
            if self.acts.done:
                self._has_gone_on(self.acts)

    cdef int hand_over(self, Task task) except -1:
        """The code of a task waits: let others go on until it is its turn."""
        cdef Task other = None
        try:
            self._has_gone_on(task)
            other = self._next_turn()
        except BaseException as error:
            self.trouble = error
        if other is None:
            switch_to(self.loop, NULL, NULL)
        elif not other.begun:
            # All begin at one depth of the stack.
            self.turn = other
            switch_to(self.loop, NULL, NULL)
        elif other is not task:
            switch_to(other.waits, NULL, NULL)
        return 0

    cdef Task _next_turn(self):
        """Go on up to the next task whose code is to; None: run() is to return."""
        cdef Cpu cpu
        cdef Task task
        while True:
            if self.passed:
                self.stops = self._is_over()
                if self.stops:
                    return None
                self._begin_pass()
            self.place = self.cpu_turns.take_from(<uint32_t>(self.place + 1))
            if self.place < 0:
                self.passed = True
                continue
            cpu = self.cpu_list[self.place]
            task = cpu.next_one(self.now_ns())
            if task is not None:
                task.status = RUNNABLE
                self.acts = task
                return task
            self._end_turn(cpu)

    cdef int _has_gone_on(self, Task task) except -1:
        cdef Cpu cpu = self.cpu_list[self.place]  # where its turn was
        task.has_gone_on()
        cpu.has_let_go_on(task, self.now_ns())
        self.lives = True
        return self._end_turn(cpu)

    cdef int _end_turn(self, Cpu cpu) except -1:
        self.cpu_turns.set_due(cpu.index, cpu.due_ns())
        return self._tell_tasks()

    cdef int _begin_pass(self) except -1:
        """Let agents do what there is to do; then CPUs have their turns."""
        cdef int64_t now_ns = self.now_ns()
        self.acts = None
        self.agents.step(now_ns)
        self._tell_tasks()
        self._wake()
        self.cpu_turns.mark_due(now_ns)
        self.place, self.passed, self.lives = -1, False, False
        return 0

    cdef bint _is_over(self) except -1:
        """After a pass: whether run() is to return; if not, time has passed where it is to."""
        if self.group is not None:
            return self._is_over_in_group()
        if not self.lives:
            self._pass_time()
            return False
        if isinstance(self.until, Tally):
            return (<Tally>self.until).is_full()
        return self.until()

    def join(self, Group group not None, uint32_t number) -> None:
        """Have only the agents and tasks of that group from now on."""
        cdef Task task
        group.begin(number)
        for task in self.tasks:
            if group.is_foreign(task.node):
                self.task_turns.forget(task.index)
                self.cpu_turns.forget(task.cpu.index)
                self.tasks_of_node[task.node] = None
        self.group = group
        self.own_tasks = [task for task in self.tasks if not group.is_foreign(task.node)]

    def run_part(self, until, goes_on=False) -> bool:
        """run() in all groups at once, each of which says by `until` whether its part is there;
        False if one process has to go on from where the groups began."""
        cdef Group group = self.group
        group.mine.is_done = False
        self.passes = 0
        try:
            if not goes_on:
                self._look_everywhere()
            if until():
                self._is_done()
            self._show()
            if not group.meet() or not group.plan(begins=True):
                return False
            self.lives = True
            while True:
                if not group.mine.is_done:
                    self._go_up_to(group.end_ns, NO_PASSES, until)
                self._show()
                if not group.meet():
                    return False
                done = group.count_done()
                if done == group.count:
                    break
                if done != 0:
                    # Only now is it known that the window does not end here for those.
                    if group.mine.is_done:
                        self._go_up_to(group.end_ns, NO_PASSES, None)
                    self._show()
                    if not group.meet():
                        return False
                group.exchange()
                if not group.plan(begins=False):
                    return False
            self._go_up_to(group.done_ns + 1, group.done_passes, None)
            self.control.header.clock.virtual_ns = group.done_ns
            self._show()
            if not group.meet():
                return False
            group.exchange()
            return group.done_ns <= self.deadline_ns
        except Exception:
            # One process will raise it.
            group.trouble_is(FAILED)
            group.meet()
            return False

    cdef int _go_up_to(self, int64_t end_ns, uint32_t passes, until) except -1:
        """Go on up to that time, exclusive, and no further than so many passes of the last instant;
        or until its part is there."""
        self.end_ns, self.most_passes = end_ns, passes
        self.until, self.passed = until, True
        return self._let_go_on()

    cdef bint _is_over_in_group(self) except -1:
        cdef int64_t next_ns
        if not self.lives:
            next_ns = max(self._next_ns(), self.group.from_ns, self.now_ns() + 1)
            if next_ns >= self.end_ns:
                return True
            self.control.header.clock.virtual_ns = next_ns
            self.passes = 0
        elif self.until is not None and self.until():
            self._is_done()
            return True
        elif self.now_ns() >= self.end_ns - 1 and self.passes >= self.most_passes:
            return True
        self.passes += 1
        return False

    cdef int64_t _next_ns(self) noexcept:
        """When something can happen by itself; NEVER_NS: never."""
        return min(self.agents.turns.first_ns(),
                   min(self.cpu_turns.first_ns(), self.task_turns.first_ns()))

    cdef int _is_done(self) except -1:
        """The part of its group is there."""
        cdef Group group = self.group
        group.mine.is_done, group.mine.done_ns = True, self.now_ns()
        group.mine.done_passes = self.passes
        return 0

    cdef int _show(self) except -1:
        """Note where its group stands."""
        cdef Group group = self.group
        group.mine.next_ns, group.mine.agents_ns = self._next_ns(), self.agents.turns.first_ns()
        group.mine.happened_ns, group.mine.last_ns = self.agents.happened_ns, self.now_ns()
        group.mine.is_in_vain = (
            group.end_ns - self.agents.happened_ns > group.quiet_ns
            and are_in_vain(self.own_tasks))
        return 0

    def end_wait(self, Task task not None) -> None:
        """The task goes on as if the time of its poll or sleep were over."""
        task.ends_wait(self.now_ns())
        self.task_turns.mark(task.index)
        self.cpu_turns.mark(task.cpu.index)

    def close(self) -> None:
        """End the tasks of a run that is given up, and keep nothing of it in memory."""
        cdef Task task
        cdef Cpu cpu
        self.closed = True
        for task in self.tasks:
            with contextlib.suppress(Exception):  # the run has an error of its own
                task.coroutine.throw()
            task.status = ENDED
            task.host = task.cpu = task.next_here = None
        for cpu in self.cpu_list:
            cpu.others = []
        self.tasks, self.cpu_list, self.cpus, self.tasks_of_node = [], [], {}, []
        self.scheduler = self.asleep = self.acts = self.outside = self.until = self.turn = None
        self.group, self.own_tasks = None, []
        self.agents = Agents(self.control, [], 0)
        self.cpu_turns, self.task_turns = Agenda(), Agenda()

    cdef int64_t now_ns(self) noexcept nogil:
        return self.control.header.clock.virtual_ns

    cdef int _look_everywhere(self) except -1:
        """Anything may have changed."""
        self.agents.look_everywhere()
        return self._tell_tasks()

    cdef int _tell_tasks(self) except -1:
        """On nodes with news, see which sleeping tasks are roused, and which CPUs' tasks poll."""
        cdef int64_t node = self.agents.noted.take_from(0)
        cdef Task task
        while node >= 0:
            task = self.tasks_of_node[node]
            while task is not None:
                if task.status == ASLEEP:
                    if task.host.is_roused() or task.host.is_notified():
                        self._rouse(task)
                else:
                    if task.host.is_notified():
                        task.cpu.interrupt(task, self.now_ns())
                    if task.status == POLLING:
                        self.cpu_turns.mark(task.cpu.index)
                task = task.next_here
            node = self.agents.noted.take_from(<uint32_t>node + 1)
        return 0

    cdef int _rouse(self, Task task) except -1:
        """Something wakes a task: its caller by a call; another CPU learns of it later."""
        cdef int64_t now_ns = self.now_ns(), from_ns = now_ns
        cdef bint is_here = self.acts is not None and self.acts.cpu is task.cpu
        if not task.woken:
            task.woken = True
            if self.acts is None:
                is_here = task.cpu.handling_until_ns >= now_ns
            else:
                from_ns += self.acts.pass_left_ns()
                self.acts.calls(now_ns, pay(
                    &self.acts.host.meter,
                    COST_wake_here_call_ns if is_here else COST_wake_call_ns))
            if is_here:
                task.comes(from_ns, 0, COST_interrupt_stall_ns)
            else:
                task.cpu.brings(task, from_ns, COST_wake_ns, COST_interrupt_stall_ns)
        self.task_turns.mark(task.index)
        return 0

    cdef int _wake(self) except -1:
        cdef int64_t now_ns = self.now_ns(), index = -1
        cdef Task task
        self.task_turns.mark_due(now_ns)
        while True:
            index = self.task_turns.take_from(<uint32_t>(index + 1))
            if index < 0:
                return 0
            task = self.tasks[index]
            if task.status == ASLEEP and now_ns >= task.timer_ns:  # a time ends its sleep
                task.cpu.brings(task, now_ns, COST_timer_late_ns, COST_timer_stall_ns)
                task.timer_ns = NEVER_NS
            if task.status == ASLEEP and (
                    now_ns < task.comes_ns or not task.cpu.begins(task, now_ns)):
                self.task_turns.set_due(task.index, min(task.comes_ns, task.timer_ns))
            elif task.status == ASLEEP:
                task.comes_ns, task.woken = NEVER_NS, False
                self.task_turns.set_due(task.index, NEVER_NS)
                task.status = RUNNABLE
                if sets_timer(self.tick_ns, task.until_ns, now_ns):
                    task.left_ns = pay(&task.host.meter, COST_timer_cancel_ns)
                    task.kernel_ns += task.left_ns
                task.cpu.take(task, now_ns)
                task.cpu.interrupt(task, now_ns)

    cdef int _pass_time(self) except -1:
        cdef int64_t now_ns = self.now_ns(), next_ns = self.agents.turns.first_ns()
        cdef int64_t quiet_ns = now_ns - self.agents.happened_ns
        cdef bint in_vain = quiet_ns > min(QUIET_NS, self.rest_ns) and are_in_vain(self.tasks)
        if self.outside is not None and self.outside.acts():
            return 0
        if not in_vain:
            next_ns = min(next_ns, self.cpu_turns.first_ns(), self.task_turns.first_ns())
        elif quiet_ns > self.rest_ns:
            # Handlers tick for ever; no agent has done anything for longer than any timer takes.
            next_ns = NEVER_NS
        if next_ns == NEVER_NS:
            if self.outside is not None and self.outside.goes_on():
                return 0
            raise deadlock_of(self.tasks)
        # Time beyond the deadline shows whether something comes for tasks that look in vain.
        if next_ns > self.deadline_ns and not in_vain:
            raise lateness_of(self.tasks)
        self.control.header.clock.virtual_ns = max(next_ns, now_ns + 1)
        return 0
