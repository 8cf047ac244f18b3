/* A token goes round all ranks, as often as the first argument says:
 *
 *     shrimpmx mpicc -o ring scenarios/programs/ring.c
 *     shrimpmx mpirun -n 4 ./ring 100
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, token = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const int turns = argc > 1 ? atoi(argv[1]) : 10;

    const double begin = MPI_Wtime();
    for (int turn = 0; turn < turns; turn++) {
        if (rank > 0)
            MPI_Recv(&token, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token++;
        MPI_Send(&token, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Recv(&token, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0)
        printf("%d turns, token %d, %.1f us a turn\n", turns, token,
               (MPI_Wtime() - begin) * 1e6 / (turns > 0 ? turns : 1));
    return MPI_Finalize();
}
