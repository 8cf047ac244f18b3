/* Each rank sends to the next one and receives from the one before: `simulators_ring ROUNDS BYTES`,
   for SimGrid's SMPI. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    int rounds = atoi(argv[1]), bytes = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *out = calloc(bytes, 1), *into = calloc(bytes, 1);
    for (int turn = 0; turn < rounds; turn++)
        MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, turn, into, bytes, MPI_BYTE,
                     (rank + size - 1) % size, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
