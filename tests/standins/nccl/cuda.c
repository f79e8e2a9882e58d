/* Stands in for libcuda.so.1: devices whose memory is the host's, streams that are threads, events by the clock.

   Told by STANDIN_CUDA, or by /etc/standin-cuda of the host: devices=N, memory=BYTES (of each), init=CODE (cuInit fails
   so), oom=1 (there is room, and no allocation succeeds), driver=NUMBER (12080). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "told.h"

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, NOT_READY = 600 };

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
    struct stream *next;
} stream_t;
typedef struct { volatile int pending; struct timespec at; } event_t;
typedef struct { int device; } context_t;

static stream_t *streams;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static long long used;
static context_t contexts[64];
static __thread context_t *current;

static int devices(void) {
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");
    int there = (int)number("devices", 8), count = 1;
    if (!shown) return there;
    if (!*shown) return 0;
    for (; *shown; shown++) count += *shown == ',';
    return count < there ? count : there;
}

int cuInit(unsigned flags) {
    (void)flags;
    int code = (int)number("init", OK);
    return code ? code : devices() ? OK : NO_DEVICE;
}

int cuDriverGetVersion(int *version) { return *version = (int)number("driver", 12080), OK; }
int cuDeviceGetCount(int *count) { return *count = devices(), OK; }
int cuDeviceGet(int *device, int index) { return *device = index, index < 0 || index >= devices() ? 101 : OK; }
int cuDeviceGetPCIBusId(char *name, int length, int device) {
    return snprintf(name, length, "0000:%02x:00.0", 16 + device), OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    contexts[device].device = device;
    return *context = &contexts[device], OK;
}
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

static void *work(void *data) {
    stream_t *stream = data;
    for (;;) {
        pthread_mutex_lock(&stream->lock);
        while (!stream->first) pthread_cond_wait(&stream->changed, &stream->lock);
        task_t *task = stream->first;
        stream->first = task->next;
        stream->busy = 1;
        pthread_mutex_unlock(&stream->lock);
        task->run(task->data);
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
    clock_gettime(CLOCK_MONOTONIC, &event->at);
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
    *milliseconds = (float)(1e3 * (double)(after->at.tv_sec - before->at.tv_sec) +
                            1e-6 * (double)(after->at.tv_nsec - before->at.tv_nsec));
    return OK;
}
