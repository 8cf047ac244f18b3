/* Copies: of blocks that may be empty, and of large ones between the memories of two CPUs.
 *
 * Between two CPUs an ordinary copy first fetches each line that it is going to overwrite, which
 * the other CPU read last; streaming stores fetch nothing. Between two CPUs that share no cache the
 * ordinary copy was ten times slower, between two CPUs of another machine one and a half times
 * faster, and nothing that a machine says of itself tells them apart. So a process tries both.
 */
#ifndef SHRIMPMX_NATIVE_COPY_H
#define SHRIMPMX_NATIVE_COPY_H

#include <stdint.h>
#include <string.h>

#include "native/clock.h"

/* From so many bytes on memcpy may be `rep movsb` (glibc: rep_movsb_threshold). AMD's Zen 3 takes
 * 10 to 25 times as long for it if the target lies 1 to 31 bytes behind the source, both as places
 * in their pages (glibc's bug 30994): shared memory begins with a page, and what malloc takes from
 * the kernel 16 bytes behind its start. Backwards it takes twice an ordinary copy's time. */
#define COPY_BACKWARD_BYTES 2048u
#define COPY_BACKWARD_BEHIND 32u
#define COPY_PAGE_BYTES 4096u

static inline int copy_goes_backward(const void *to, const void *source, uint64_t length) {
    const uintptr_t behind = ((uintptr_t)to - (uintptr_t)source) % COPY_PAGE_BYTES;
    return length >= COPY_BACKWARD_BYTES && behind != 0 && behind < COPY_BACKWARD_BEHIND;
}

static void __attribute__((noinline, unused)) copy_backward(char *to, const char *source,
                                                            uint64_t length) {
    struct {
        char bytes[64];
    } line;
    for (; length >= sizeof line; length -= sizeof line) {
        memcpy(&line, source + length - sizeof line, sizeof line);
        memcpy(to + length - sizeof line, &line, sizeof line);
    }
    memcpy(to, source, length);
}

/* As memcpy; without bytes both places may be NULL, which C forbids there (C11, 7.24.1). */
static inline void copy_bytes(void *to, const void *source, uint64_t length) {
    if (copy_goes_backward(to, source, length))
        copy_backward((char *)to, (const char *)source, length);
    else if (length != 0)
        memcpy(to, source, length);
}

/* Shortest block that is worth a choice: below, the reader finds it in a cache (ours). */
#define COPY_LARGE_BYTES 65536u

#ifdef __SSE2__
#include <emmintrin.h>

#define COPY_AHEAD_BYTES 1024 /* read ahead of the stores (ours) */

static inline void copy_streaming(char *target, const char *source, uint64_t length) {
    uint64_t head = -(uintptr_t)target & 63;
    if (head > length)
        head = length;
    memcpy(target, source, head);
    target += head, source += head, length -= head;
    for (; length >= 64; target += 64, source += 64, length -= 64) {
        _mm_prefetch(source + COPY_AHEAD_BYTES, _MM_HINT_T0);
        __m128i a = _mm_loadu_si128((const __m128i *)source);
        __m128i b = _mm_loadu_si128((const __m128i *)(source + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(source + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(source + 48));
        _mm_stream_si128((__m128i *)target, a);
        _mm_stream_si128((__m128i *)(target + 16), b);
        _mm_stream_si128((__m128i *)(target + 32), c);
        _mm_stream_si128((__m128i *)(target + 48), d);
    }
    /* Streaming stores are weakly ordered: a process that is told of the copy must find it done. */
    _mm_sfence();
    memcpy(target, source, length);
}
#else
static inline void copy_streaming(char *target, const char *source, uint64_t length) {
    memcpy(target, source, length);
}
#endif

/* The other way is tried again after copies that took so many times as long as it did (ours): a
 * twentieth of the time at most is lost to it. */
#define COPY_TRIAL_TIMES 20
/* A process that was preempted in a copy must not spoil the figure, nor a slower machine be
 * ignored: one sample raises it by a quarter at most (ours). */
#define COPY_RISE 1.25

enum copy_way { COPY_ORDINARY, COPY_STREAMING, COPY_WAYS };

/* How long each way takes for blocks of about one length. All zero: not tried yet. */
struct copy_costs {
    double per_byte[COPY_WAYS]; /* ticks */
    double since_trial;         /* ticks that the better way has taken since */
};

/* From COPY_LARGE_BYTES on, one for each power of two; the last one for all longer blocks. */
#define COPY_LENGTHS 10

static inline struct copy_costs *copy_costs_of(struct copy_costs *all, uint64_t length) {
    unsigned above = (unsigned)(__builtin_clzll(COPY_LARGE_BYTES) - __builtin_clzll(length));
    return &all[above < COPY_LENGTHS ? above : COPY_LENGTHS - 1];
}

static inline enum copy_way copy_next(const struct copy_costs *costs, uint64_t length) {
    const double *cost = costs->per_byte;
    enum copy_way better =
        cost[COPY_STREAMING] < cost[COPY_ORDINARY] ? COPY_STREAMING : COPY_ORDINARY;
    enum copy_way other = (enum copy_way)!better;
    return costs->since_trial < COPY_TRIAL_TIMES * cost[other] * (double)length ? better : other;
}

static inline void copy_learn(struct copy_costs *costs, enum copy_way way, uint64_t length,
                              uint64_t ticks) {
    double *cost = &costs->per_byte[way];
    double sample = (double)ticks / (double)length;
    double most = *cost > 0 ? COPY_RISE * *cost : sample;
    *cost = sample < most ? sample : most;
    if (*cost <= costs->per_byte[!way])
        costs->since_trial += *cost * (double)length;
    else
        costs->since_trial = 0;
}

/* As memcpy, for blocks of COPY_LARGE_BYTES and more, by the way that was faster lately. `all`
 * are COPY_LENGTHS figures of the calling process. */
static inline void copy_large(struct copy_costs *all, void *to, const void *from,
                              uint64_t length) {
    struct copy_costs *costs = copy_costs_of(all, length);
    enum copy_way way = copy_next(costs, length);
    uint64_t begin = counter_ticks();
    if (way == COPY_STREAMING)
        copy_streaming((char *)to, (const char *)from, length);
    else
        copy_bytes(to, from, length);
    copy_learn(costs, way, length, counter_ticks() - begin);
}

#endif
