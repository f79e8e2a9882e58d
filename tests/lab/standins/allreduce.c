/* A real MPI program: sums 8 bytes and then 8 MiB over all ranks, checks every sum, and tells ranks, hosts and sizes.
 * It says "8 bytes" before it tries the large one, so that who reads it sees how far it came.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Open MPI calls this in place of the C library's, where it has nothing to do and mpi_yield_when_idle is set: who waits
 * sleeps, and leaves the cores that all hosts share to others.
 */
int sched_yield(void) { return usleep(200); }

enum { LARGE = 1 << 20 }; /* doubles: 8 MiB */

static double mine[LARGE], sums[LARGE];

static int wrong(int ranks, int count) {
    for (int i = 0; i < count; i++)
        if (sums[i] != ranks * (ranks - 1) / 2.0 + (double)i * ranks) return 1;
    return 0;
}

static void reduce(int rank, int ranks, int count) {
    for (int i = 0; i < count; i++) mine[i] = rank + (double)i;
    MPI_Allreduce(mine, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (wrong(ranks, count)) {
        fprintf(stderr, "rank %d: a wrong sum over %zu bytes\n", rank, count * sizeof *mine);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%zu bytes over %d ranks\n", count * sizeof *mine, ranks);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    int rank, ranks, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_processor_name(host, &length);
    printf("rank %d on %s\n", rank, host);
    fflush(stdout);
    reduce(rank, ranks, 1);
    reduce(rank, ranks, LARGE);
    MPI_Finalize();
    return 0;
}
