/* Copies of a few bytes, whose number is known only when they are made. */
#ifndef SHRIMPMX_NATIVE_COPY_SHORT_H
#define SHRIMPMX_NATIVE_COPY_SHORT_H

#include <stdint.h>
#include <string.h>

#include "native/copy.h"

/* Up to 32 bytes: two copies of one size, which may overlap, are quicker than a call. */
static inline void copy_ends(char *to, const char *source, uint64_t length) {
#define COPY_ENDS(size)                                                                            \
    do {                                                                                           \
        char first[size], last[size];                                                              \
        memcpy(first, source, size);                                                               \
        memcpy(last, source + length - size, size);                                                \
        memcpy(to, first, size);                                                                   \
        memcpy(to + length - size, last, size);                                                    \
    } while (0)
    if (length >= 16)
        COPY_ENDS(16);
    else if (length >= 8)
        COPY_ENDS(8);
    else if (length >= 4)
        COPY_ENDS(4);
    else if (length >= 2)
        COPY_ENDS(2);
    else if (length != 0)
        *to = *source;
#undef COPY_ENDS
}

/* As copy_bytes() of copy.h, for what is most often short. */
static inline void copy_short(void *to, const void *source, uint64_t length) {
    if (length <= 32)
        copy_ends((char *)to, (const char *)source, length);
    else
        copy_bytes(to, source, length);
}

#endif
