/* See embed.c. Starts an interpreter in a process without one; NULL, or why there is none. */
#ifndef SHRIMPMX_MPI_EMBED_H
#define SHRIMPMX_MPI_EMBED_H

const char *embed_python(void);

#endif
