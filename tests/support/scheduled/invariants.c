#include "invariants.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>

#include "scheduler.h"
#include "shared/layout.h"

#define NODES_MAX 4
#define RINGS_MAX 64
#define PROCESSES_MAX 32
#define NOBODY (-1)
#define ENDPOINT_OWNER (-2) /* the process that has the endpoint open */
#define TOKEN_HOLDER (-3)   /* the process that has the vector's token */
#define BUSY_POLL_PACKETS 8 /* that a rank may have handled without handing them back (busy_poll) */
/* A sleeper is woken within this, whatever stands still meanwhile. */
#define LATE_NS 20000000

struct watched_ring {
    struct ring *ring;
    const char *what;
    struct node_header *node;
    uint32_t number; /* of its vector, endpoint or source */
    int producer, consumer;
    uint32_t head, tail;
    int published_by;
};
struct watched_vector {
    struct interrupt_vector *vector;
    uint32_t token;
    int token_by;
};
/* The token of completed sends. */
struct watched_sent {
    uint32_t token;
    int token_by;
};
struct watched_events {
    struct endpoint_descriptor *endpoint;
    struct event *events;
    volatile uint32_t *next_shared, *released_shared;
    uint32_t next, released, state, looked_at;
    int holder, posted_by;
};
struct watched_slot {
    struct wait_slot *slot;
    uint32_t armed;
    int disarmed_by; /* it has yet to wake the owner */
    int64_t late_since_ns;
};
struct watched_node {
    struct node_header *header;
    struct watched_vector vectors[2];
    struct watched_sent sent;
    struct watched_events events[16];
    uint32_t events_count;
    uint64_t pending[4];
    int pending_by[4];
};

static struct control_header *control;
static struct watched_node nodes[NODES_MAX];
static struct watched_ring rings[RINGS_MAX];
static struct watched_slot slots[PROCESSES_MAX];
static uint32_t nodes_count, rings_count;
static uint32_t buried, deaths; /* bits; count */
static char sentence[240];

static int wrong(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    return 0;
}

static int goes_back(uint32_t from, uint32_t to) { return (int32_t)(to - from) < 0; }

static uint64_t counted(uint32_t agent, uint32_t counter) {
    return control_agent(control, agent)->counters[counter];
}

/* -- rings ------------------------------------------------------------------------- */

static int is_handler(const struct node_header *node, int agent) {
    for (uint32_t core = 0; core < node->cores_count; core++)
        if ((int)node_core((struct node_header *)node, core)->runner == agent)
            return 1;
    return 0;
}

static int may_move(const struct watched_ring *watched, int expected, int self) {
    if (expected == ENDPOINT_OWNER)
        return (int)node_endpoint(watched->node, watched->number)->runner == self;
    if (expected == TOKEN_HOLDER) {
        uint32_t token = node_vector(watched->node, watched->number)->token;
        return token == TOKEN_TAKEN ? is_handler(watched->node, self)
                                    : token == TOKEN_RANK + (uint32_t)self;
    }
    return expected == self;
}

static int ring_holds(struct watched_ring *watched, int self) {
    const struct ring *ring = watched->ring;
    uint32_t head = ring->head, tail = ring->tail;
    const char *what = watched->what;
    unsigned node = watched->node->index, number = watched->number;
    if (ring->reserved - tail > ring->entries || ring->reserved - head > ring->entries)
        return wrong("node %u, %s %u: %u filled, %u published, %u handed back, of %u slots", node,
                     what, number, ring->reserved, head, tail, ring->entries);
    if (goes_back(tail, head) || goes_back(ring->tail_seen, tail) ||
        goes_back(ring->head_seen, head))
        return wrong("node %u, %s %u: one side is ahead of the other: head %u, seen %u, tail %u, "
                     "seen %u", node, what, number, head, ring->head_seen, tail, ring->tail_seen);
    if (head != watched->head) {
        if (goes_back(watched->head, head) || !may_move(watched, watched->producer, self))
            return wrong("node %u, %s %u: agent %d moved its head from %u to %u", node, what,
                         number, self, watched->head, head);
        watched->head = head;
        watched->published_by = self;
    }
    if (tail != watched->tail) {
        if (goes_back(watched->tail, tail) || !may_move(watched, watched->consumer, self))
            return wrong("node %u, %s %u: agent %d moved its tail from %u to %u", node, what,
                         number, self, watched->tail, tail);
        watched->tail = tail;
    }
    return 1;
}

/* -- interrupts and packets ---------------------------------------------------------- */

static int token_may_become(const struct node_header *node, uint32_t from, uint32_t to, int self) {
    uint32_t mine = TOKEN_RANK + (uint32_t)self;
    if (to == TOKEN_TAKEN)
        return is_handler(node, self) ? from < TOKEN_RANK
                                      : (int)node->nic_runner == self && from == TOKEN_FREE;
    if (to == mine)
        return from != TOKEN_TAKEN && from < TOKEN_RANK;
    if (from == TOKEN_TAKEN)
        return is_handler(node, self) &&
               (to == TOKEN_FREE || (to >= TOKEN_DEFERRED && to < TOKEN_RANK));
    if (from == mine)
        return to == TOKEN_FREE || to == TOKEN_SUSPENDED || to == TOKEN_RESUMED;
    if (from >= TOKEN_RANK)
        return to == TOKEN_RESUMED && schedule_is_gone((int)(from - TOKEN_RANK));
    return from == TOKEN_SUSPENDED && to == TOKEN_RESUMED;
}

static int vector_holds(struct watched_node *node, uint32_t number, int self) {
    struct watched_vector *watched = &node->vectors[number];
    uint32_t token = watched->vector->token, cores = 0;
    if (token != watched->token) {
        if (!token_may_become(node->header, watched->token, token, self))
            return wrong("node %u: agent %d made the token %u of %u", node->header->index, self,
                         token, watched->token);
        watched->token = token;
        watched->token_by = self;
    }
    for (uint32_t core = 0; core < node->header->cores_count; core++)
        cores += node_core(node->header, core)->pending >> number & 1;
    if (cores > 1 || (cores == 1 && token != TOKEN_TAKEN))
        return wrong("node %u: %u interrupts are pending, the token is %u", node->header->index,
                     cores, token);
    return 1;
}

static int sent_holds(struct watched_node *node, int self) {
    struct node_header *header = node->header;
    uint32_t token = header->sent.token;
    if (token == node->sent.token)
        return 1;
    if (token == TOKEN_TAKEN ? (int)header->nic_runner != self : !is_handler(header, self))
        return wrong("node %u: agent %d made the token of sends %u", header->index, self, token);
    node->sent.token = token;
    node->sent.token_by = self;
    return 1;
}

static int packets_hold(const struct node_header *header) {
    struct node_header *node = (struct node_header *)header;
    uint32_t nic = node->nic_agent;
    uint64_t came = counted(nic, COUNTER_rx_packets), handled = 0, taken = 0, published = 0;
    uint64_t dropped = counted(nic, COUNTER_rx_drop_ring_full) +
                       counted(nic, COUNTER_rx_bad_frame) + counted(nic, COUNTER_rx_bad_fcs);
    uint64_t raised = counted(nic, COUNTER_irq_raised), arrived = 0, sent = 0, reaped = 0;
    uint64_t ended = raised + counted(nic, COUNTER_irq_absorbed);
    uint64_t wished = counted(nic, COUNTER_irq_wished);
    uint64_t by_marks =
        counted(nic, COUNTER_irq_raised_marked) + counted(nic, COUNTER_irq_raised_deferred);
    for (uint32_t core = 0; core < node->cores_count; core++) {
        handled += counted(node_core(node, core)->agent, COUNTER_recv_packets);
        taken += counted(node_core(node, core)->agent, COUNTER_interrupts);
        reaped += counted(node_core(node, core)->agent, COUNTER_sends_reaped);
    }
    for (uint32_t vector = 0; vector < node->vectors_count; vector++)
        published += node_rx_ring(node, vector)->head;
    for (uint32_t source = 0; source < nodes_count; source++)
        arrived += node_link_ring(node, source)->head;
    for (uint32_t target = 0; target < nodes_count; target++)
        sent += node_link_ring(nodes[target].header, node->index)->head;
    if (published > came || handled > came + BUSY_POLL_PACKETS * deaths)
        return wrong("node %u: %lu packets came, %lu are in memory, %lu were handled", node->index,
                     came, published, handled);
    if (came + dropped > arrived)
        return wrong("node %u: %lu packets came and %lu were dropped, of %lu on the links",
                     node->index, came, dropped, arrived);
    if (sent + counted(nic, COUNTER_link_lost) > /* one is counted when it has passed */
        counted(nic, COUNTER_tx_packets) + counted(nic, COUNTER_link_duplicated) + 1)
        return wrong("node %u: %lu packets are on the links, of %lu that were sent", node->index,
                     sent, counted(nic, COUNTER_tx_packets));
    /* A wish may wait on the line of each vector, and on that of completed sends. */
    if (ended > wished || wished - ended > node->vectors_count + node->sent.interrupts)
        return wrong("node %u: of %lu wishes for an interrupt %lu have ended", node->index, wished,
                     ended);
    /* Algorithms 1 and 2: a marked packet asks for one interrupt at most. */
    if (by_marks > counted(nic, COUNTER_rx_marked))
        return wrong("node %u: %lu interrupts were raised for %lu marked packets", node->index,
                     by_marks, counted(nic, COUNTER_rx_marked));
    if (reaped > counted(nic, COUNTER_tx_completed))
        return wrong("node %u: %lu sends were reaped, of %lu", node->index, reaped,
                     counted(nic, COUNTER_tx_completed));
    if (taken > raised || raised - taken > node->vectors_count)
        return wrong("node %u: %lu interrupts were raised, %lu were taken", node->index, raised,
                     taken);
    return 1;
}

/* -- events ------------------------------------------------------------------------ */

static int holder_of(struct endpoint_descriptor *endpoint) {
    uint32_t word = *(volatile uint32_t *)&endpoint->lock;
    return word & FUTEX_OWNER_DIED ? NOBODY : schedule_agent_of(word & FUTEX_TID_MASK);
}

static int events_hold(struct watched_node *node, struct watched_events *watched, int self) {
    uint32_t next = *watched->next_shared, released = *watched->released_shared;
    struct endpoint_descriptor *endpoint = watched->endpoint;
    if (next - released > endpoint->entries)
        return wrong("node %u, runner %u: %u events were posted, %u handed back, of %u",
                     node->header->index, endpoint->runner, next, released, endpoint->entries);
    if (watched->state == endpoint->state) {
        if (goes_back(watched->next, next) || goes_back(watched->released, released))
            return wrong("node %u, runner %u: its counts of events went back",
                         node->header->index, endpoint->runner);
        if (released != watched->released && (int)endpoint->runner != self)
            return wrong("node %u, runner %u: agent %d handed back events", node->header->index,
                         endpoint->runner, self);
    }
    if (next != watched->next) {
        if (watched->holder != NOBODY && watched->holder != self)
            return wrong("node %u, runner %u: agent %d posted an event, agent %d has the lock",
                         node->header->index, endpoint->runner, self, watched->holder);
        watched->posted_by = self;
    }
    watched->state = endpoint->state;
    watched->next = next;
    watched->released = released;
    watched->holder = holder_of(endpoint);
    return 1;
}

/* -- sleepers ---------------------------------------------------------------------- */

/* One kind of work that a sleeper is to be woken for, and the agent that is to wake it. */
struct work {
    const char *what;
    int by;
};
static const struct work no_work = {0, NOBODY};

static int links_have_room(const struct node_header *node) {
    for (uint32_t target = 0; target < nodes_count; target++) {
        const struct ring *link = node_link_ring(nodes[target].header, node->index);
        if (link->reserved - link->tail + 2 > link->entries)
            return 0;
    }
    return 1;
}

static struct work work_of_nic(int self) {
    for (uint32_t i = 0; i < rings_count; i++) {
        const struct watched_ring *tx = &rings[i];
        if (tx->consumer == self && tx->producer != self && tx->head != tx->tail &&
            links_have_room(tx->node))
            return (struct work){"frames to send", tx->published_by};
    }
    for (uint32_t n = 0; n < nodes_count; n++) {
        struct node_header *node = nodes[n].header;
        for (uint32_t v = 0; v < node->vectors_count; v++) {
            const struct watched_vector *watched = &nodes[n].vectors[v];
            const struct watched_sent *sent = &nodes[n].sent;
            const struct ring *rx = node_rx_ring(node, v);
            if ((int)node->nic_runner != self)
                continue;
            /* Vector 0 needs both tokens. */
            if (node->sent.interrupts && v == 0 && sent->token != TOKEN_FREE)
                continue;
            if (node->sent.interrupts && v == 0 && node->sent.wish)
                return (struct work){"a wish for an interrupt of sends, and their token is free",
                                     sent->token_by};
            if (watched->token != TOKEN_FREE)
                continue;
            if (watched->vector->wish)
                return (struct work){"a wish for an interrupt, and the token is free",
                                     watched->token_by};
            if (rx->head != rx->tail && schedule_until(self) == INT64_MAX)
                return (struct work){"packets in memory, neither interrupt nor timer to come",
                                     self};
        }
    }
    return no_work;
}

static struct work work_of_handler(struct watched_node *node, uint32_t core, int self) {
    int timed = schedule_until(self) != INT64_MAX;
    if (node_core(node->header, core)->pending)
        return (struct work){"an interrupt", node->pending_by[core]};
    for (uint32_t v = 0; v < node->header->vectors_count; v++) {
        const struct watched_vector *watched = &node->vectors[v];
        if (watched->token == TOKEN_DEFERRED + core && !timed)
            return (struct work){"a deferred poll without a timer", self};
        if (watched->vector->timer_core != core)
            continue;
        if (watched->token == TOKEN_RESUMED)
            return (struct work){"a vector that was handed on to it", watched->token_by};
        if (watched->token == TOKEN_SUSPENDED && !watched->vector->watched)
            return (struct work){"a suspended vector that it does not watch", watched->token_by};
        if (watched->token == TOKEN_SUSPENDED && !timed)
            return (struct work){"a suspended vector without a timer", self};
    }
    return no_work;
}

static struct work work_of(int self) {
    struct work found = no_work;
    for (uint32_t n = 0; n < nodes_count && !found.what; n++) {
        struct watched_node *node = &nodes[n];
        for (uint32_t core = 0; core < node->header->cores_count && !found.what; core++)
            if ((int)node_core(node->header, core)->runner == self)
                found = work_of_handler(node, core, self);
        for (uint32_t i = 0; i < node->events_count; i++) {
            const struct watched_events *events = &node->events[i];
            if (events->state == ENDPOINT_OPEN && (int)events->endpoint->runner == self &&
                (events->next - events->looked_at) % events->endpoint->entries != 0)
                found = (struct work){"an event", events->posted_by};
        }
    }
    return found.what ? found : work_of_nic(self);
}

static int nothing_will_come_from(int agent, int sleeper) {
    return agent == NOBODY || agent == sleeper || schedule_is_asleep(agent) ||
           (buried >> agent & 1);
}

static int slot_holds(int owner, int self, int64_t now_ns) {
    struct watched_slot *watched = &slots[owner];
    uint32_t armed = watched->slot->armed;
    struct work work;
    if (armed != watched->armed) {
        if (armed == WAIT_SLOT_BLOCK && owner != self)
            return wrong("agent %d armed the slot of agent %d", self, owner);
        if (armed == WAIT_SLOT_IDLE)
            watched->disarmed_by = owner == self ? NOBODY : self;
        watched->armed = armed;
    }
    if (!schedule_sleeps_on(owner, &watched->slot->word)) {
        watched->late_since_ns = INT64_MAX;
        return 1;
    }
    if (armed == WAIT_SLOT_IDLE) {
        if (watched->disarmed_by == NOBODY)
            return wrong("agent %d sleeps, its slot was disarmed, and none is to wake it", owner);
        return 1;
    }
    work = work_of(owner);
    if (!work.what) {
        watched->late_since_ns = INT64_MAX;
        return 1;
    }
    if (watched->late_since_ns > now_ns)
        watched->late_since_ns = now_ns;
    if (nothing_will_come_from(work.by, owner) || now_ns - watched->late_since_ns > LATE_NS)
        return wrong("agent %d sleeps over %s, for which agent %d was to wake it", owner,
                     work.what, work.by);
    return 1;
}

/* -- all of it --------------------------------------------------------------------- */

static int all_hold(int self, int64_t now_ns) {
    for (uint32_t i = 0; i < rings_count; i++)
        if (!ring_holds(&rings[i], self))
            return 0;
    for (uint32_t n = 0; n < nodes_count; n++) {
        struct watched_node *node = &nodes[n];
        for (uint32_t core = 0; core < node->header->cores_count; core++) {
            uint64_t pending = node_core(node->header, core)->pending;
            if (pending & ~node->pending[core])
                node->pending_by[core] = self;
            node->pending[core] = pending;
        }
        for (uint32_t v = 0; v < node->header->vectors_count; v++)
            if (!vector_holds(node, v, self))
                return 0;
        for (uint32_t i = 0; i < node->events_count; i++)
            if (!events_hold(node, &node->events[i], self))
                return 0;
        if (!sent_holds(node, self) || !packets_hold(node->header))
            return 0;
    }
    if (control->stop != STOP_NO)
        return 1; /* all are told to end: nothing waits for them any more */
    for (uint32_t owner = 0; owner < control->runners_count; owner++)
        if (!slot_holds((int)owner, self, now_ns))
            return 0;
    return 1;
}

const char *invariants_look(int self, int64_t now_ns) {
    return control == 0 || all_hold(self, now_ns) ? 0 : sentence;
}

void invariants_peek(int self, const volatile uint8_t *address) {
    const char *place = (const char *)address;
    for (uint32_t n = 0; n < nodes_count; n++)
        for (uint32_t i = 0; i < nodes[n].events_count; i++) {
            struct watched_events *events = &nodes[n].events[i];
            const char *first = (const char *)events->events;
            if (place >= first && place < first + events->endpoint->entries * sizeof(struct event) &&
                (int)events->endpoint->runner == self)
                events->looked_at = (uint32_t)((place - first) / (long)sizeof(struct event));
        }
}

void invariants_woken(int self, const volatile uint32_t *word) {
    for (uint32_t i = 0; control && i < control->runners_count; i++)
        if (&slots[i].slot->word == word && slots[i].disarmed_by == self)
            slots[i].disarmed_by = NOBODY;
}

void invariants_buried(int agent) {
    buried |= 1u << agent;
    deaths++;
    for (uint32_t i = 0; i < control->runners_count; i++)
        if (slots[i].disarmed_by == agent)
            slots[i].disarmed_by = NOBODY;
}

static void watch_ring(struct ring *ring, const char *what, struct node_header *node,
                       uint32_t number, int producer, int consumer) {
    rings[rings_count++] = (struct watched_ring){
        .ring = ring, .what = what, .node = node, .number = number, .producer = producer,
        .consumer = consumer, .published_by = NOBODY,
    };
}

static void watch_events(struct watched_node *node, uint32_t endpoint, uint64_t offset,
                         volatile uint32_t *next, volatile uint32_t *released) {
    node->events[node->events_count++] = (struct watched_events){
        .endpoint = node_endpoint(node->header, endpoint),
        .events = NODE_PART(node->header, struct event, offset),
        .next_shared = next, .released_shared = released, .holder = NOBODY, .posted_by = NOBODY,
    };
}

static void watch_node(struct watched_node *node) {
    struct node_header *header = node->header;
    int nic = (int)header->nic_runner;
    node->sent = (struct watched_sent){.token = header->sent.token, .token_by = NOBODY};
    for (uint32_t v = 0; v < header->vectors_count; v++) {
        node->vectors[v].vector = node_vector(header, v);
        node->vectors[v].token = node->vectors[v].vector->token;
        node->vectors[v].token_by = NOBODY;
        watch_ring(node_rx_ring(header, v), "rx ring", header, v, nic, TOKEN_HOLDER);
    }
    for (uint32_t core = 0; core < header->cores_count; core++)
        watch_ring(node_core_tx_ring(header, core), "tx ring of core", header, core,
                   (int)node_core(header, core)->runner, nic);
    for (uint32_t source = 0; source < nodes_count; source++)
        watch_ring(node_link_ring(header, source), "link from node", header, source, nic, nic);
    for (uint32_t i = 0; i < header->endpoints_count; i++) {
        struct endpoint_descriptor *endpoint = node_endpoint(header, i);
        watch_ring(node_endpoint_tx_ring(header, i), "tx ring of endpoint", header, i,
                   ENDPOINT_OWNER, nic);
        watch_events(node, i, endpoint->unexpected_offset, &endpoint->unexpected_next,
                     &endpoint->unexpected_released);
        watch_events(node, i, endpoint->expected_offset, &endpoint->expected_next,
                     &endpoint->expected_released);
    }
}

void invariants_watch(struct control_header *of, struct node_header *const *headers,
                      uint32_t count) {
    control = of;
    nodes_count = count;
    for (uint32_t n = 0; n < count; n++)
        nodes[n].header = headers[n];
    for (uint32_t n = 0; n < count; n++)
        watch_node(&nodes[n]);
    for (uint32_t i = 0; i < of->runners_count; i++)
        slots[i] = (struct watched_slot){
            .slot = &control_runner(of, i)->slot, .disarmed_by = NOBODY,
            .late_since_ns = INT64_MAX,
        };
}
