/* Copies of large blocks between the memories of two CPUs, past the caches.
 *
 * An ordinary copy first fetches each line that it is going to overwrite, which the other CPU
 * read last; when the CPUs share no cache that costs a transfer per line, and the copy becomes
 * ten times slower. Streaming stores fetch nothing, and a block of this size would not stay
 * in the caches of its reader anyway.
 */
#ifndef SHRIMPMX_NATIVE_COPY_H
#define SHRIMPMX_NATIVE_COPY_H

#include <stdint.h>
#include <string.h>

/* Shortest block that is worth it: below, the reader finds it in a cache (measured: from 64 KiB
 * on twice as fast between two CPUs of one package, ours). */
#define COPY_STREAMING_BYTES 65536u

#ifdef __SSE2__
#include <emmintrin.h>

#define COPY_AHEAD_BYTES 1024 /* read ahead of the stores (ours) */

static inline void copy_streaming(void *to, const void *from, uint64_t length) {
    char *target = (char *)to;
    const char *source = (const char *)from;
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
static inline void copy_streaming(void *to, const void *from, uint64_t length) {
    memcpy(to, from, length);
}
#endif

#endif
