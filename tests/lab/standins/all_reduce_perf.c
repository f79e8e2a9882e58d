/* Stands in for nccl-tests' all_reduce_perf where there is no GPU: its options, its table, and none of its GPUs.

   Built with -DMPI_SUPPORT it really sums over MPI and rank 0 alone prints; without, every process is a test of its own,
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

static double reduced(float *data, float *sums, long count) {
  double began = now();
#ifdef MPI_SUPPORT
  MPI_Allreduce(data, sums, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
#else
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
    printf("# Collective test starting: all_reduce_perf\n");
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
    double took[2] = {reduced(data, sums, at / 4), reduced(data, sums, at / 4)};
    if (rank) continue;
    printf("%12ld  %12ld  %8s  %6s  %6d", at, at / 4, "float", "sum", -1);
    for (int half = 0; half < 2; half++) {
      double algbw = at / took[half] / 1e9, factor_of = ranks > 1 ? 2.0 * (ranks - 1) / ranks : 1.0;
      printf("  %7.2f  %6.2f  %6.2f  %6d", took[half] * 1e6, algbw, algbw * factor_of, wrong ? atoi(wrong) : 0);
    }
    printf("\n");
  }
  if (rank == 0 && !getenv("STANDIN_CUT")) {
    printf("# Out of bounds values : %d %s\n", wrong ? 2 * atoi(wrong) : 0, wrong ? "FAILED" : "OK");
    printf("# Avg bus bandwidth    : 1.0 \n#\n# Collective test concluded: all_reduce_perf\n");
  }
#ifdef MPI_SUPPORT
  MPI_Finalize();
#endif
  return wrong ? EXIT_FAILURE : 0;
}
