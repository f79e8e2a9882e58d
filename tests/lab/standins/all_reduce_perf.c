/* Stands in for nccl-tests where there is no GPU: its options, its table, and none of its GPUs. Which program it is, its
   own name says: all_reduce_perf, all_gather_perf, alltoall_perf ...

   Built with -DMPI_SUPPORT it really sums or moves over MPI and rank 0 alone prints; without, every process is a test of its own,
   as with the true one. STANDIN_WRONG=N: N wrong elements; STANDIN_HANG=1: it never ends; STANDIN_CUT=1: no last lines;
   STANDIN_DIES=1: ends with CUDA's words. It prints its environment's NCCL_DEBUG lines as NCCL does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef MPI_SUPPORT
#include <mpi.h>

/* Open MPI calls this where it has nothing to do, if it is asked to yield: ranks that wait leave the cores to others. */
int sched_yield(void) { return usleep(200); }
#endif

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static long bytes(const char *word) {
  char *end;
  long number = strtol(word, &end, 10);
  return number << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

/* What a program moves of `count` elements, those of the larger buffer. `part` is a rank's, of 16 bytes or more. */
static double done(const char *program, float *data, float *sums, long count, long part) {
  double began = now();
#ifdef MPI_SUPPORT
  int rank, size, n = (int)part;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!strncmp(program, "all_gather", 10)) MPI_Allgather(data, n, MPI_FLOAT, sums, n, MPI_FLOAT, MPI_COMM_WORLD);
  else if (!strncmp(program, "reduce", 6)) MPI_Reduce_scatter_block(data, sums, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (!strncmp(program, "alltoall", 8)) MPI_Alltoall(data, n, MPI_FLOAT, sums, n, MPI_FLOAT, MPI_COMM_WORLD);
  else if (!strncmp(program, "broadcast", 9)) MPI_Bcast(data, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  else if (!strncmp(program, "sendrecv", 8))
    MPI_Sendrecv(data, (int)count, MPI_FLOAT, (rank + 1) % size, 0, sums, (int)count, MPI_FLOAT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else MPI_Allreduce(data, sums, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
#else
  (void)program, (void)part;
  memcpy(sums, data, count * sizeof(float));
#endif
  double took = now() - began;
  return took < 1e-7 ? 1e-7 : took;
}

int main(int argc, char **argv) {
  long least = 1 << 20, most = 1 << 20, factor = 2;
  long warm_ups = 1, repeats = 20;
  int rank = 0, size = 1, gpus = 1;
  char host[64] = "", hosts[1024][64];
  const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
  int sums_up = !!strstr(program, "reduce"), parted = !strncmp(program, "all_gather", 10) ||
      !strncmp(program, "reduce_scatter", 14) || !strncmp(program, "alltoall", 8);
  int two_buffers = !strncmp(program, "alltoall", 8) || !strncmp(program, "sendrecv", 8);
  const char *wrong = getenv("STANDIN_WRONG"), *debug = getenv("NCCL_DEBUG"), *named = getenv("NCCL_SOCKET_IFNAME");
  for (int at = 1; at + 1 < argc; at += 2) {
    if (!strcmp(argv[at], "-b")) least = bytes(argv[at + 1]);
    if (!strcmp(argv[at], "-e")) most = bytes(argv[at + 1]);
    if (!strcmp(argv[at], "-f")) factor = bytes(argv[at + 1]);
    if (!strcmp(argv[at], "-g")) gpus = (int)bytes(argv[at + 1]);
    if (!strcmp(argv[at], "-w")) warm_ups = bytes(argv[at + 1]);
    if (!strcmp(argv[at], "-n")) repeats = bytes(argv[at + 1]);
  }
  gethostname(host, sizeof host - 1);
#ifdef MPI_SUPPORT
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Gather(host, 64, MPI_CHAR, hosts, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
#else
  memcpy(hosts[0], host, sizeof host);
#endif
  if (debug && !strcmp(debug, "INFO"))
    fprintf(stderr, "%s:%d:%d [0] NCCL INFO NET/Socket : Using [0]%s:10.0.0.1<0>\n", host, getpid(), getpid(),
            named ? named : "eth0");
  if (getenv("STANDIN_DIES")) {
    printf("%s: Test CUDA failure common.cu:730 'out of memory'\n", host);
    return 2;
  }
  int ranks = size * gpus;
  if (rank == 0) {
    printf("# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23203\n");
    printf("# Collective test starting: %s\n", program);
    printf("# nThread 1 nGpus %d minBytes %ld maxBytes %ld step: %ld(factor) warmup iters: %ld iters: %ld\n#\n", gpus,
           least, most, factor, warm_ups, repeats);
    printf("# Using devices\n");
    for (int r = 0; r < ranks; r++)
      printf("#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:0f:00] NVIDIA H100 80GB HBM3\n", r, getpid(),
             hosts[r / gpus], r % gpus);
    printf("#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "", "", "", "", "");
    printf("#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n");
    printf("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n");
  }
  while (getenv("STANDIN_HANG")) sleep(60);
  float *data = calloc(most, 1), *sums = calloc(most, 1);
  for (long at = least; at <= most; at *= factor) {
    long part = parted ? at / 4 / ranks / 4 * 4 : at / 4, whole = parted ? part * ranks * 4 : at;
    double took[2] = {done(program, data, sums, whole / 4, part), done(program, data, sums, whole / 4, part)};
    if (rank) continue;
    printf("%12ld  %12ld  %8s  %6s  %6d", whole, part, "float", sums_up ? "sum" : "none", strncmp(program, "br", 2) ? -1 : 0);
    for (int half = 0; half < 2; half++) {
      double algbw = whole / took[half] / 1e9, factor_of = ranks > 1 ? 1.0 * (ranks - 1) / ranks : 1.0;
      if (!parted) factor_of = sums_up ? 2 * factor_of : 1;
      printf("  %7.2f  %6.2f  %6.2f", took[half] * 1e6, algbw, algbw * factor_of);
      if (half && two_buffers) printf("  %6s", "N/A");
      else printf("  %6d", wrong ? atoi(wrong) : 0);
    }
    printf("\n");
  }
  if (rank == 0 && !getenv("STANDIN_CUT")) {
    printf("# Out of bounds values : %d %s\n", wrong ? 2 * atoi(wrong) : 0, wrong ? "FAILED" : "OK");
    printf("# Avg bus bandwidth    : 1.0 \n#\n# Collective test concluded: %s\n", program);
  }
#ifdef MPI_SUPPORT
  MPI_Finalize();
#endif
  return wrong ? EXIT_FAILURE : 0;
}
