/* Stands in for libnccl.so.2: a ring over TCP that sums and moves host memory, and for sends and receives a connection
   of each two ranks, between addresses that it chooses as NCCL does, by NCCL_SOCKET_IFNAME, which it reads from
   /etc/nccl.conf, too. At its end it appends to the file STANDIN_COUNTS, for each operation: its rank, the operation,
   how often it was launched, and how many bytes this rank sent to others. Built with -DCODE=21903 -DTEXT='"2.19.3+cuda12.3"' for
   that version, with -DWITHOUT_CONFIG as before 2.14, with -DWITHOUT_ALL_REDUCE as no NCCL ever was.

   Told by STANDIN_NCCL, or by /etc/standin-nccl of the host; `rank=N` leaves the other ranks in health, `at=N` lets that
   many operations pass before:
     version=22703         what ncclGetVersion says, whatever it was built for
     rate=BYTES            a second, that this rank sends at most
     pair=A-B,pace=BYTES   a second, that rank A sends to rank B at most by ncclSend: no ring shows it
     connect=SECONDS       that the first sends and receives take, which connect each two ranks
     wrong=N               elements of each larger result that are not right
     hang=init|collective  until it is aborted
     die=init|collective   SIGSEGV
     fail=init|collective  ncclSystemError
     ib=1                  as if there was an InfiniBand device (the bytes go by TCP all the same)
     net=Socket            it falls to sockets although NCCL_NET says IB
     diag=bad              from 2.31 on, where NCCL_RUN_DIAGNOSTICS asks: GPUs 0 and 1 give each other wrong data
     lazy=1                a launch of a non-blocking communicator is in progress for a moment
     shm=leave|full        its segment is not removed; there is no room for it */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "told.h"

#ifdef RCCL /* librccl.so.1: the same for AMD's GPUs, which brings its own HIP */
#define DRIVER "libamdhip64.so.6"
#define CURRENT_DEVICE "hipGetDevice"
#define LAUNCH "hipLaunchHostFunc"
#define CONFIGURATION "/etc/rccl.conf"
__attribute__((constructor)) static void bring_hip(void) { dlopen(DRIVER, RTLD_NOW); }
#else
#define DRIVER "libcuda.so.1"
#define CURRENT_DEVICE "cuCtxGetDevice"
#define LAUNCH "cuLaunchHostFunc"
#define CONFIGURATION "/etc/nccl.conf"
#endif

#ifndef CODE
#define CODE 22703
#define TEXT "2.27.3+cuda12.9"
#endif

const char *const version_text = "NCCL version " TEXT;

enum { OK = 0, CUDA_ERROR = 1, SYSTEM = 2, INTERNAL = 3, ARGUMENT = 4, USAGE = 5, REMOTE = 6, PROGRESS = 7 };

enum { ALL_REDUCE, LARGEST, ALL_GATHER, REDUCE_SCATTER, BROADCAST, EXCHANGE, KINDS };
static const char *const kinds[KINDS] = {"all-reduce", "largest", "all-gather", "reduce-scatter", "broadcast",
                                         "send-and-receive"};

typedef union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } address_t;
typedef struct { uint64_t magic; address_t address; } handle_t;
typedef struct { char internal[128]; } id_t_;
typedef struct { uint64_t magic, host; int rank, ranks, version, device; address_t address; } hello_t;
typedef struct { size_t size; unsigned magic, version; int blocking; } config_t;
typedef struct {
    int rank, ranks, device, next, previous, blocking, collectives, running, listener, *peers;
    volatile int state, aborted;
    handle_t root;
    pthread_t initiator;
    char segment[64];
    float *room;
    size_t held;
    address_t address;
    hello_t *table;
    long long launches[KINDS], sent[KINDS], moved;
} comm_t;
typedef struct { int sending, peer; char *at; size_t left; } transfer_t;
typedef struct {
    comm_t *comm;
    int kind;
    const float *send;
    float *receive;
    size_t count;
    int operation;
    void *stream;
    int transfers;
    transfer_t *transfer;
} work_t;

static char last[512];

static const char *setting(const char *name) {
    static __thread char room[64];
    return told("STANDIN_NCCL", "/etc/standin-nccl", name, room, sizeof room);
}
static long long number(const char *name, long long otherwise) {
    const char *text = setting(name);
    return *text ? atoll(text) : otherwise;
}
static int is(const comm_t *comm, const char *name, const char *value) {
    long long rank = number("rank", comm->rank);
    return rank == comm->rank && !strcmp(setting(name), value);
}

static void say(int warning, const char *format, ...) {
    char text[512], host[64] = "";
    const char *debug = getenv("NCCL_DEBUG");
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    if (warning) snprintf(last, sizeof last, "%s", text);
    if (!debug || (strcmp(debug, "INFO") && (!warning || strcmp(debug, "WARN")))) return;
    gethostname(host, sizeof host - 1);
    printf("%s%s:%d:%ld [0] %s %s\n", warning ? "\n" : "", host, getpid(), syscall(SYS_gettid),
           warning ? "standin.cc:1 NCCL WARN" : "NCCL INFO", text);
    fflush(stdout);
}

static int version(void) { return (int)number("version", CODE); }
static void read_configuration(void) {
    char line[256];
    FILE *file = fopen(CONFIGURATION, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, '=');
        if (*line == '#' || !value) continue;
        *value++ = 0;
        setenv(line, value, 0);
    }
    if (file) fclose(file);
}

/* ---- addresses ---- */

static socklen_t length(const address_t *address) {
    return address->any.sa_family == AF_INET6 ? sizeof address->v6 : sizeof address->v4;
}
static const char *shown(const address_t *address) {
    static __thread char text[80];
    char ip[INET6_ADDRSTRLEN];
    int six = address->any.sa_family == AF_INET6;
    inet_ntop(address->any.sa_family, six ? (void *)&address->v6.sin6_addr : (void *)&address->v4.sin_addr, ip, sizeof ip);
    snprintf(text, sizeof text, "%s<%d>", ip, ntohs(six ? address->v6.sin6_port : address->v4.sin_port));
    return text;
}
static int listed(const char *name, const char *list, int exact) {
    while (*list) {
        size_t part = strcspn(list, ",");
        if (part && !strncmp(name, list, part) && (!exact || !name[part])) return 1;
        list += part + (list[part] == ',');
    }
    return 0;
}
static int matching(const char *list, address_t *found, char *name) {
    int negated = *list == '^', exact, ok = 0;
    list += negated;
    exact = *list == '=';
    list += exact;
    struct ifaddrs *all, *one;
    if (getifaddrs(&all)) return 0;
    for (one = all; one && !ok; one = one->ifa_next) {
        int family = one->ifa_addr ? one->ifa_addr->sa_family : 0;
        if (family != AF_INET && family != AF_INET6) continue;
        if ((version() >= 22803 && !(one->ifa_flags & IFF_RUNNING)) || listed(one->ifa_name, list, exact) == negated) continue;
        if (family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr)) continue;
        memset(found, 0, sizeof *found);
        memcpy(found, one->ifa_addr, family == AF_INET ? sizeof found->v4 : sizeof found->v6);
        snprintf(name, IF_NAMESIZE, "%s", one->ifa_name);
        ok = 1;
    }
    freeifaddrs(all);
    return ok;
}
static int own(address_t *found, char *name) {
    const char *rules[] = {"ib", version() >= 22803 ? "^docker,lo,virbr" : "^docker,lo", "docker", "lo", "virbr"}, *list;
    list = getenv("NCCL_SOCKET_IFNAME");
    if (list && strlen(list) > 1) return matching(list, found, name);
    for (int rule = 0; rule < 5; rule++)
        if (matching(rules[rule], found, name)) return 1;
    return 0;
}

/* ---- sockets ---- */

static int ready(int number, short events, const volatile int *aborted) {
    struct pollfd one = {number, events, 0};
    while (!*aborted)
        if (poll(&one, 1, 50) > 0) return 1;
    return 0;
}
static int whole(int number, void *data, size_t size, int sending, const volatile int *aborted) {
    for (char *at = data; size;) {
        if (!ready(number, sending ? POLLOUT : POLLIN, aborted)) return 0;
        ssize_t moved = sending ? send(number, at, size, MSG_NOSIGNAL) : recv(number, at, size, 0);
        if (moved < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (moved <= 0) return 0;
        at += moved;
        size -= (size_t)moved;
    }
    return 1;
}
static int listening(address_t *address) {
    socklen_t size = length(address);
    int one = 1, number = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (number < 0 || bind(number, &address->any, size) || listen(number, 1024)) return -1;
    getsockname(number, &address->any, &size);
    return number;
}
static int dialled(const address_t *from, const address_t *to, const volatile int *aborted) {
    for (int attempt = 0; !*aborted && attempt < 100; attempt++) {
        address_t source = *from;
        int one = 1, error = 0, number = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof error;
        source.v4.sin_port = 0;
        setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (bind(number, &source.any, length(&source))) error = errno;
        else if (connect(number, &to->any, length(to)) && errno != EINPROGRESS) error = errno;
        else if (ready(number, POLLOUT, aborted)) getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size);
        else error = ECANCELED;
        if (!error) return number;
        close(number);
        if (error != ECONNREFUSED || attempt == 99) {
            say(1, "socketPollConnect: connect to %s returned %s, exceeded error retry count after 35 attempts", shown(to),
                strerror(error));
            return -1;
        }
        usleep(20000);
    }
    return -1;
}

/* ---- the root, where the ranks learn of each other ---- */

typedef struct { int number; uint64_t magic; } root_t;

static void *gather(void *data) {
    static const volatile int never = 0;
    root_t root = *(root_t *)data;
    hello_t *table = NULL, hello;
    int *peers = NULL, there = 0, wanted = 1;
    free(data);
    while (there < wanted) {
        int peer = accept4(root.number, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0) return NULL;
        if (!whole(peer, &hello, sizeof hello, 0, &never) || hello.magic != root.magic || hello.rank >= hello.ranks) {
            close(peer);
            continue;
        }
        if (!table) {
            wanted = hello.ranks;
            table = calloc((size_t)wanted, sizeof *table);
            peers = calloc((size_t)wanted, sizeof *peers);
        }
        if (peers[hello.rank]) {
            say(1, "Bootstrap Root : rank %d of %d ranks has already checked in", hello.rank, wanted);
            close(peer);
            continue;
        }
        table[hello.rank] = hello;
        peers[hello.rank] = peer;
        there++;
    }
    for (int rank = 0; rank < wanted; rank++) {
        whole(peers[rank], table, (size_t)wanted * sizeof *table, 1, &never);
        close(peers[rank]);
    }
    close(root.number);
    return NULL;
}
static int open_root(handle_t *handle) {
    pthread_t thread;
    root_t *root = calloc(1, sizeof *root);
    root->number = listening(&handle->address);
    root->magic = handle->magic;
    return root->number < 0 || pthread_create(&thread, NULL, gather, root) ? SYSTEM : OK;
}
static int appointed(handle_t *handle) {
    char text[80], *colon;
    const char *where = getenv("NCCL_COMM_ID");
    if (!where || strlen(where) < 2) return 0;
    snprintf(text, sizeof text, "%s", where);
    if (!(colon = strrchr(text, ':'))) return 0;
    *colon = 0;
    handle->magic = 1;
    handle->address.v4.sin_family = AF_INET;
    handle->address.v4.sin_port = htons((uint16_t)atoi(colon + 1));
    return inet_pton(AF_INET, text, &handle->address.v4.sin_addr) == 1;
}

int ncclGetVersion(int *said) { return said ? *said = version(), OK : ARGUMENT; }

int ncclGetUniqueId(id_t_ *id) {
    char name[IF_NAMESIZE];
    handle_t handle = {0};
    memset(id, 0, sizeof *id);
    read_configuration();
    if (!appointed(&handle)) {
        if (!own(&handle.address, name)) return say(1, "Bootstrap : no socket interface found"), USAGE;
        getentropy(&handle.magic, sizeof handle.magic);
        if (open_root(&handle)) return SYSTEM;
    }
    memcpy(id, &handle, sizeof handle);
    return OK;
}

/* ---- init ---- */

static void pause_until(const volatile int *aborted) {
    while (!*aborted) usleep(20000);
}
static void die(void) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}
static uint64_t host(void) {
    char text[256] = "";
    uint64_t hash = 5381;
    const char *given = getenv("NCCL_HOSTID");
    if (given) snprintf(text, sizeof text, "%s", given);
    else gethostname(text, sizeof text - 1);
    for (const char *at = text; *at; at++) hash = hash * 33 + (unsigned char)*at;
    return hash;
}
static int network(const comm_t *comm, const char *name, const address_t *address) {
    const char *wanted = getenv("NCCL_NET");
    int device = number("ib", 0) && !is(comm, "net", "Socket");
    int infiniband = device && (!wanted || strcmp(wanted, "Socket"));
    if (!device) say(0, "NET/IB : No device found.");
    if (wanted && !strcmp(wanted, "IB") && !device && !is(comm, "net", "Socket"))
        return say(1, "Error: network IB not found."), USAGE;
    if (infiniband) say(0, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB %s:%s", name, shown(address));
    else say(0, "NET/Socket : Using [0]%s:%s", name, shown(address));
    say(0, "Using network %s", infiniband ? "IB" : "Socket");
    return OK;
}
static int segment(comm_t *comm) {
    const char *mark = getenv("STANDIN_MARK"); /* by which a test knows its own */
    snprintf(comm->segment, sizeof comm->segment, "/dev/shm/nccl-%.20sXXXXXX", mark ? mark : "");
    int number = mkstemp(comm->segment);
    if (is(comm, "shm", "full")) {
        say(1, "Error: failed to extend %s to 33030532 bytes, error: No space left on device (28)", comm->segment);
        close(number);
        unlink(comm->segment);
        return SYSTEM;
    }
    if (number < 0 || ftruncate(number, 4096)) return SYSTEM;
    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
    close(number);
    return OK;
}
static int agreeing(const comm_t *comm, const hello_t *table) {
    const hello_t *here = &table[comm->rank];
    for (int rank = 0; rank < comm->ranks; rank++) {
        const hello_t *there = &table[rank];
        if (there->version != here->version)
            return say(1, "Mismatched NCCL version detected : rank %d version %d rank %d version %d", comm->rank,
                       here->version, rank, there->version), USAGE;
        if (rank != comm->rank && there->host == here->host && there->device == here->device)
            return say(1, "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x000", comm->rank, rank,
                       16 + here->device), USAGE;
    }
    return OK;
}
static int joined(comm_t *comm, int listener, const address_t *address, hello_t *table) {
    int number = dialled(address, &comm->root.address, &comm->aborted);
    size_t size = (size_t)comm->ranks * sizeof *table;
    hello_t hello = {comm->root.magic, host(), comm->rank, comm->ranks, version(), comm->device, *address};
    int ok = number >= 0 && whole(number, &hello, sizeof hello, 1, &comm->aborted) &&
             whole(number, table, size, 0, &comm->aborted);
    if (number >= 0) close(number);
    if (!ok) return SYSTEM;
    int code = agreeing(comm, table);
    if (code || comm->ranks == 1) return code;
    comm->next = dialled(address, &table[(comm->rank + 1) % comm->ranks].address, &comm->aborted);
    if (comm->next < 0 || !ready(listener, POLLIN, &comm->aborted)) return SYSTEM;
    comm->previous = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return comm->previous < 0 ? SYSTEM : OK;
}
static int started(comm_t *comm) {
    char name[IF_NAMESIZE];
    address_t address = {0};
    read_configuration();
    if (is(comm, "die", "init")) die();
    if (is(comm, "hang", "init")) pause_until(&comm->aborted);
    if (is(comm, "fail", "init")) return say(1, "Call to ibv_create_qp failed with error Cannot allocate memory"), SYSTEM;
    if (!own(&address, name)) return say(1, "Bootstrap : no socket interface found"), USAGE;
    say(0, "Bootstrap: Using %s:%s", name, shown(&address));
    handle_t handle = {0}; /* where NCCL_COMM_ID tells the place, the first rank opens the root there */
    if (appointed(&handle) && comm->rank == 0 && open_root(&handle)) return SYSTEM;
    int code = network(comm, name, &address);
    comm->listener = listening(&address);
    comm->address = address;
    comm->table = calloc((size_t)comm->ranks, sizeof *comm->table);
    if (!code) code = comm->listener < 0 ? SYSTEM : segment(comm);
    if (!code) code = joined(comm, comm->listener, &address, comm->table);
    return comm->aborted ? INTERNAL : code;
}
/* What NCCL prints of its diagnostics, to standard output: the pipe's other end sees it when the buffer is written. */
static void diagnosed(const comm_t *comm) {
    const char *asked = getenv("NCCL_RUN_DIAGNOSTICS");
    char host[64] = "", room[16];
    if (version() < 23100 || !asked || strcmp(asked, "1") || comm->rank) return;
    int bad = !strcmp(told("STANDIN_NCCL", "/etc/standin-nccl", "diag", room, sizeof room), "bad");
    int pairs = comm->ranks * (comm->ranks - 1), pid = getpid();
    gethostname(host, sizeof host - 1);
    printf("%s:%d NCCL DIAG === NCCL Diagnostics ===\n", host, pid);
    if (bad)
        printf("%s:%d NCCL DIAG [INFO] p2p: write mismatch srcRank=0 srcCudaDev=0 dstRank=1 dstCudaDev=1 path=NVL\n"
               "%s:%d NCCL DIAG [INFO] p2p: only %d/%d GPU-to-GPU peer accesses passed verification\n",
               host, pid, host, pid, pairs - 1, pairs);
    else
        printf("%s:%d NCCL DIAG [OK]   p2p: verified P2P access in both directions between every GPU pair (%d peer "
               "accesses)\n", host, pid, pairs);
    printf("%s:%d NCCL DIAG NCCL diagnostics completed in 1.5 ms across %d ranks\n", host, pid, comm->ranks);
}
static void *initiate(void *data) {
    comm_t *comm = data;
    int code = started(comm);
    if (!code) say(0, "ncclCommInitRank comm %p rank %d nranks %d - Init COMPLETE", data, comm->rank, comm->ranks);
    if (!code) diagnosed(comm);
    comm->state = code;
    return NULL;
}
static int created(comm_t **comm, int ranks, const id_t_ *id, int rank, int blocking) {
    int (*device)(int *) = NULL;
    void *driver = dlopen(DRIVER, RTLD_NOW);
    comm_t *made = calloc(1, sizeof *made);
    if (rank < 0 || rank >= ranks) return ARGUMENT;
    if (driver) device = (int (*)(int *))dlsym(driver, CURRENT_DEVICE);
    made->rank = rank;
    made->ranks = ranks;
    made->blocking = blocking;
    made->next = made->previous = made->listener = -1;
    made->state = PROGRESS;
    if (!device || device(&made->device)) return say(1, "Cuda failure 'invalid device context'"), CUDA_ERROR;
    memcpy(&made->root, id, sizeof made->root);
    *comm = made;
    if (blocking) return initiate(made), made->state;
    made->running = 1;
    return pthread_create(&made->initiator, NULL, initiate, made) ? SYSTEM : PROGRESS;
}
int ncclCommInitRank(comm_t **comm, int ranks, id_t_ id, int rank) { return created(comm, ranks, &id, rank, 1); }
#ifndef WITHOUT_CONFIG
int ncclCommInitRankConfig(comm_t **comm, int ranks, id_t_ id, int rank, const config_t *config) {
    if (config->magic != 0xcafebeef || config->size < sizeof *config) return ARGUMENT;
    return created(comm, ranks, &id, rank, config->blocking);
}
#endif

/* ---- the operations ---- */

/* Send to the next and receive from the one before, both at once. */
static int moved(comm_t *comm, const char *out, size_t outs, char *in, size_t ins) {
    size_t wholly = outs;
    long long rate = comm->rank == number("rank", comm->rank) ? number("rate", 0) : 0;
    while (outs || ins) {
        struct pollfd both[2] = {{outs ? comm->next : -1, POLLOUT, 0}, {ins ? comm->previous : -1, POLLIN, 0}};
        if (comm->aborted) return INTERNAL;
        if (poll(both, 2, 50) <= 0) continue;
        ssize_t gone = both[0].revents ? send(comm->next, out, outs, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        ssize_t come = both[1].revents ? recv(comm->previous, in, ins, MSG_DONTWAIT) : 0;
        int over = (both[1].revents && come == 0) || (come < 0 && errno != EAGAIN);
        if (over || (gone < 0 && errno != EAGAIN)) {
            say(1, "NET/Socket : Connection closed by remote peer");
            return REMOTE;
        }
        if (gone > 0) out += gone, outs -= (size_t)gone, comm->moved += gone;
        if (come > 0) in += come, ins -= (size_t)come;
    }
    if (rate) usleep((useconds_t)(1e6 * (double)wholly / (double)rate));
    return OK;
}
static void combined(float *into, const float *with, size_t count, int operation) {
    for (size_t at = 0; at < count; at++)
        into[at] = operation == 2 ? (into[at] > with[at] ? into[at] : with[at]) : into[at] + with[at];
}
static int ring(comm_t *comm, float *data, size_t count, int operation) {
    int n = comm->ranks, code = OK;
    if (comm->held < count / (size_t)n + 1) {
        comm->held = count / (size_t)n + 1;
        comm->room = realloc(comm->room, comm->held * sizeof(float));
    }
    for (int step = 0; step < 2 * (n - 1) && !code; step++) {
        int shift = step < n - 1 ? 0 : 1, turn = step % (n - 1);
        size_t give = (size_t)((comm->rank + shift - turn + 2 * n) % n), take = (give + (size_t)n - 1) % (size_t)n;
        size_t from = count * give / (size_t)n, to = count * (give + 1) / (size_t)n;
        size_t start = count * take / (size_t)n, part = count * (take + 1) / (size_t)n - start;
        char *in = (char *)(shift ? data + start : comm->room);
        code = moved(comm, (char *)(data + from), (to - from) * sizeof(float), in, part * sizeof(float));
        if (!shift && !code) combined(data + start, comm->room, part, operation);
    }
    return code;
}
static int gathered(comm_t *comm, float *data, size_t count) {
    int n = comm->ranks, code = OK;
    for (int step = 0; step < n - 1 && !code; step++) {
        size_t give = (size_t)((comm->rank - step + n) % n), take = (give + (size_t)n - 1) % (size_t)n;
        code = moved(comm, (char *)(data + give * count), count * sizeof(float), (char *)(data + take * count),
                     count * sizeof(float));
    }
    return code;
}
static int scattered(comm_t *comm, const float *send, float *receive, size_t count) {
    int n = comm->ranks, code = OK;
    float *sums = malloc((size_t)n * count * sizeof(float)), *room = malloc(count * sizeof(float));
    memcpy(sums, send, (size_t)n * count * sizeof(float));
    for (int step = 0; step < n - 1 && !code; step++) {
        size_t give = (size_t)((comm->rank - 1 - step + 2 * n) % n), take = (give + (size_t)n - 1) % (size_t)n;
        code = moved(comm, (char *)(sums + give * count), count * sizeof(float), (char *)room, count * sizeof(float));
        if (!code) combined(sums + take * count, room, count, 0);
    }
    memcpy(receive, sums + (size_t)comm->rank * count, count * sizeof(float));
    free(sums);
    free(room);
    return code;
}
static int told_all(comm_t *comm, float *data, size_t count, int root) {
    size_t size = count * sizeof(float);
    int code = comm->rank == root ? OK : moved(comm, NULL, 0, (char *)data, size);
    return code || (comm->rank + 1) % comm->ranks == root ? code : moved(comm, (char *)data, size, NULL, 0);
}
/* A connection to each other rank. All have met in an operation before: no more of the ring's are to come. */
static int meshed(comm_t *comm) {
    if (comm->peers) return OK;
    usleep((useconds_t)(1e6 * (double)number("connect", 0)));
    comm->peers = malloc((size_t)comm->ranks * sizeof *comm->peers);
    memset(comm->peers, -1, (size_t)comm->ranks * sizeof *comm->peers);
    for (int other = comm->rank + 1; other < comm->ranks; other++) {
        comm->peers[other] = dialled(&comm->address, &comm->table[other].address, &comm->aborted);
        if (comm->peers[other] < 0 || !whole(comm->peers[other], &comm->rank, sizeof comm->rank, 1, &comm->aborted))
            return SYSTEM;
    }
    for (int there = 0; there < comm->rank; there++) {
        int other = -1, number;
        if (!ready(comm->listener, POLLIN, &comm->aborted)) return SYSTEM;
        number = accept4(comm->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (number < 0 || !whole(number, &other, sizeof other, 0, &comm->aborted) || other < 0 || other >= comm->rank)
            return SYSTEM;
        comm->peers[other] = number;
    }
    return OK;
}
static void to_itself(const comm_t *comm, work_t *work) {
    transfer_t *out = NULL, *in = NULL;
    for (transfer_t *one = work->transfer; one < work->transfer + work->transfers; one++)
        if (one->peer == comm->rank) *(one->sending ? &out : &in) = one;
    if (out && in) memcpy(in->at, out->at, in->left), in->left = out->left = 0;
}
static int exchanged(comm_t *comm, work_t *work) {
    struct pollfd *fds = calloc((size_t)work->transfers, sizeof *fds);
    int code = meshed(comm), open = work->transfers, from = -1, to = -1, last = -1;
    long long before = comm->moved, rate = comm->rank == number("rank", comm->rank) ? number("rate", 0) : 0;
    sscanf(setting("pair"), "%d-%d", &from, &to);
    to_itself(comm, work);
    for (int at = 0; at < work->transfers; at++)
        if (work->transfer[at].sending && comm->rank == from && work->transfer[at].peer == to) last = at;
    while (open && !code) {
        open = 0;
        for (int at = 0; at < work->transfers; at++) {
            transfer_t *one = &work->transfer[at];
            int now = one->left && at != last;
            fds[at] = (struct pollfd){now ? comm->peers[one->peer] : -1, one->sending ? POLLOUT : POLLIN, 0};
            open += now;
        }
        if (!open && last >= 0) {
            usleep((useconds_t)(1e6 * (double)work->transfer[last].left / (double)number("pace", 1)));
            last = -1, open = 1;
            continue;
        }
        if (comm->aborted) code = INTERNAL;
        if (!open || code || poll(fds, (nfds_t)work->transfers, 50) <= 0) continue;
        for (int at = 0; at < work->transfers && !code; at++) {
            transfer_t *one = &work->transfer[at];
            if (!fds[at].revents) continue;
            ssize_t gone = one->sending ? send(fds[at].fd, one->at, one->left, MSG_NOSIGNAL | MSG_DONTWAIT)
                                        : recv(fds[at].fd, one->at, one->left, MSG_DONTWAIT);
            if (gone == 0 || (gone < 0 && errno != EAGAIN)) {
                say(1, "NET/Socket : Connection closed by remote peer");
                code = REMOTE;
            } else if (gone > 0) {
                one->at += gone, one->left -= (size_t)gone;
                if (one->sending) comm->moved += gone;
            }
        }
    }
    free(fds);
    if (rate) usleep((useconds_t)(1e6 * (double)(comm->moved - before) / (double)rate));
    return code;
}
static int run(comm_t *comm, work_t *work) {
    size_t size = work->count * sizeof(float);
    float *own = work->receive + (work->kind == ALL_GATHER ? (size_t)comm->rank * work->count : 0);
    if (work->kind == EXCHANGE) return exchanged(comm, work);
    if (work->kind == REDUCE_SCATTER) return scattered(comm, work->send, work->receive, work->count);
    if (work->kind != BROADCAST || comm->rank == work->operation)
        if (own != work->send) memcpy(own, work->send, size);
    if (comm->ranks == 1) return OK;
    if (work->kind == ALL_GATHER) return gathered(comm, work->receive, work->count);
    if (work->kind == BROADCAST) return told_all(comm, work->receive, work->count, work->operation);
    return ring(comm, work->receive, work->count, work->operation);
}
static void carry_out(void *data) {
    work_t *work = data;
    comm_t *comm = work->comm;
    int passed = comm->collectives++ >= number("at", 0), code = OK;
    if (passed && is(comm, "die", "collective")) die();
    if (passed && is(comm, "hang", "collective")) pause_until(&comm->aborted);
    if (passed && is(comm, "fail", "collective")) {
        say(1, "NET/IB: Got completion from peer 10.0.0.2<4711> with status=12 opcode=0 len=0 vendor err 129");
        code = SYSTEM;
    }
    long long before = comm->moved;
    if (!code) code = run(comm, work);
    comm->launches[work->kind]++;
    comm->sent[work->kind] += comm->moved - before;
    long long wrong = work->kind != LARGEST && number("rank", comm->rank) == comm->rank ? number("wrong", 0) : 0;
    for (long long at = 0; passed && at < wrong && at < (long long)work->count; at++) work->receive[at] += 1.0f;
    if (code && !comm->aborted) {
        comm->state = code;
        pause_until(&comm->aborted); /* the kernel never ends: the error is seen by ncclCommGetAsyncError alone */
    }
    free(work->transfer);
    free(work);
}
static int queued(work_t *work) {
    static int (*launch)(void *, void (*)(void *), void *);
    if (!launch) *(void **)&launch = dlsym(dlopen(DRIVER, RTLD_NOW), LAUNCH);
    return launch(work->stream, carry_out, work) ? CUDA_ERROR : OK;
}
static void *launched(void *data) {
    work_t *work = data;
    comm_t *comm = work->comm;
    usleep(1000);
    int code = queued(work);
    comm->state = code;
    return NULL;
}
#ifndef WITHOUT_ALL_REDUCE
static int asked(const work_t *given) {
    work_t *work = calloc(1, sizeof *work);
    comm_t *comm = given->comm;
    pthread_t thread;
    *work = *given;
    if (comm->blocking || !number("lazy", 0)) return queued(work);
    comm->state = PROGRESS;
    return pthread_create(&thread, NULL, launched, work) || pthread_detach(thread) ? SYSTEM : PROGRESS;
}
int ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation, comm_t *comm, void *stream) {
    if (type != 7 || (operation != 0 && operation != 2)) return ARGUMENT;
    return asked(&(work_t){comm, operation ? LARGEST : ALL_REDUCE, send, receive, count, operation, stream, 0, NULL});
}
int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int operation, comm_t *comm,
                      void *stream) {
    if (type != 7 || operation) return ARGUMENT;
    return asked(&(work_t){comm, REDUCE_SCATTER, send, receive, count, operation, stream, 0, NULL});
}
int ncclAllGather(const void *send, void *receive, size_t count, int type, comm_t *comm, void *stream) {
    return type != 7 ? ARGUMENT : asked(&(work_t){comm, ALL_GATHER, send, receive, count, 0, stream, 0, NULL});
}
int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root, comm_t *comm, void *stream) {
    if (type != 7 || root < 0 || root >= comm->ranks) return ARGUMENT;
    return asked(&(work_t){comm, BROADCAST, send, receive, count, root, stream, 0, NULL});
}

static __thread int depth;
static __thread work_t group;

static int added(int sending, void *at, size_t count, int type, int peer, comm_t *comm, void *stream) {
    if (type != 7 || peer < 0 || peer >= comm->ranks) return ARGUMENT;
    if (!depth) return USAGE; /* a send by itself would wait for its receive: nobody here asks for one */
    group.transfer = realloc(group.transfer, (size_t)(group.transfers + 1) * sizeof *group.transfer);
    group.transfer[group.transfers++] = (transfer_t){sending, peer, at, count * sizeof(float)};
    group.comm = comm, group.stream = stream, group.kind = EXCHANGE;
    if (!sending && !group.receive) group.receive = at, group.count = count;
    return comm->blocking ? OK : PROGRESS; /* of the group, which has not ended */
}
int ncclSend(const void *send, size_t count, int type, int peer, comm_t *comm, void *stream) {
    return added(1, (void *)send, count, type, peer, comm, stream);
}
int ncclRecv(void *receive, size_t count, int type, int peer, comm_t *comm, void *stream) {
    return added(0, receive, count, type, peer, comm, stream);
}
int ncclGroupStart(void) { return depth++, OK; }
int ncclGroupEnd(void) {
    work_t work = group;
    if (--depth || !work.transfers) return OK;
    memset(&group, 0, sizeof group);
    return asked(&work);
}
#endif

/* ---- errors and the end ---- */

int ncclCommGetAsyncError(const comm_t *comm, int *state) { return *state = comm->state, OK; }
const char *ncclGetLastError(const comm_t *comm) { return (void)comm, last; }
const char *ncclGetErrorString(int code) {
    static const char *const words[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };
    return code < 0 || code > PROGRESS ? "unknown result code" : words[code];
}
static void counted(const comm_t *comm) {
    const char *path = getenv("STANDIN_COUNTS");
    FILE *file = path ? fopen(path, "a") : NULL;
    for (int kind = 0; file && kind < KINDS; kind++)
        if (comm->launches[kind])
            fprintf(file, "%d %s %lld %lld\n", comm->rank, kinds[kind], comm->launches[kind], comm->sent[kind]);
    if (file) fclose(file);
}
static int over(comm_t *comm, int aborting) {
    comm->aborted = aborting;
    if (comm->running) pthread_join(comm->initiator, NULL);
    comm->running = 0;
    if (comm->next >= 0) close(comm->next);
    if (comm->previous >= 0) close(comm->previous);
    if (comm->listener >= 0) close(comm->listener);
    for (int other = 0; comm->peers && other < comm->ranks; other++)
        if (comm->peers[other] >= 0) close(comm->peers[other]);
    free(comm->peers);
    comm->peers = NULL;
    comm->next = comm->previous = comm->listener = -1;
    if (!aborting) counted(comm);
    if (comm->segment[0] && !is(comm, "shm", "leave")) unlink(comm->segment);
    return OK;
}
int ncclCommFinalize(comm_t *comm) { return (void)comm, OK; }
int ncclCommAbort(comm_t *comm) { return over(comm, 1); }
int ncclCommDestroy(comm_t *comm) { return over(comm, 0); }
