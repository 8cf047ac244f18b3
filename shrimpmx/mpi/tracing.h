/* The calls of MPI of a traced rank: when each began and ended, and from which line. */
#ifndef SHRIMPMX_MPI_TRACING_H
#define SHRIMPMX_MPI_TRACING_H

#include <stdint.h>

/* A file of one rank: this, the text of the places that calls came from, each of it behind the end
 * of the one before, and a ring of the last calls. The rank alone writes it. */
enum { CALLS_TEXT_BYTES = 1 << 16, CALLS_MOST = 1 << 15 };

struct calls_header {
    uint64_t calls;      /* written so far */
    uint64_t text_bytes; /* used of the text */
};

struct traced_call {
    int64_t begin_ns; /* of the run's clock */
    int64_t end_ns;
    uint64_t begin_record; /* records of the rank in the trace before it, and before its end */
    uint64_t end_record;
    uint32_t function; /* its number in enum mpi_function */
    uint32_t place;    /* where its text begins; NO_PLACE: unknown */
};

enum { NO_PLACE = UINT32_MAX };

/* Keeps calls from now on, in a new file at `path`, by that clock and that count of records.
 * Returns 0 if it cannot be made: then they are not kept. */
int calls_keep(const char *path, int64_t (*clock)(void), const volatile uint64_t *records);
struct traced_call call_begun(int function);
void call_ended(struct traced_call *call);

#endif
