/* Stands in for libcuda.so.1: devices whose memory is the host's, streams that are threads. A stream has a clock of its
   own: what it runs takes as long as it took, or as a device would take, however busy this machine is.

   Told by STANDIN_CUDA, or by /etc/standin-cuda of the host: devices=N, memory=BYTES (of each), init=CODE (cuInit fails
   so; init=hang and init=crash: it does that), oom=1 (there is room, and no allocation succeeds), driver=NUMBER (12080),
   peers=NUMBER (that a process may reach, 8), link=PATH (of a file: all GPUs of the node share one link to the host, and copies that overlap have half of it),
   sm=NUMBER (90: PTX for a newer architecture is refused), bf16=STATUS (with which cuBLAS refuses such products).
   The device is its UUID's last digit.
   One device, as NAME=VALUE@DEVICE: compute, copy, host, peer (so many times the usual speed), capped, wrong (so many blocks
   compute otherwise), warm (the same, from the second time on), hang and lost (WHAT: compute, copy, host or peer),
   context (the CODE with which one fails, or hang), mode (its compute mode). The speed of products is `product`: it
   stands in for libcublas, too. They begin at that speed; once they have taken 0.1 s, the power that they draw makes them
   `capped` so many times as fast, unless one matrix repeats the same few numbers: those hardly draw any. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "told.h"

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, NO_BINARY = 209, NOT_READY = 600, TOO_MANY_PEERS = 711 };

static long long number(const char *name, long long otherwise) {
    char room[64];
    const char *text = told("STANDIN_CUDA", "/etc/standin-cuda", name, room, sizeof room);
    return *text ? atoll(text) : otherwise;
}

typedef struct task { void (*run)(void *); void *data; struct task *next; } task_t;
typedef struct stream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    task_t *first, *last;
    int busy;
    double clock; /* seconds that it ran */
    struct stream *next;
} stream_t;
typedef struct { volatile int pending; double at; } event_t;
typedef struct { int device; } context_t;

static stream_t *streams;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static long long used;
static context_t contexts[64];
static __thread context_t *current;
static __thread stream_t *own;      /* of a stream's thread */
static __thread double as_a_device; /* seconds that the task would have taken there; negative: what it took here */

/* A value that is for one device: "0.5@3". */
static const char *of_device(const char *name, int device, char *room, size_t size) {
    const char *text = told("STANDIN_CUDA", "/etc/standin-cuda", name, room, size);
    const char *at = strchr(text, '@');
    return at && atoi(at + 1) == device ? text : "";
}

static double speed(const char *name, int device) {
    char room[64];
    const char *text = of_device(name, device, room, sizeof room);
    return *text ? atof(text) : 1;
}

static int does(const char *name, const char *what, int device) {
    char room[64];
    const char *text = of_device(name, device, room, sizeof room);
    return *text && !strncmp(text, what, strlen(what));
}

/* What CUDA_VISIBLE_DEVICES shows at this place: a number, or a UUID whose last digit is the number. */
static int physical(int index) {
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");
    for (; shown && index; index--) shown = strchr(shown, ',') ? strchr(shown, ',') + 1 : "";
    if (!shown || !*shown) return index;
    return strncmp(shown, "GPU-", 4) ? atoi(shown) : shown[strcspn(shown, ",") - 1] - '0';
}

static int devices(void) {
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");
    int there = (int)number("devices", 8), count = 1;
    if (!shown) return there;
    if (!*shown) return 0;
    for (; *shown; shown++) count += *shown == ',';
    return count < there ? count : there;
}

static void stops(const char *how) {
    while (!strcmp(how, "hang")) pause();
    if (!strcmp(how, "crash")) signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
}

int cuInit(unsigned flags) {
    char room[64];
    (void)flags;
    stops(told("STANDIN_CUDA", "/etc/standin-cuda", "init", room, sizeof room));
    int code = (int)number("init", OK);
    return code ? code : devices() ? OK : NO_DEVICE;
}

int cuDriverGetVersion(int *version) { return *version = (int)number("driver", 12080), OK; }
int cuDeviceGetCount(int *count) { return *count = devices(), OK; }
int cuDeviceGet(int *device, int index) { return *device = index, index < 0 || index >= devices() ? 101 : OK; }
int cuDeviceGetPCIBusId(char *name, int length, int device) {
    return snprintf(name, length, "0000:%02x:00.0", 16 + device), OK;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    char room[64];
    return *value = attribute == 20 ? atoi(of_device("mode", physical(device), room, sizeof room)) : 0, OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    char room[64];
    const char *how = of_device("context", physical(device), room, sizeof room);
    room[strcspn(room, "@")] = 0;
    stops(how);
    contexts[device].device = physical(device);
    return *context = &contexts[device], atoi(how);
}
int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, OK; }
int cuCtxSetCurrent(void *context) { return current = context, OK; }
int cuCtxGetDevice(int *device) {
    if (!current) return 201;
    return *device = current->device, OK;
}

int cuGetErrorString(int code, const char **words) {
    switch (code) {
    case OK: *words = "no error"; break;
    case NO_MEMORY: *words = "out of memory"; break;
    case 35: *words = "CUDA driver version is insufficient for CUDA runtime version"; break;
    case NO_DEVICE: *words = "no CUDA-capable device is detected"; break;
    case 101: *words = "invalid device ordinal"; break;
    case NO_BINARY: *words = "no kernel image is available for execution on the device"; break;
    case 802: *words = "system not yet initialized"; break;
    case 803: *words = "system has unsupported display driver / cuda driver combination"; break;
    default: *words = "unknown error";
    }
    return OK;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    *total = (size_t)number("memory", 4LL << 30);
    *free = *total - (size_t)used;
    return OK;
}

int cuMemAlloc_v2(uint64_t *address, size_t size) {
    size_t free, total;
    cuMemGetInfo_v2(&free, &total);
    if (size > free || (number("oom", 0) && size > 4096)) return NO_MEMORY;
    void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return NO_MEMORY;
    used += (long long)size;
    return *address = (uint64_t)found, OK;
}

int cuMemFree_v2(uint64_t address) { return address ? OK : INVALID; }
int cuMemAllocHost_v2(void **address, size_t size) { return (*address = malloc(size)) ? OK : NO_MEMORY; }

/* The default stream: what runs there waits for all others. */
static void drain(void) {
    pthread_mutex_lock(&guard);
    stream_t *one = streams;
    pthread_mutex_unlock(&guard);
    for (; one; one = one->next) {
        pthread_mutex_lock(&one->lock);
        while (one->first || one->busy) pthread_cond_wait(&one->changed, &one->lock);
        pthread_mutex_unlock(&one->lock);
    }
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { return drain(), memcpy((void *)to, from, size), OK; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { return drain(), memcpy(to, (void *)from, size), OK; }
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size) {
    return drain(), memcpy((void *)to, (void *)from, size), OK;
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t size) { return drain(), memset((void *)to, value, size), OK; }

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void *work(void *data) {
    stream_t *stream = own = data;
    for (;;) {
        pthread_mutex_lock(&stream->lock);
        while (!stream->first) pthread_cond_wait(&stream->changed, &stream->lock);
        task_t *task = stream->first;
        stream->first = task->next;
        stream->busy = 1;
        pthread_mutex_unlock(&stream->lock);
        as_a_device = -1;
        double began = now();
        task->run(task->data);
        stream->clock += as_a_device < 0 ? now() - began : as_a_device;
        free(task);
        pthread_mutex_lock(&stream->lock);
        stream->busy = 0;
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->lock);
    }
    return NULL;
}

int cuStreamCreate(void **stream, unsigned flags) {
    pthread_t thread;
    stream_t *made = calloc(1, sizeof *made);
    (void)flags;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    pthread_mutex_lock(&guard);
    made->next = streams;
    streams = made;
    pthread_mutex_unlock(&guard);
    if (pthread_create(&thread, NULL, work, made)) return INVALID;
    return *stream = made, OK;
}

int cuLaunchHostFunc(void *where, void (*run)(void *), void *data) {
    stream_t *stream = where;
    task_t *task = calloc(1, sizeof *task);
    task->run = run;
    task->data = data;
    pthread_mutex_lock(&stream->lock);
    if (stream->first) stream->last->next = task;
    else stream->first = task;
    stream->last = task;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return OK;
}

static void passes(void *data) {
    event_t *event = data;
    event->at = own->clock;
    as_a_device = 0;
    __sync_fetch_and_sub(&event->pending, 1);
}

int cuEventCreate(void **event, unsigned flags) { return (void)flags, *event = calloc(1, sizeof(event_t)), OK; }
int cuEventRecord(void *event, void *stream) {
    __sync_fetch_and_add(&((event_t *)event)->pending, 1);
    return cuLaunchHostFunc(stream, passes, event);
}
int cuEventQuery(void *event) { return ((event_t *)event)->pending ? NOT_READY : OK; }
int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
    event_t *before = from, *after = to;
    *milliseconds = (float)(1e3 * (after->at - before->at));
    return OK;
}

/* Kernels and copies that are queued: as on a device of 18 TFLOPS and 1800 GB/s, with 25 GB/s to the host. */
enum { THREADS = 256, CHAINS = 8, UNROLLED = 4, FIXED = 500, LOST = 999 };

typedef struct { double seconds; uint32_t *out; unsigned blocks, rounds; int floats, wrong, hang, host; const uint32_t *matrix[2]; size_t words; double capped; } timed_t;

/* A copy by the link that all GPUs share: long enough that two processes which do not wait for each other overlap. */
static int shared(void) {
    char room[256];
    const char *path = told("STANDIN_CUDA", "/etc/standin-cuda", "link", room, sizeof room);
    int file = *path ? open(path, O_CREAT | O_RDWR, 0600) : -1, alone;
    if (file < 0) return 0;
    alone = !flock(file, LOCK_EX | LOCK_NB);
    usleep(200000);
    close(file);
    return !alone;
}

static uint32_t computed(unsigned thread, unsigned rounds, int floats) {
    static const uint32_t constants[CHAINS] = {0xBFFD70A4, 0xBFFC28F6, 0xBFFAE148, 0xBFF9999A,
                                               0xBFF851EC, 0xBFF70A3D, 0xBFF5C28F, 0xBFF47AE1};
    if (!floats) {
        uint32_t x = thread * 2654435761u + 12345;
        for (unsigned n = 0; n < rounds * UNROLLED; n++) {
            x = x * 1664525 + 1013904223;
            x ^= x >> 13;
            x += (uint32_t)(((uint64_t)x * 2654435761u) >> 32);
        }
        return x;
    }
    uint32_t found = 0, bits;
    for (int chain = 0; chain < CHAINS; chain++) {
        float x = (float)thread * 0x1p-8f, c;
        memcpy(&c, &constants[chain], sizeof c);
        for (unsigned n = 0; n < rounds * UNROLLED; n++) x = __builtin_fmaf(x, x, c);
        memcpy(&bits, &x, sizeof bits);
        found = chain ? ((found << 5) | (found >> 27)) ^ bits : bits;
    }
    return found;
}

/* Of the numbers of a matrix, at 1024 places: whether most differ, and all are normal and between 2^-7 and 2^-3. */
static int draws_power(const uint32_t *words, size_t count) {
    int others = 0;
    for (size_t n = 0; n < 1024; n++) {
        uint32_t word = words[count / 1024 * n], before = words[n ? count / 1024 * (n - 1) + 1 : 1];
        others += word != before;
        for (int half = 0; half < 2; half++, word >>= 16) {
            unsigned exponent = (word >> 7) & 0xff;
            if (exponent < 120 || exponent > 123) return 0;
        }
    }
    return others > 1000;
}

static void runs(void *data) {
    static double multiplied;
    timed_t *work = data;
    if (work->words) {
        multiplied += work->seconds;
        if (multiplied > 0.1 && draws_power(work->matrix[0], work->words) && draws_power(work->matrix[1], work->words))
            work->seconds /= work->capped;
    }
    as_a_device = work->seconds;
    struct timespec pause = {(time_t)work->seconds, (long)(1e9 * (work->seconds - (time_t)work->seconds))};
    while (work->hang) pause.tv_sec = 1000, nanosleep(&pause, NULL);
    if (work->host && shared()) as_a_device = 2 * work->seconds;
    if (work->out && work->rounds == FIXED) {
        for (unsigned thread = 0; thread < THREADS; thread++)
            work->out[thread] = computed(thread, work->rounds, work->floats);
        for (unsigned block = 1; block < work->blocks; block++)
            memcpy(work->out + block * THREADS, work->out, THREADS * sizeof *work->out);
        for (int block = 0; block < work->wrong; block++) work->out[(block + 1) * THREADS + 7] ^= 1 << 9;
    } else nanosleep(&pause, NULL);
}

static int timed(void *stream, const char *what, double seconds, timed_t work) {
    int device = current->device;
    timed_t *kept = malloc(sizeof *kept);
    if (does("lost", what, device)) return LOST;
    *kept = work;
    kept->seconds = seconds / speed(what, device);
    kept->hang = does("hang", what, device);
    return cuLaunchHostFunc(stream, runs, kept);
}

/* As the real one, it keeps what it compiled in the home folder, unless it is told not to. */
int cuModuleLoadData(void **module, const char *image) {
    const char *target = strstr(image, ".target sm_"), *off = getenv("CUDA_CACHE_DISABLE"), *home = getenv("HOME");
    char folder[256];
    if (home && !(off && atoi(off))) snprintf(folder, sizeof folder, "%s/.nv", home), mkdir(folder, 0700);
    if (target && atoi(target + strlen(".target sm_")) > number("sm", 90)) return NO_BINARY;
    return *module = strdup(image), OK;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    char entry[64];
    snprintf(entry, sizeof entry, " %s(", name);
    return *function = strdup(name), strstr(module, entry) ? OK : 500;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    static int launched;
    const char *name = function;
    (void)y, (void)z, (void)ty, (void)tz, (void)shared, (void)extra;
    if (threads != THREADS) return INVALID;
    if (!strcmp(name, "nothing")) return cuLaunchHostFunc(stream, (void (*)(void *))free, NULL);
    timed_t work = {.out = *(uint32_t **)parameters[0], .blocks = x, .rounds = *(unsigned *)parameters[1],
                    .floats = !strcmp(name, "floats")};
    char room[64];
    if (work.rounds == FIXED && work.floats) {
        work.wrong = atoi(of_device("wrong", current->device, room, sizeof room));
        if (launched++) work.wrong += atoi(of_device("warm", current->device, room, sizeof room));
    }
    return timed(stream, "compute", 2.0 * CHAINS * UNROLLED * x * threads * work.rounds / 18e12, work);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
    return (void)to, (void)from, timed(stream, "copy", 2.0 * (double)size / 1800e9, (timed_t){0});
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
    return (void)to, (void)from, timed(stream, "host", (double)size / 25e9, (timed_t){.host = 1});
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
    return (void)to, (void)from, timed(stream, "host", (double)size / 25e9, (timed_t){.host = 1});
}
int cuDeviceCanAccessPeer(int *able, int device, int peer) { return (void)device, (void)peer, *able = 1, OK; }
int cuCtxEnablePeerAccess(void *context, unsigned flags) {
    static int peers;
    return (void)context, (void)flags, peers++ < number("peers", 8) ? OK : TOO_MANY_PEERS;
}
int cuMemcpyPeerAsync(uint64_t to, void *there, uint64_t from, void *here, size_t size, void *stream) {
    return (void)to, (void)there, (void)from, (void)here, timed(stream, "peer", (double)size / 100e9, (timed_t){0});
}

/* cuBLAS: matrices whose rows follow each other, with 270 TFLOPS in BF16 and 18 in single precision. */
int cublasCreate_v2(void **handle) { return *handle = calloc(1, sizeof(void *)), OK; }
int cublasSetStream_v2(void *handle, void *stream) { return *(void **)handle = stream, OK; }
int cublasGemmEx(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a, int kind_a,
                 int lda, const void *b, int kind_b, int ldb, const void *beta, void *c, int kind_c, int ldc,
                 int computed_in, int algorithm) {
    if (turn_a || turn_b || lda != m || ldb != k || ldc != m || kind_a != kind_b || kind_b != kind_c) return 7;
    if (computed_in != 68 || algorithm != -1 || *(const float *)alpha != 1 || *(const float *)beta != 0) return 7;
    if (!a || !b || !c || !(kind_a == 14 || kind_a == 0)) return 7;
    if (kind_a && number("bf16", OK)) return (int)number("bf16", OK);
    double operations = 2.0 * m * n * k;
    return timed(*(void **)handle, "product", operations / (kind_a ? 270e12 : 18e12),
                 (timed_t){.matrix = {a, b}, .words = (size_t)m * k / (kind_a ? 2 : 1),
                           .capped = speed("capped", current->device)});
}
