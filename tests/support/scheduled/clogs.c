#include "clogs.h"

#include <string.h>

#include "scheduler.h"
#include "shared/layout.h"

#define LINKS_MAX 16
#define SLOT_BYTES_MAX 16384

struct link {
    struct ring *frames;
    int receiver;
    int64_t from_ns, until_ns;
    uint32_t held; /* frames that it has held back */
};

static struct link links[LINKS_MAX];
static uint32_t links_count;
static uint64_t random_state;
static int64_t longest;
static int shuffles;

static void draw_clog(struct link *link, int64_t now_ns) {
    link->from_ns = now_ns + (int64_t)(schedule_draw(&random_state) % (uint64_t)longest);
    /* Short ones are as likely as long ones. */
    link->until_ns = link->from_ns + (longest >> schedule_draw(&random_state) % 10);
    link->held = 0;
}

static void swap(struct frame_slot *one, struct frame_slot *other, uint32_t bytes) {
    static char between[SLOT_BYTES_MAX];
    memcpy(between, one, bytes);
    memcpy(one, other, bytes);
    memcpy(other, between, bytes);
}

static void shuffle(struct ring *frames) {
    for (uint32_t left = frames->head - frames->tail; left > 1; left--) {
        uint32_t other = (uint32_t)(schedule_draw(&random_state) % left);
        swap(ring_slot(frames, frames->tail + left - 1), ring_slot(frames, frames->tail + other),
             frames->slot_bytes);
    }
}

static void hold_back(struct link *link) {
    for (uint32_t index = link->frames->tail; index != link->frames->head; index++) {
        struct frame_slot *slot = ring_slot(link->frames, index);
        if (slot->time_ns < link->until_ns)
            slot->time_ns = link->until_ns;
        link->held = 1;
    }
}

void clogs_pass(int self, int64_t now_ns) {
    for (struct link *link = links; link < links + links_count; link++) {
        if (link->receiver != self || now_ns < link->from_ns)
            continue;
        if (now_ns < link->until_ns) {
            hold_back(link);
            continue;
        }
        if (shuffles && link->held)
            shuffle(link->frames);
        draw_clog(link, now_ns);
    }
}

void clogs_watch(struct node_header *const *nodes, uint32_t count, uint64_t seed,
                 int64_t longest_ns, int shuffle_too) {
    random_state = seed;
    longest = longest_ns;
    shuffles = shuffle_too;
    for (uint32_t target = 0; target < count; target++)
        for (uint32_t source = 0; source < count; source++) {
            struct link *link = &links[links_count];
            if (source == target || schedule_draw(&random_state) % 4 == 0)
                continue;
            link->frames = node_link_ring(nodes[target], source);
            link->receiver = (int)nodes[target]->nic_runner;
            draw_clog(link, schedule_now());
            links_count++;
        }
}
