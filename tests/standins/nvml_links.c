/* Stands in for libnvidia-ml.so.1: the GPUs and NVLinks that the file $NVML_BOARD lists, or what $NVML_FAILS names
   (with $NVML_CODE, or as a GPU that is lost). The GPU with the index $NVML_FORBIDS is not for this user.

   Each line is a GPU: its address, 1 if MIG is on, then state,kind,address of each link that it has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 16
#define LINKS 18

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
struct link { unsigned state, kind; char remote[32]; };
struct gpu { char address[32]; unsigned mig; int links; struct link link[LINKS]; };

static struct gpu gpus[MOST];
static unsigned count;

static int fails(const char *name) {
    const char *named = getenv("NVML_FAILS"), *code = getenv("NVML_CODE");
    return !named || strcmp(named, name) ? 0 : code ? atoi(code) : 15;
}

int nvmlInit_v2(void) {
    char line[8192], *word;
    FILE *file = fopen(getenv("NVML_BOARD"), "r");
    if (getenv("NVML_HANGS")) for (;;) pause();
    while (file && fgets(line, sizeof line, file)) {
        struct gpu *gpu = &gpus[count++];
        snprintf(gpu->address, sizeof gpu->address, "%s", strtok(line, " \n"));
        gpu->mig = atoi(strtok(NULL, " \n"));
        while ((word = strtok(NULL, " \n"))) {
            struct link *link = &gpu->link[gpu->links++];
            sscanf(word, "%u,%u,%31s", &link->state, &link->kind, link->remote);
        }
    }
    return fails("nvmlInit_v2");
}

const char *nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned *number) { *number = count; return 0; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **gpu) {
    const char *forbidden = getenv("NVML_FORBIDS");
    *gpu = &gpus[index];
    return forbidden && (unsigned)atoi(forbidden) == index ? 4 : fails("nvmlDeviceGetHandleByIndex_v2");
}

static int described(const char *address, struct pci *pci) {
    char *upper = pci->text;
    snprintf(pci->text, sizeof pci->text, "0000%s", address); /* NVML's domains have eight digits */
    for (; *upper; upper++) if (*upper >= 'a' && *upper <= 'f') *upper -= 32;
    return 0;
}

int nvmlDeviceGetPciInfo_v3(const struct gpu *gpu, struct pci *pci) { return described(gpu->address, pci); }

int nvmlDeviceGetMigMode(const struct gpu *gpu, unsigned *now, unsigned *pending) {
    *now = *pending = gpu->mig;
    return fails("nvmlDeviceGetMigMode") ? fails("nvmlDeviceGetMigMode") : gpu->links ? 0 : 3;
}

int nvmlDeviceGetNvLinkState(const struct gpu *gpu, unsigned link, unsigned *state) {
    if ((int)link >= gpu->links) return gpu->links ? 2 : 3;
    *state = gpu->link[link].state;
    return fails("nvmlDeviceGetNvLinkState");
}

int nvmlDeviceGetNvLinkRemoteDeviceType(const struct gpu *gpu, unsigned link, unsigned *kind) {
    *kind = gpu->link[link].kind;
    return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(const struct gpu *gpu, unsigned link, struct pci *pci) {
    return strcmp(gpu->link[link].remote, "-") ? described(gpu->link[link].remote, pci) : 3;
}
