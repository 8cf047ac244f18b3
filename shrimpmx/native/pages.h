/* Whether a program's memory may be read or written: asked before a copy, which would kill it. */
#ifndef SHRIMPMX_NATIVE_PAGES_H
#define SHRIMPMX_NATIVE_PAGES_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* A mapping of a process: PROCMAP_QUERY of linux/fs.h, since Linux 6.11. */
struct mapping_query {
    uint64_t size;
    uint64_t flags;   /* what it must be: MAPPING_READABLE or MAPPING_WRITABLE */
    uint64_t address; /* that lies in it */
    uint64_t start, end;
    uint64_t found_flags, page_size, offset;
    uint64_t inode; /* 0: no file, which could be shorter than the mapping */
    uint32_t device[2], name_size, build_id_size;
    uint64_t name, build_id;
};
#define MAPPING_READABLE 1
#define MAPPING_WRITABLE 2
#define MAPPING_QUERY _IOWR('f', 17, struct mapping_query)

/* From here on a query per mapping, 5 µs, costs less than a look at each page (measured). */
#define MAPPINGS_FROM_BYTES (256 * 1024)

/* Whether the mappings without files that hold the range allow it. No also means: not known. */
static inline int mappings_allow(uint64_t start, uint64_t length, int written) {
    struct mapping_query query = {.size = sizeof(query),
                                  .flags = written ? MAPPING_WRITABLE : MAPPING_READABLE};
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0)
        return 0;
    query.end = start;
    do
        query.address = query.end;
    while (ioctl(maps, MAPPING_QUERY, &query) == 0 && query.inode == 0 &&
           query.end - start < length);
    close(maps);
    return query.address != query.end && query.inode == 0 && query.end - start >= length;
}

/* Whether all pages of the range may be read, or written too. Kernels before Linux 5.14 do not
 * know, and say no. */
static inline int pages_are_ready(const void *memory, uint64_t length, int written) {
    uint64_t start = (uintptr_t)memory;
    uint64_t first = start & -(uint64_t)getpagesize();
    if (length >= MAPPINGS_FROM_BYTES && mappings_allow(start, length, written))
        return 1;
    return madvise((void *)(uintptr_t)first, length + (start - first),
                   written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
}

#endif
