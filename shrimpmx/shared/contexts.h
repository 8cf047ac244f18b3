/* How many processes use each set of contexts of MPI's communicators: behind the sections of the
 * control segment (section.h). The rank that takes a set enters a share for each process that may
 * use it; each of them gives its own share back. */
#ifndef SHRIMPMX_SHARED_CONTEXTS_H
#define SHRIMPMX_SHARED_CONTEXTS_H

#include "shared/section.h"

#define CONTEXT_SETS 131072

static inline volatile uint32_t *control_context_uses(struct control_header *control) {
    return (volatile uint32_t *)control_section_counters(control, control->agents_count);
}

#endif
