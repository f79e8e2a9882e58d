/* A real MPI program that all-reduces 1 MiB again and again, and tells its start and each step, until it is ended.
 * TROUBLE=loop@2:5: rank 2 computes for ever from step 5 on. SIZE: bytes of a sum.
 *
 * A rank that waits in Open MPI keeps a core busy. Where it yields it, it sleeps here for 25 of each 30 ms, as if
 * more ranks shared it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int sched_yield(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long left = 30000 - now.tv_nsec / 1000 % 30000;
    return left < 25000 ? usleep(left) : 0;
}

static volatile double residual = 1;

static void solve_locally(void) {
    while (residual > 0) residual = residual * 0.5 + 1;
}

static int troubled(const char *name, int rank, int step) {
    const char *trouble = getenv("TROUBLE");
    int who, from;
    size_t length = strlen(name);
    if (!trouble || strncmp(trouble, name, length) || trouble[length] != '@') return 0;
    return sscanf(trouble + length + 1, "%d:%d", &who, &from) == 2 && who == rank && step >= from;
}

int main(int argc, char **argv) {
    int rank, ranks, count = (getenv("SIZE") ? atoi(getenv("SIZE")) : 1 << 20) / (int)sizeof(double);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    printf("[rank%d]: started\n", rank);
    fflush(stdout);
    double *mine = calloc(count, sizeof *mine), *sums = calloc(count, sizeof *sums);
    for (int step = 0;; step++) {
        usleep(50000);
        if (troubled("loop", rank, step)) solve_locally();
        if (troubled("barrier", rank, step)) MPI_Barrier(MPI_COMM_WORLD);
        if (troubled("receive", rank, step)) MPI_Recv(mine, 1, MPI_DOUBLE, (rank + 1) % ranks, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(mine, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        printf("[rank%d]: step %d\n", rank, step);
        fflush(stdout);
    }
}
