"""The control segment: one per run, attached by every process.

It holds the clock, the stop word, one record per process (its wait slot, state and
account of waiting) and one per agent (its counters).
"""

from os import getpid

from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memset, strncpy

from shrimpmx.native.atomics cimport full_fence, load_acquire_u32, store_release_u32
from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL, Clock, clock_initialise, clock_now_ns
from shrimpmx.native.futex cimport futex_wake, wait_slot, wait_slot_rouse
from shrimpmx.native.lock cimport shared_lock_initialise
from shrimpmx.shared.layout cimport (
    AGENT_DMA, AGENT_HOG, AGENT_IRQ, AGENT_NIC, AGENT_RANK, AGENT_SWITCH, COUNTERS_MAX,
    RECORD_COUNTERS, STOP_ABORT, STOP_FINISH, STOP_NO, agent_paid, agent_record,
    control_agent, control_header, control_runner, counter_name, runner_record, wait_account,
)
from shrimpmx.shared.node cimport control_fits
from shrimpmx.shared.section cimport (
    CONTEXT_SETS, SHOWN_MESSAGES, control_file_pointers, control_process_section,
    control_run_section, control_section_counters, control_shown, process_section, run_section,
    shown_message, shown_wait,
)

from shrimpmx.costs.table import COSTS
from shrimpmx.errors import AgentError, MachineError, SegmentError
from shrimpmx.native.streams import shown_name

AGENT_KINDS = {
    "nic": AGENT_NIC,
    "irq": AGENT_IRQ,
    "rank": AGENT_RANK,
    "hog": AGENT_HOG,
    "dma": AGENT_DMA,
    "switch": AGENT_SWITCH,
}
RUNNER_STATES = ("starting", "ready", "running", "done", "failed")
STOP_STATES = {"no": STOP_NO, "finish": STOP_FINISH, "abort": STOP_ABORT}
# So often a reader tries to see whole what a rank writes.
SHOWN_LOOKS = 1000
SHOWN_KINDS = ("nothing", "send", "receive", "collective")
_SECTION = (
    "elapsed_ns", "user_ns", "system_ns", "task_clock_ns", "voluntary_switches",
    "involuntary_switches", "minor_faults", "major_faults",
)
_KIND_NAMES = {number: name for name, number in AGENT_KINDS.items()}


# Whether this process simulates only a part of its run: others have the counters of the rest.
_is_part = False


def has_part(is_part: bool) -> None:
    """Say whether this process simulates only a part of its run."""
    global _is_part
    _is_part = is_part


cdef int check_whole() except -1:
    if _is_part:
        raise AgentError("counters of all agents are asked for where only some are")
    return 0


def _names_of(kind):
    cdef const char *name
    names = []
    for index in range(COUNTERS_MAX):
        name = counter_name(AGENT_KINDS[kind], index)
        if name == NULL:
            break
        names.append(name.decode())
    return names


# The names of all counters, once: a run has thousands of agents.
cdef dict COUNTER_NAMES = {kind: _names_of(kind) for kind in AGENT_KINDS}
cdef list PAID_NAMES = [(cost.times_counter, cost.total_counter) for cost in COSTS.values()]


def counter_names(kind: str) -> list:
    """Names of the counters that agents of `kind` keep, in their order in memory."""
    return list(COUNTER_NAMES[kind])


cdef dict _counted(str kind, const uint64_t *counters):
    cdef uint32_t index
    cdef list names = COUNTER_NAMES[kind]
    return {names[index]: counters[index] for index in range(<uint32_t>len(names))}


cdef dict _paid(const uint64_t *paid):
    cdef uint32_t index
    found = {}
    for index in range(<uint32_t>len(PAID_NAMES)):
        if paid[2 * index] != 0:
            times, total = PAID_NAMES[index]
            found[times], found[total] = paid[2 * index], paid[2 * index + 1]
    return found


cdef str _kind_of(const agent_record *record):
    if record.kind not in _KIND_NAMES:
        raise _damaged(f"an agent of kind {record.kind}")
    return _KIND_NAMES[record.kind]


def _damaged(what):
    return AgentError(
        f"the run's memory is damaged: it has {what}, so a program of the run wrote to it"
    )


cdef dict _account(wait_account account):
    return {
        "waits": account.waits,
        "at_once": account.at_once,
        "while_spinning": account.while_spinning,
        "timeouts": account.timeouts,
        "spin_ns": account.spin_ns,
        "yields": account.yields,
        "blocks": account.blocks,
        "races": account.races,
        "system_calls": account.system_calls,
        "interrupts_enabled": account.interrupts_enabled,
        "notifications": account.notifications,
        "limits_ns": account.limits_ns,
    }


cdef wait_account _no_waits
memset(&_no_waits, 0, sizeof(_no_waits))
# The figures of an account.
ACCOUNT = frozenset(_account(_no_waits))


cdef int64_t _work_began_ns(control_header *header):
    """When the last rank that the run began with has begun to work."""
    cdef uint32_t runner
    cdef int64_t last_ns = 0
    for runner in range(header.runners_count):
        if not control_process_section(header, runner).spawned:
            last_ns = max(last_ns, control_process_section(header, runner).began_ns)
    return last_ns


cdef str _name(bytes name):
    """A name out of a record, which programs can write to."""
    return shown_name(name.partition(b"\0")[0].decode(errors="replace"))


cdef dict _message(const shown_message *message):
    return {
        "kind": SHOWN_KINDS[message.kind] if message.kind < len(SHOWN_KINDS) else "nothing",
        "peer": message.peer,
        "world_peer": message.world_peer,
        "tag": message.tag,
        "length": message.length,
        "comm": _name(message.comm[:sizeof(message.comm)]),
    }


cdef class Control:
    """A process's view of the control segment; keeps the segment attached."""

    def __init__(self, segment):
        self.segment = segment
        self.memory = segment.view()
        self.header = <control_header *><uintptr_t>segment.address

    @staticmethod
    def size_bytes(runners: int, agents: int) -> int:
        """Bytes that a control segment of so many processes and agents needs."""
        records = runners * (sizeof(runner_record) + sizeof(shown_wait) + sizeof(process_section))
        records += agents * (sizeof(agent_record) + RECORD_COUNTERS * sizeof(uint64_t))
        records += CONTEXT_SETS * (sizeof(uint64_t) + sizeof(uint32_t))
        return sizeof(control_header) + sizeof(run_section) + records

    @classmethod
    def create(cls, segment, runners: list, agents: list, nodes_count: int, clock: str = "tsc"):
        """Lay out a new control segment.

        `runners`: names of the processes; `agents`: (name, kind, index of its process);
        `clock`: "tsc", "monotonic" or "virtual".
        """
        cdef Control self = cls(segment)
        cdef control_header *header = self.header
        if segment.size_bytes < Control.size_bytes(len(runners), len(agents)):
            raise ValueError("the control segment is too small for its agents")
        clock_initialise(&header.clock, clock)
        header.stop = STOP_NO
        header.started = 0
        header.nodes_count = nodes_count
        header.runners_offset = sizeof(control_header)
        header.agents_offset = sizeof(control_header) + len(runners) * sizeof(runner_record)
        cdef runner_record *runner
        cdef agent_record *agent
        for index, name in enumerate(runners):
            runner = control_runner(header, index)
            memset(runner, 0, sizeof(runner_record))
            text = name.encode()
            strncpy(runner.name, text, sizeof(runner.name) - 1)
        for index, (name, kind, runner_index) in enumerate(agents):
            agent = control_agent(header, index)
            memset(agent, 0, sizeof(agent_record))
            text = name.encode()
            strncpy(agent.name, text, sizeof(agent.name) - 1)
            agent.kind = AGENT_KINDS[kind]
            agent.runner = runner_index
        # Last: an onlooker that comes earlier finds a segment without records.
        store_release_u32(&header.runners_count, len(runners))
        store_release_u32(&header.agents_count, len(agents))
        if shared_lock_initialise(&control_run_section(header).lock) != 0:
            raise MachineError("this system has no robust process-shared mutexes")
        return self

    @classmethod
    def attach(cls, segment):
        """The control segment that another process created; SegmentError if it is damaged."""
        cdef Control self = cls(segment)
        if not control_fits(self.header, segment.size_bytes):
            raise SegmentError(
                f"segment {segment.name} is damaged: its records do not fit into it; "
                "`shrimpmx clean` removes leftovers"
            )
        return self

    # -- compiled face ------------------------------------------------

    cdef Clock *clock(self) noexcept nogil:
        return &self.header.clock

    cdef runner_record *runner(self, uint32_t index) noexcept nogil:
        return control_runner(self.header, index)

    cdef agent_record *agent(self, uint32_t index) noexcept nogil:
        return control_agent(self.header, index)

    cdef wait_slot *slot(self, uint32_t runner) noexcept nogil:
        return &control_runner(self.header, runner).slot

    # -- clock --------------------------------------------------------

    def populate(self) -> None:
        """Fault in all for this process but the tables of contexts, of which programs use few."""
        self.segment.populate(0, <uintptr_t>control_file_pointers(self.header)
                              - <uintptr_t>self.header)

    def now_ns(self) -> int:
        """The run's clock, ns."""
        return clock_now_ns(&self.header.clock)

    def set_virtual_ns(self, int64_t now_ns) -> None:
        """Move the virtual clock to `now_ns`."""
        if self.header.clock.kind != CLOCK_KIND_VIRTUAL:
            raise ValueError("only a virtual clock can be set")
        self.header.clock.virtual_ns = now_ns

    # -- start and stop -----------------------------------------------

    def set_stop(self, state: str) -> None:
        """Tell every agent to go on ("no"), to end ("finish") or to give up ("abort").

        Sleepers are woken so that they see it.
        """
        store_release_u32(&self.header.stop, STOP_STATES[state])
        self.rouse_all()
        futex_wake(&self.header.started, 1 << 30)

    def rouse_all(self) -> None:
        """Wake every process that sleeps on its wait slot, armed or not; it looks again."""
        full_fence()  # S1: what they are to see before the word, which a sleeper reads first
        for index in range(self.header.runners_count):
            wait_slot_rouse(self.slot(index))

    def stop_state(self) -> str:
        """"no", "finish" or "abort"."""
        value = load_acquire_u32(&self.header.stop)
        return next(name for name, number in STOP_STATES.items() if number == value)

    def start(self) -> None:
        """Let the ranks begin."""
        store_release_u32(&self.header.started, 1)
        futex_wake(&self.header.started, 1 << 30)

    def register_process(self, uint32_t runner, uint32_t signal_number=0) -> None:
        """Enter the calling process as `runner`; notifications reach it by `signal_number`, or, if
        that is 0, are only counted.
        """
        cdef runner_record *record = self._checked_runner(runner)
        record.slot.pid = getpid()
        record.slot.signal = signal_number
        store_release_u32(&record.pid, getpid())

    def set_placement(self, uint32_t runner, uint32_t cpu, uint32_t realtime) -> None:
        """Note the CPU and the real-time priority (0: none) that `runner` got."""
        cdef runner_record *record = self._checked_runner(runner)
        record.cpu = cpu
        record.realtime = realtime

    def set_runner_state(self, uint32_t runner, state: str) -> None:
        """Publish a process's state, one of RUNNER_STATES."""
        store_release_u32(&self._checked_runner(runner).state, RUNNER_STATES.index(state))

    def answer(self, uint32_t runner) -> None:
        """A request of an MPI rank has its answer."""
        self._checked_runner(runner)
        cdef uint32_t *answers = <uint32_t *>&control_process_section(self.header, runner).answers
        store_release_u32(answers, answers[0] + 1)
        wait_slot_rouse(self.slot(runner))

    def vacate(self, uint32_t runner) -> None:
        """The process of that MPI rank is gone, and another one may take its place, whose counters
        are added to its own.
        """
        cdef runner_record *record = self._checked_runner(runner)
        cdef shown_wait *shown = control_shown(self.header, runner)
        control_process_section(self.header, runner).communicators = 0
        # A killed one may have left its wait there, or half of it.
        shown.since_ns = 0
        shown.thread = 0
        store_release_u32(&shown.version, shown.version + shown.version % 2)
        store_release_u32(&record.pid, 0)
        store_release_u32(&record.state, RUNNER_STATES.index("starting"))

    # -- reading ------------------------------------------------------

    @property
    def is_virtual(self):
        """Whether the run's clock is virtual: CPUs are none of this machine's."""
        return self.header.clock.kind == CLOCK_KIND_VIRTUAL

    @property
    def runners_count(self):
        """Number of processes."""
        return self.header.runners_count

    @property
    def agents_count(self):
        """Number of agents."""
        return self.header.agents_count

    def runner_pids(self) -> list:
        """The pid of each process; 0: it has not begun."""
        return [control_runner(self.header, index).pid for index in range(self.runners_count)]

    def runner_info(self, uint32_t runner) -> dict:
        """Name, state, pid, CPU, priority and wake-ups of one process."""
        cdef runner_record *record = self._checked_runner(runner)
        cdef uint32_t state = load_acquire_u32(&record.state)
        return {
            "name": _name(record.name[:sizeof(record.name)]),
            "state": RUNNER_STATES[state] if state < len(RUNNER_STATES) else f"unknown ({state})",
            "pid": record.pid,
            "cpu": record.cpu,
            "realtime": record.realtime,
            "wakes": record.slot.wakes,
            "notifications_sent": record.slot.notifications,
        }

    def all_reached(self, list runners not None, state: str) -> bool:
        """Whether these processes have all come to that state, or further."""
        cdef uint32_t runner, least = RUNNER_STATES.index(state)
        for runner in runners:
            if load_acquire_u32(&self._checked_runner(runner).state) < least:
                return False
        return True

    def runner_account(self, uint32_t runner) -> dict:
        """What waiting cost one process; see struct wait_account."""
        return _account(self._checked_runner(runner).account)

    def runner_wait(self, uint32_t runner) -> dict | None:
        """The call that an MPI rank has waited in for long, since when, and for what; None: it is
        in none, or is not done with writing that, as it is stopped or dead. See struct shown_wait.
        """
        self._checked_runner(runner)
        cdef shown_wait *there = control_shown(self.header, runner)
        cdef shown_wait copy
        cdef uint32_t before
        for _ in range(SHOWN_LOOKS):
            before = load_acquire_u32(&there.version)
            copy = there[0]
            full_fence()
            if before % 2 == 0 and load_acquire_u32(&there.version) == before:
                break
        else:
            return None
        if copy.since_ns == 0:
            return None
        count = min(copy.unexpected, <uint32_t>SHOWN_MESSAGES)
        return {
            "call": _name(copy.call[:sizeof(copy.call)]),
            "thread": copy.thread,
            "since_ns": copy.since_ns,
            "awaited": _message(&copy.awaited),
            "unexpected": copy.unexpected,
            "unacked": copy.unacked,
            "resends": copy.resends,
            "oldest": [_message(&copy.oldest[index]) for index in range(count)],
        }

    @property
    def work_begun(self):
        """Whether MPI ranks have begun to work."""
        return control_run_section(self.header).begun > 0

    @property
    def is_marked(self):
        """Whether they have marked sections, which alone count; see section.h."""
        return control_run_section(self.header).marked != 0

    def was_silent(self, uint32_t runner) -> bool:
        """Whether an MPI rank is known to have ended before it sent or got a message."""
        self._checked_runner(runner)
        cdef process_section section = control_process_section(self.header, runner)[0]
        return section.began_ns == 0 or section.silent != 0

    def runner_section(self, uint32_t runner) -> dict[str, int]:
        """What an MPI rank took in its work or in its sections, by the names of
        shrimpmx.native.perf.usage, and how long that was, `elapsed_ns`. To be read when it is over.
        """
        self._checked_runner(runner)
        cdef process_section section = control_process_section(self.header, runner)[0]
        cdef int64_t late_ns = 0
        if self.is_marked and not section.marked:
            return dict.fromkeys(_SECTION, 0)
        if not self.is_marked:
            late_ns = max(0, _work_began_ns(self.header) - section.began_ns)
        return {
            "elapsed_ns": max(0, section.elapsed_ns - late_ns),
            "user_ns": section.user_ns,
            "system_ns": section.system_ns,
            "task_clock_ns": section.user_ns + section.system_ns,
            "voluntary_switches": section.voluntary_switches,
            "involuntary_switches": section.involuntary_switches,
            "minor_faults": section.minor_faults,
            "major_faults": section.major_faults,
        }

    def runner_section_account(self, uint32_t runner) -> dict[str, int]:
        """What waiting cost an MPI rank meanwhile, and how long it waited in calls, `waited_ns`."""
        self._checked_runner(runner)
        cdef process_section section = control_process_section(self.header, runner)[0]
        account = {**_account(section.account), "waited_ns": section.waited_ns}
        return dict.fromkeys(account, 0) if self.is_marked and not section.marked else account

    def runner_section_cpu_ns(self, uint32_t runner) -> int:
        """CPU time of a process of agents meanwhile."""
        self._checked_runner(runner)
        return control_process_section(self.header, runner).agents_ns

    def note_used(self, uint32_t runner, int64_t used_ns) -> None:
        """Write the CPU time so far of a simulated process, for ranks that measure."""
        self._checked_runner(runner)
        control_process_section(self.header, runner).used_ns = used_ns

    def section_counters(self) -> dict[str, dict[str, int]]:
        """What the agents have counted meanwhile, by agent."""
        cdef uint32_t number
        cdef uint64_t *within
        found = {}
        for number in range(self.agents_count):
            info = self.agent_info(number)
            within = control_section_counters(self.header, number)
            found[info["name"]] = {
                **_counted(info["kind"], within), **_paid(within + COUNTERS_MAX)}
        return found

    def agent_info(self, uint32_t agent) -> dict:
        """Name, kind and process of one agent."""
        cdef agent_record *record = self._checked_agent(agent)
        return {
            "name": _name(record.name[:sizeof(record.name)]),
            "kind": _kind_of(record),
            "runner": record.runner,
        }

    def agent_counters(self, uint32_t agent) -> dict:
        """The counters of one agent by name."""
        cdef agent_record *record = self._checked_agent(agent)
        return _counted(_kind_of(record), <const uint64_t *>record.counters)

    def counters(self) -> dict[str, dict[str, int]]:
        """The counters of all agents as they are now, by agent. AgentError where this process has
        not all of them."""
        check_whole()
        return {self.agent_info(number)["name"]: self.agent_counters(number)
                for number in range(self.agents_count)}

    def paid(self) -> dict[str, dict[str, int]]:
        """The counters of the costs that each agent has paid (costs/table.py), by agent. AgentError
        as from counters()."""
        check_whole()
        return {self.agent_info(number)["name"]: _paid(agent_paid(self._checked_agent(number)))
                for number in range(self.agents_count)}

    cdef runner_record *_checked_runner(self, uint32_t index) except NULL:
        if index >= self.header.runners_count:
            raise IndexError(f"no runner {index}; there are {self.header.runners_count}")
        return control_runner(self.header, index)

    cdef agent_record *_checked_agent(self, uint32_t index) except NULL:
        if index >= self.header.agents_count:
            raise IndexError(f"no agent {index}; there are {self.header.agents_count}")
        return control_agent(self.header, index)
