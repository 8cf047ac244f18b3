"""The irq agents: a handler that polls rx rings (Linux: NAPI), and that of SHRIMP's interrupts.

An interrupt sets a vector's bit in the core's pending word and wakes the agent. The handler then
owns the vector's claim token, polls the rx ring up to a budget (rx_poll.pyx), and hands the token
back when the ring is empty. At most one interrupt per vector is outstanding, as in the myri10ge
driver. A ring that is not empty stays scheduled: each round polls every scheduled ring once.

Completed sends are reported by the same interrupts, or by one that brings no rx ring. The handler
learns of them when its interrupt is over, before it polls (token.pxd).

A poll may also begin without an interrupt. A handler that defers interrupts keeps the token and
polls by timer (poll_timers.pxd). Where ranks poll, the agent of a vector's timer core goes on when
a rank has stopped looking. Of the token's ways see token.pxd.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, meter_of, pay, price_list
from shrimpmx.costs.rows cimport (
    COST_disable_cost_ns, COST_interrupt_time_ns, COST_reap_ns, COST_reply_ns, COST_send_cost_ns,
)
from shrimpmx.host.charges cimport (
    interrupts_began_ns, interrupts_end_ns, pay_freed, pay_send_side,
)
from shrimpmx.host.poll_timers cimport (
    deferral_goes_on, deferral_renew, suspension_is_over, suspension_unwatch, suspension_watch,
    timer_runs, timer_start, timer_stop,
)
from shrimpmx.host.pull_backlog cimport backlog_empty, pull_tick_ns
from shrimpmx.host.rx_poll cimport BACKLOG, RxPoll
from shrimpmx.host.token cimport reap_sends, reports_sends, token_free, token_take
from shrimpmx.native.atomics cimport (
    compare_exchange_u32, exchange_u32, exchange_u64, load_acquire_u32, load_relaxed_u32,
    load_relaxed_u64, store_release_u32,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.native.trace cimport Capture, TRACE_interrupt, TRACE_rank_wake, Trace, trace_record
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    BUSY_POLL_NONE, CORE_PENDING_BACKLOG, CORE_PENDING_SENT, TOKEN_DEFERRED, TOKEN_FREE,
    TOKEN_TAKEN, COUNTER_budget_exhausted, COUNTER_demotions, COUNTER_interrupts,
    COUNTER_poll_timers, COUNTER_reclaims, COUNTER_sends_reaped, COUNTER_timer_ticks,
    COUNTER_vmmc_notifications, COUNTER_vmmc_unclaimed, COUNTER_vmmc_wakes, agent_paid,
    interrupt_vector, node_core, node_handled, node_rx_ring, node_vector,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport (
    VMMC_PAGE_BLOCK, VMMC_PAGE_FIRED, VMMC_PAGE_OFF, VMMC_WATCHED_MAX, vmmc_core_of, vmmc_pages_of,
    vmmc_process, vmmc_process_of,
)

from shrimpmx.errors import InputError


cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil
    int __builtin_popcountll(unsigned long long) noexcept nogil

# Between two looks for room in the tx ring while pull replies wait for it: the ring goes on
# holding frames for 1 ms at 10 Gb/s, so that the link does not run dry (ours).
cdef enum:
    BACKLOG_LOOK_NS = 50_000


@cython.final
cdef class InterruptAgent(Agent):
    """Serves the interrupts of one emulated core.

    `agent`: its record in the control segment; `budget`: frames per poll; `demote_after`:
    rounds in a row with a poll that uses up the budget before it asks to lose its real-time
    priority, as Linux moves to ksoftirqd (0: never, which lets receive livelock happen). The agent
    of core 0 also ticks: it looks after pulls whose replies do not come, on every endpoint.

    The handler pays by the `prices` of its host, and works for so long: for an interrupt, from the
    NIC's raising it to the poll, for a frame before it handles that, for a pull reply before it
    sends that, and for each process that a poll wakes, before the poll ends. Of an interrupt's
    time `delivery_ns` are its way to the core, which goes on with its work until then; 0: none.
    `is_process`: the handler is a process of a simulated machine, which is charged for its calls as
    others are; it rings the doorbell and wakes ranks at the end of a poll only, as a handler that
    pays for nothing.

    `defer_hard_irqs`: polls in a row that must find nothing before interrupts are on again, and
    `flush_timeout_ns`: between two of them. A timer's interrupt costs what a NIC's does.
    """

    def __init__(self, Node node not None, uint32_t core, uint32_t agent,
                 uint32_t budget, uint32_t demote_after,
                 Prices prices=None, int64_t delivery_ns=0, bint is_process=False,
                 uint32_t defer_hard_irqs=0, int64_t flush_timeout_ns=0):
        if budget == 0:
            raise InputError("the irq budget must be at least 1 packet per poll")
        self.rx = RxPoll(node, core, agent, budget, prices)
        self.handler = self.rx.handler
        self.node = node
        self.core = core
        self.demote_after = demote_after
        self.deferral.polls = defer_hard_irqs
        self.deferral.timeout_ns = flush_timeout_ns
        self.header = node.header
        self.ranks_poll = node.header.busy_poll != BUSY_POLL_NONE
        self.timers.next_ns = NEVER_NS
        self.interrupts = node_core(node.header, core)
        self.nic_slot = node.control.slot(node.header.nic_runner)
        self.record = node.control.agent(agent)
        self._pay(delivery_ns, is_process)
        self.counters = <uint64_t *>self.record.counters
        self.name = node.control.agent_info(agent)["name"]
        self.tick_ns = pull_tick_ns(node.header)
        # Core 0 ticks from its first step on, the others never.
        self.next_due_ns = self.next_tick_ns = 0 if core == 0 else NEVER_NS

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what the handler does, in the ring of agent `number`."""
        Agent.use_trace(self, trace, number)
        self.rx.trace = self.handler.trace = self.trace

    def use_capture(self, Capture capture not None, uint32_t end) -> None:
        """Note from now on which frames the handler drops, at end number `end`."""
        self.handler.capture = capture.checked_ring(end)
        self.capturing = capture

    cdef void _pay(self, int64_t delivery_ns, bint is_process) noexcept:
        """What it works for, by the prices of its polls."""
        cdef const price_list *prices = self.rx.meter.prices
        self.meter = &self.rx.meter
        self.handler.whole_polls = is_process
        if prices == NULL:
            return
        if delivery_ns != 0:
            self.occupancy_ns = max(
                <int64_t>0, prices.ns[COST_interrupt_time_ns] - delivery_ns)
        self.pays_replies = (
            prices.ns[COST_send_cost_ns] + prices.ns[COST_reply_ns] > 0)
        if self.pays_replies:
            self.handler.pace()
        if not is_process:
            self.handler.pay_calls(self.meter, self.record.runner)

    @property
    def scheduled_vectors(self):
        """Bit mask of the vectors that it is polling."""
        return self.scheduled & ~CORE_PENDING_BACKLOG

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t done, number
        if now_ns < self.busy_until_ns:
            return 0
        self.handler.now_ns = now_ns
        if now_ns >= self.next_tick_ns:
            self._tick(now_ns)
        done = self._begin_polls(now_ns)
        if done != 0 and self.busy_until_ns > now_ns:
            self.next_due_ns = self.busy_until_ns
            return <int>done
        if self.reaps:
            done += 1
            if self._works_for_sends(now_ns):
                return <int>done
        if self.pays_replies and self._works_for_reply(now_ns):
            return <int>done + 1
        if self.left == 0:
            self.left = self.scheduled
            self.exhausted = False
        while self.left != 0:
            number = <uint32_t>__builtin_ctzll(self.left)
            if self.calls:
                self.calls = False
                done += 1
            elif not self.rx.poll(number, now_ns):
                self.next_due_ns = self.busy_until_ns = self.rx.until_ns
                return <int>done + 1
            else:
                done += self.rx.polled
                if self.handler.has_called and self._pays_calls(now_ns):
                    return <int>done
            self.left &= self.left - 1
            if self._complete(number):
                self.scheduled &= ~(<uint64_t>1 << number)
            if self.left == 0:
                self._note_exhausted()
        self.next_due_ns = (
            now_ns if self.scheduled != 0 else min(self.next_tick_ns, self.timers.next_ns))
        if not backlog_empty(&self.handler.backlog):
            if done == 0:
                done = self.handler.backlog.tail
                self.handler.finish_batch()
                done = self.handler.backlog.tail - done
            self.next_due_ns = min(self.next_due_ns, now_ns + BACKLOG_LOOK_NS)
        return <int>done

    cdef bint _works_for_sends(self, int64_t now_ns) noexcept nogil:
        """Learns of completed sends; whether it works for them before it polls. The NIC may
        interrupt for others meanwhile."""
        cdef uint64_t reaped = self.counters[COUNTER_sends_reaped]
        cdef int64_t cost_ns
        self.reaps = False
        if reap_sends(self.header, self.counters):
            wait_slot_wake(self.nic_slot)
        reaped = self.counters[COUNTER_sends_reaped] - reaped
        cost_ns = pay(self.meter, COST_reap_ns, <int64_t>reaped)
        if reaped != 0:
            cost_ns += pay_send_side(self.meter, self.header, self.core + 1)
        if self.meter.prices != NULL and self.meter.prices.tells_senders:
            cost_ns += pay_freed(self.meter, self.header, self.core + 1)
        if cost_ns > 0:
            self.busy_until_ns = self.next_due_ns = now_ns + cost_ns
        return cost_ns > 0

    cdef bint _works_for_reply(self, int64_t now_ns) noexcept nogil:
        """Sends the pull reply that was paid for; whether it works for the next one."""
        if self.reply_paid:
            self.reply_paid = False
            self.handler.send_reply(self.rx.goes_on)
        if not self.handler.owes_reply():
            return False
        self.reply_paid = True
        self.busy_until_ns = self.next_due_ns = (
            now_ns + pay(self.meter, COST_send_cost_ns) + pay(self.meter, COST_reply_ns)
            + pay_send_side(self.meter, self.header, self.core + 1))
        return True

    cdef uint32_t _begin_polls(self, int64_t now_ns) noexcept nogil:
        """Schedules what interrupts and timers are for; returns how many of them there were."""
        cdef uint64_t taken = 0
        cdef uint32_t count = 0
        if self.ranks_poll or self.deferral.polls != 0:
            count = self._take_timed(now_ns)
        if load_relaxed_u64(&self.interrupts.pending) != 0:
            taken = self._take_interrupts(now_ns)
            count += __builtin_popcountll(taken)
        if count != 0:
            self._be_interrupted(taken & ~CORE_PENDING_BACKLOG, count, now_ns)
        return count

    cdef void _be_interrupted(self, uint64_t raised, uint32_t count, int64_t now_ns) noexcept nogil:
        """Work for `count` interrupts, of which the NIC raised those in `raised`."""
        self.busy_until_ns = interrupts_end_ns(
            self.meter, interrupts_began_ns(self.header, raised, now_ns), count,
            self.occupancy_ns, now_ns)

    cdef uint64_t _take_interrupts(self, int64_t now_ns) noexcept nogil:
        """Takes all interrupts at once: those of the NIC, and other cores' for the backlog."""
        # I2': pairs with I2, the fetch_or of NIC and other cores
        cdef uint64_t taken = exchange_u64(&self.interrupts.pending, 0)
        self.counters[COUNTER_interrupts] += __builtin_popcountll(taken & ~CORE_PENDING_BACKLOG)
        self.scheduled |= taken & ~CORE_PENDING_SENT
        self.reaps |= reports_sends(self.header, taken)
        trace_record(self.trace, now_ns, TRACE_interrupt, taken, self.core)
        return taken

    cdef bint _complete(self, uint32_t number) noexcept nogil:
        """The end of a poll: the ring is empty, and interrupts are on again or a timer runs.

        False if the ring stays scheduled: the budget was used up, or frames came meanwhile and the
        token was claimed again.
        """
        cdef interrupt_vector *vector
        if self.rx.polled >= self.rx.budget:
            self.exhausted = True
            if number != BACKLOG:
                deferral_renew(&self.deferral, number)
            return False
        if number == BACKLOG:
            return True  # what comes from now on interrupts
        vector = node_vector(self.header, number)
        if deferral_goes_on(&self.deferral, number, self.rx.polled):
            self._defer(vector, number)
            return True
        if not token_free(vector):
            return True
        # Only a third party's look: without the token the ring's consumer may be another core.
        if (load_acquire_u32(&node_rx_ring(self.header, number).head)
                != load_relaxed_u32(node_handled(self.header, number))  # H1': pairs with H1
                and token_take(vector, TOKEN_FREE, TOKEN_TAKEN)):
            self.counters[COUNTER_reclaims] += 1
            return False
        wait_slot_wake(self.nic_slot)
        return True

    cdef void _defer(self, interrupt_vector *vector, uint32_t number) noexcept nogil:
        """Leaves interrupts off and sets the timer."""
        cdef int64_t due_ns = self.handler.now_ns + self.deferral.timeout_ns
        if self._watches(vector):
            suspension_watch(&self.timers, vector, number, due_ns)
        else:
            timer_start(&self.timers, number, due_ns)
        store_release_u32(&vector.token, TOKEN_DEFERRED + self.core)  # I3

    cdef bint _watches(self, const interrupt_vector *vector) noexcept nogil:
        """Whether ranks poll the vector's ring and this agent keeps the time for them."""
        return self.ranks_poll and vector.timer_core == self.core

    cdef uint32_t _take_timed(self, int64_t now_ns) noexcept nogil:
        """Takes the vectors that are to be polled without an interrupt; returns how many."""
        cdef interrupt_vector *vector
        cdef uint32_t number, seen
        cdef uint32_t taken = 0
        self.timers.next_ns = NEVER_NS
        for number in range(self.header.vectors_count):
            vector = node_vector(self.header, number)
            while True:
                seen = load_acquire_u32(&vector.token)
                if not self._is_due(vector, number, seen, now_ns):
                    break
                if token_take(vector, seen, TOKEN_TAKEN):
                    self._begin_timed_poll(vector, number, seen)
                    taken += 1
                    break
            if timer_runs(&self.timers, number):
                self.timers.next_ns = min(self.timers.next_ns, self.timers.due_ns[number])
        return taken

    cdef bint _is_due(self, interrupt_vector *vector, uint32_t number, uint32_t seen,
                      int64_t now_ns) noexcept nogil:
        """Whether to take the token, which is `seen`, now; if not, sees to the timer."""
        if seen == TOKEN_DEFERRED + self.core:
            return now_ns >= self.timers.due_ns[number]
        if self._watches(vector):
            return suspension_is_over(&self.timers, vector, number, seen, now_ns)
        timer_stop(&self.timers, number)  # a rank has taken it: the watching core's from now on
        return False

    cdef void _begin_timed_poll(self, interrupt_vector *vector, uint32_t number,
                                uint32_t seen) noexcept nogil:
        """With the token in hand, which was `seen`."""
        if self._watches(vector):
            suspension_unwatch(&self.timers, vector, number)
        else:
            timer_stop(&self.timers, number)
        if seen != TOKEN_DEFERRED + self.core:
            deferral_renew(&self.deferral, number)
        self.scheduled |= <uint64_t>1 << number
        self.counters[COUNTER_poll_timers] += 1

    cdef bint _pays_calls(self, int64_t now_ns) noexcept nogil:
        """The calls by which a poll rings the doorbell, and wakes ranks, precede its end: frames
        that come meanwhile cause no interrupt. Whether they take time: this handler's, or its
        task's.
        """
        cdef int64_t calls_ns = self.handler.calls_ns
        self.handler.has_called, self.handler.calls_ns = False, 0
        if calls_ns == 0 and not self.handler.whole_polls:
            return False
        self.calls = True
        self.next_due_ns = now_ns + calls_ns
        if calls_ns > 0:
            self.busy_until_ns = self.next_due_ns
        return True

    cdef void _note_exhausted(self) noexcept nogil:
        """At the end of a round."""
        if not self.exhausted:
            self.exhausted_rounds = 0
            self.wants_demotion = False
            return
        self.counters[COUNTER_budget_exhausted] += 1
        self.exhausted_rounds += 1
        if (self.exhausted_rounds >= self.demote_after and self.demote_after != 0
                and not self.wants_demotion):
            self.wants_demotion = True
            self.counters[COUNTER_demotions] += 1

    cdef void _tick(self, int64_t now_ns) noexcept nogil:
        """The clock's interrupt: coarse as a kernel's, and never moved."""
        if self.next_tick_ns != 0:
            self.counters[COUNTER_timer_ticks] += 1
            self.handler.tick(now_ns)
        self.next_tick_ns = now_ns + self.tick_ns


# -- The interrupt handler of a node with SHRIMP's NIC: the hook of the waiting paper's section 4.
#
# The NIC interrupts a core for an endpoint, and has noted in the endpoint's process why: a page
# that a waiter had enabled was written, or a page that notifies was. For a waiter the handler
# clears the interrupt enable bits of *all* pages that it waits for, then wakes it: one wake-up,
# however many of them are written. Each notification is one signal to the process, whose own
# handler runs.

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil
    int __builtin_popcountll(unsigned long long) noexcept nogil


cdef class VmmcInterruptAgent(Agent):
    """Serves the interrupts of one emulated core.

    Args:
        node: one that was laid out for a vmmc NIC.
        core: whose interrupts it serves.
        agent: its record in the control segment.
        prices: of its host, by which it pays for an interrupt, from the NIC's raising it to the
            wake-up. The handler works for so long.
        delivery_ns: of that, its way to the core, as of an InterruptAgent.
    """

    def __init__(self, Node node not None, uint32_t core, uint32_t agent,
                 Prices prices=None, int64_t delivery_ns=0):
        if node.header.vmmc_offset == 0:
            raise InputError(
                f"node {node.header.index} was not laid out for a vmmc NIC: set nic=vmmc"
            )
        self.node = node
        self.core = core
        self.header = node.header
        self.interrupts = vmmc_core_of(node.header, core)
        self.record = node.control.agent(agent)
        self.prices = prices
        self.meter = meter_of(prices, agent_paid(self.record))
        if self.meter.prices != NULL and delivery_ns != 0:
            self.occupancy_ns = max(
                <int64_t>0, self.meter.prices.ns[COST_interrupt_time_ns] - delivery_ns)
        self.counters = <uint64_t *>self.record.counters
        self.name = node.control.agent_info(agent)["name"]

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done
        if now_ns < self.busy_until_ns:
            return 0
        self.next_due_ns = NEVER_NS
        # Those that it has spent its time on; later ones have to wait for theirs.
        if self.works_to_disable(now_ns):
            return 1
        done = self.serve_taken(now_ns)
        done += self.take_pending(now_ns)
        if now_ns < self.busy_until_ns:
            self.next_due_ns = self.busy_until_ns
            return done
        if self.works_to_disable(now_ns):
            return done
        return done + self.serve_taken(now_ns)

    cdef bint works_to_disable(self, int64_t now_ns) noexcept nogil:
        """Whether it works on the device's state before it serves what it has taken; once."""
        cdef int64_t cost_ns = 0
        if not self.disabled:
            cost_ns = pay(&self.meter, COST_disable_cost_ns, self.wakes_taken())
        self.disabled = cost_ns > 0
        if self.disabled:
            self.busy_until_ns = self.next_due_ns = now_ns + cost_ns
        return self.disabled

    cdef int take_pending(self, int64_t now_ns) noexcept nogil:
        """Take all interrupts that are pending, and begin their time; returns how many."""
        cdef int count = 0
        cdef uint32_t i
        for i in range(<uint32_t>PENDING_WORDS):
            if load_relaxed_u64(&self.interrupts.pending[i]) != 0:
                # I2': takes all at once; pairs with I2, the NIC's fetch_or
                self.taken[i] = exchange_u64(&self.interrupts.pending[i], 0)
                count += __builtin_popcountll(self.taken[i])
        if count != 0:
            self.counters[COUNTER_interrupts] += count
            trace_record(self.trace, now_ns, TRACE_interrupt, 1, self.core)
            self.busy_until_ns = interrupts_end_ns(
                &self.meter,
                min(now_ns, <int64_t>load_relaxed_u64(<uint64_t *>&self.interrupts.raised_ns)),
                <uint32_t>count, self.occupancy_ns, now_ns)
        return count

    cdef int64_t wakes_taken(self) noexcept nogil:
        """How many processes wait for the interrupts that are taken."""
        cdef int64_t count = 0
        cdef uint64_t left
        cdef uint32_t i, endpoint
        if self.meter.prices == NULL:
            return 0
        for i in range(<uint32_t>PENDING_WORDS):
            left = self.taken[i]
            while left != 0:
                endpoint = 64 * i + <uint32_t>__builtin_ctzll(left)
                left &= left - 1
                if endpoint < self.header.endpoints_count:
                    count += load_relaxed_u32(&vmmc_process_of(self.header, endpoint).fired) != 0
        return count

    cdef int serve_taken(self, int64_t now_ns) noexcept nogil:
        cdef int count = 0
        cdef uint32_t i
        for i in range(<uint32_t>PENDING_WORDS):
            while self.taken[i] != 0:
                self.serve(64 * i + <uint32_t>__builtin_ctzll(self.taken[i]), now_ns)
                self.taken[i] &= self.taken[i] - 1
                count += 1
        return count

    cdef void serve(self, uint32_t endpoint, int64_t now_ns) noexcept nogil:
        """Do what the NIC interrupted for; it may have been done with an earlier interrupt."""
        cdef vmmc_process *process
        cdef bint woken
        if endpoint >= self.header.endpoints_count:
            return
        process = vmmc_process_of(self.header, endpoint)
        if load_relaxed_u32(&process.runner) >= self.node.control.header.runners_count:
            return
        woken = self.wake(process, now_ns)
        if self.notify(process, now_ns) == 0 and not woken:
            self.counters[COUNTER_vmmc_unclaimed] += 1

    cdef bint wake(self, vmmc_process *process, int64_t now_ns) noexcept nogil:
        """The hook: if data came for a page that the process waits for, disable all of these
        pages and wake it. False if nothing came, or the process has found it without a wake-up.
        """
        if exchange_u32(&process.fired, 0) == 0:
            return False
        self.disable_watched(process)
        if not wait_slot_wake(self.node.control.slot(process.runner)):
            return False
        self.counters[COUNTER_vmmc_wakes] += 1
        trace_record(self.trace, now_ns, TRACE_rank_wake, process.runner, 0)
        return True

    cdef void disable_watched(self, vmmc_process *process) noexcept nogil:
        cdef uint32_t *pages = <uint32_t *>vmmc_pages_of(self.header, process)
        cdef uint32_t count = min(load_acquire_u32(&process.watched_count),
                                  <uint32_t>VMMC_WATCHED_MAX)
        cdef uint32_t i, page, word
        for i in range(count):
            page = load_relaxed_u32(&process.watched[i])
            if page >= process.pages_count:
                continue
            word = load_relaxed_u32(&pages[page])
            # The NIC may turn BLOCK into FIRED meanwhile; words of other meaning stay.
            while (word == VMMC_PAGE_BLOCK or word == VMMC_PAGE_FIRED) and (
                    not compare_exchange_u32(&pages[page], word, VMMC_PAGE_OFF)):
                word = load_relaxed_u32(&pages[page])

    cdef uint32_t notify(self, vmmc_process *process, int64_t now_ns) noexcept nogil:
        """Send what notifications there are, a signal each; returns how many."""
        cdef uint32_t count = exchange_u32(&process.notifications, 0)
        for _ in range(count):
            wait_slot_wake(self.node.control.slot(process.runner))
        if count != 0:
            self.counters[COUNTER_vmmc_notifications] += count
            trace_record(self.trace, now_ns, TRACE_rank_wake, process.runner, 1)
        return count
