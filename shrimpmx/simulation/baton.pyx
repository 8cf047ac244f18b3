"""One process at a time: a simulation and the processes of its ranks hand a baton to each other.

A rank that is a program of its own has a task in the simulation, which does on its CPU what the
process asks for. The process runs while the task has its turn: see cluster/rank/baton.pyx.
"""

import os

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t
from posix.unistd cimport read, write

from shrimpmx.cluster.rank.baton cimport (
    WANT_BLOCK, WANT_COMPUTE, WANT_KNOCK, WANT_MOVE, WANT_NOTIFICATIONS, WANT_OFFER, WANT_POLL,
    WANT_SLEEP, WANT_TURN, WANT_USED, Turn, Want, Wish,
)
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport node_endpoint
from shrimpmx.shared.node cimport Node
from shrimpmx.simulation.host cimport SimulatedHost

from shrimpmx.cluster.rank.baton import pipe_paths
from shrimpmx.errors import AgentError

cdef extern from "<poll.h>" nogil:
    enum:
        POLLIN
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd *descriptors, unsigned long count, int timeout_ms) noexcept

# Between two calls of `attend` while a process computes, ms.
cdef int ATTEND_MS = 200
# No wish computes or sleeps longer: 146 years, so that times can be added up.
cdef int64_t LONGEST_NS = 1 << 62


cdef class Baton:
    """The simulation's end of a process of `node`. `attend`, called with when the turn began (as
    time.monotonic_ns), looks after what else the supervisor has to do, and says whether the process
    still runs; `events` is a descriptor that is readable when there is something. `note_threads` is
    called when a second thread of the process has asked for something; `note_used` writes what all
    processes have used of their CPUs. A look of the process takes `look_ns`; it may move to the
    emulated `cpus`. A wish that no process of ours has is an AgentError.
    """

    cdef object attend, note_threads, note_used
    cdef bint has_threads
    cdef Control control
    cdef Node node
    cdef uint32_t endpoints_count    # as it was before any program ran
    cdef str name
    cdef object cpus
    cdef int wishes, turns, events
    cdef int64_t look_ns
    cdef Wish wish

    def __init__(self, Node node not None, directory, str name not None, cpus,
                 int64_t look_ns, int events, attend, note_threads, note_used):
        self.node, self.control = node, node.control
        self.endpoints_count = node.header.endpoints_count
        self.events, self.attend = events, attend
        self.note_threads, self.note_used = note_threads, note_used
        self.name, self.cpus = name, frozenset(cpus)
        self.look_ns = look_ns
        self.wishes = self.turns = -1
        paths = pipe_paths(directory, name)
        for path in paths:
            os.mkfifo(path, 0o600)
        # Open for both, so that neither waits for the process nor ends with it; a write to the pipe
        # of one that takes no turns fails.
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        self.wishes, self.turns = [os.open(path, flags) for path in paths]

    def close(self) -> None:
        """The process gets no more turns: it sees that the run has ended. Nothing is kept of it."""
        for descriptor in (self.wishes, self.turns):
            if descriptor >= 0:
                os.close(descriptor)
        self.wishes = self.turns = -1
        self.attend = self.note_threads = self.node = self.control = None

    def fileno(self) -> int:
        """Of the descriptor that is readable when a thread of the process knocks."""
        return self.wishes

    def knocked(self) -> bool:
        """Whether another thread of the process wants the turn that one waits for."""
        cdef pollfd waited
        cdef Wish wish
        waited.fd, waited.events, waited.revents = self.wishes, POLLIN, 0
        if poll(&waited, 1, 0) <= 0:
            return False
        if (read(self.wishes, &wish, sizeof(Wish)) != sizeof(Wish)
                or wish.want != <uint32_t>WANT_KNOCK):
            self.wish = wish
            raise self._strange()
        return True

    def joins(self) -> bool:
        """Wait until the process asks for its first turn; False if it ends without."""
        return self._await_wish()

    def serve(self, SimulatedHost host not None) -> None:
        """As the task of the process: do what it wishes and give it its turns, until it ends."""
        while True:
            self._fulfil(host)
            self._give(host)
            if not self._await_wish():
                return

    cdef bint _await_wish(self) except -1:
        cdef pollfd waited[2]
        cdef int64_t began_ns = monotonic_now_ns()
        cdef bint runs = True
        # What a process has reported before its wish is there with it, since that is looked at
        # first.
        waited[0].fd, waited[1].fd = self.wishes, self.events
        waited[0].events = waited[1].events = POLLIN
        while True:
            waited[0].revents = waited[1].revents = 0
            with nogil:
                poll(waited, 2, ATTEND_MS)
            PyErr_CheckSignals()
            if waited[1].revents or not waited[0].revents:
                runs = self.attend(began_ns)
            if waited[0].revents & POLLIN:
                if read(self.wishes, &self.wish, sizeof(Wish)) != sizeof(Wish):
                    raise self._strange()
                if self.wish.want == <uint32_t>WANT_KNOCK:  # the turn that it is for has come
                    self.attend(began_ns)  # for those who knock for ever
                    continue
                if self.wish.threads > 1 and not self.has_threads:
                    self.has_threads = True
                    self.note_threads()
                return True
            if not runs:
                return False

    cdef int _give(self, SimulatedHost host) except -1:
        cdef Turn turn
        turn.used_ns = host.task.used_ns
        turn.look_ns = self.look_ns
        turn.sleeps, turn.preemptions = host.task.sleeps, host.task.preemptions
        turn.handler_runs = host.notifications()
        if write(self.turns, &turn, sizeof(Turn)) != sizeof(Turn):
            raise self._strange()
        return 0

    cdef int _fulfil(self, SimulatedHost host) except -1:
        cdef Want want = <Want>self.wish.want
        cdef int64_t argument = self.wish.argument
        if not self._is_sound():
            raise self._strange()
        self._await_event(host)
        if want == WANT_COMPUTE:
            host.burn_c(argument)
        elif want == WANT_SLEEP:
            host.sleep_c(argument)
        elif want == WANT_POLL:
            host.pause(argument)
        elif want == WANT_OFFER:
            host.yield_cpu(argument)
        elif want == WANT_BLOCK:
            host.block(<uint32_t *>(<char *>self.control.header + self.wish.detail),
                       self.wish.seen, argument)
        elif want == WANT_NOTIFICATIONS:
            host.take_notifications(&host.runner.slot)
        elif want == WANT_MOVE:
            host.run_on([argument])
        elif want == WANT_USED:
            self.note_used()
        return host.check()

    cdef void _await_event(self, SimulatedHost host) noexcept:
        cdef uint32_t index = self.wish.awaits - 1
        if self.wish.awaits == 0:
            host.await_event(NULL, 0, 0)
        else:
            host.await_event(node_endpoint(self.node.header, index), index, self.wish.taken)

    cdef bint _is_sound(self) except -1:
        """Whether it can be done: the process, whose memory its program may have damaged, has
        written it.
        """
        cdef Want want = <Want>self.wish.want
        cdef uint64_t detail = self.wish.detail
        if self.wish.awaits > self.endpoints_count:
            return False
        if want in (WANT_TURN, WANT_POLL, WANT_OFFER, WANT_NOTIFICATIONS, WANT_USED):
            return True
        if want == WANT_COMPUTE or want == WANT_SLEEP:
            return 0 <= self.wish.argument <= LONGEST_NS
        if want == WANT_BLOCK:
            return (detail % sizeof(uint32_t) == 0
                    and detail <= <uint64_t>self.control.segment.size_bytes - sizeof(uint32_t))
        return want == WANT_MOVE and self.wish.argument in self.cpus

    def _strange(self) -> AgentError:
        return AgentError(
            f"{self.name} made an unknown request of its simulated host ({self.wish.want}, "
            f"{self.wish.argument}, {self.wish.detail}, {self.wish.awaits}): its program may have "
            "damaged the memory of its process", self.name)
