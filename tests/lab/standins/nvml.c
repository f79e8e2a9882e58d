/* Stands in for libnvidia-ml.so.1: two A100 of one driver, as a healthy node has them. Written for the real pynvml.

   Told by STANDIN_NVML, or by /etc/standin-nvml of the host, what one of them says otherwise while it is busy:
   throttled=BITS@GPU, width=LANES@GPU, replays=1@GPU (they grow with each look). At any time: use=PERCENT@GPU,
   watts=LIMIT@GPU, clock=MHZ@GPU, memory=DEGREES@GPU, ecc=LATER@GPU, mig=LATER@GPU, sram=1@GPU, vbios=NUMBER@GPU,
   used=MIB@GPU, pid=PROCESS@GPU. */
#include <stdint.h>

#include "../../standins/nccl/told.h"

#define GPUS 2
static int gpu[GPUS] = {0, 1};

int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code ? "Not Supported" : "Success"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "550.54.15"); return 0; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12040; return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12040; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = GPUS; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **handle) { *handle = &gpu[index]; return index < GPUS ? 0 : 2; }
int nvmlDeviceGetIndex(const int *handle, unsigned *index) { *index = *handle; return 0; }
int nvmlDeviceGetName(const int *handle, char *text, unsigned size) { snprintf(text, size, "NVIDIA A100-SXM4-80GB"); return 0; }

int nvmlDeviceGetUUID(const int *handle, char *text, unsigned size) {
    snprintf(text, size, "GPU-00000000-0000-0000-0000-00000000000%d", *handle);
    return 0;
}

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };

int nvmlDeviceGetPciInfo_v3(const int *handle, struct pci *pci) {
    *pci = (struct pci){.bus = 0x0f + *handle, .id = 0x20b210de};
    snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
    snprintf(pci->text, sizeof pci->text, "00000000:%02X:00.0", pci->bus);
    return 0;
}

/* Twelve NVLinks join the two. */
int nvmlDeviceGetNvLinkState(const int *handle, unsigned link, unsigned *state) { *state = 1; return link < 12 ? 0 : 2; }
int nvmlDeviceGetNvLinkRemoteDeviceType(const int *handle, unsigned link, unsigned *kind) { *kind = 0; return 0; }

int nvmlDeviceGetNvLinkRemotePciInfo_v2(const int *handle, unsigned link, struct pci *pci) {
    static const int other[GPUS] = {1, 0};
    return nvmlDeviceGetPciInfo_v3(&other[*handle], pci);
}
/* Their health. What is not here, such as row remaps, is what an old driver does not know. */
int nvmlDeviceGetTotalEccErrors(const int *handle, unsigned kind, unsigned counter, uint64_t *count) { *count = 0; return 0; }
static int otherwise(const char *name, int which, int usual) {
    char room[64];
    const char *text = told("STANDIN_NVML", "/etc/standin-nvml", name, room, sizeof room), *at = strchr(text, '@');
    return at && atoi(at + 1) == which ? atoi(text) : usual;
}

struct memory { uint64_t total, free, used; };

int nvmlDeviceGetMemoryInfo(const int *handle, struct memory *memory) {
    uint64_t used = otherwise("used", *handle, 441);
    *memory = (struct memory){81920ull << 20, (81920 - used) << 20, used << 20};
    return 0;
}

struct process { unsigned pid; uint64_t memory; unsigned instances[2]; };

int nvmlDeviceGetComputeRunningProcesses_v3(const int *handle, unsigned *count, struct process *process) {
    unsigned pid = otherwise("pid", *handle, 0), room = *count;
    *count = pid != 0;
    if (room && pid) *process = (struct process){pid, 1ull << 29};
    return room || !pid ? 0 : 7;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(const int *handle, unsigned *count, struct process *process) { *count = 0; return 0; }

int nvmlDeviceGetCurrentClocksThrottleReasons(const int *handle, uint64_t *reasons) {
    *reasons = otherwise("throttled", *handle, 1);
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, int **handle) {
    unsigned which = uuid[strlen(uuid) - 1] - '0';
    *handle = &gpu[which];
    return which < GPUS ? 0 : 2;
}

int nvmlDeviceGetClockInfo(const int *handle, int which, unsigned *clock) { *clock = 1395; return 0; }
int nvmlDeviceGetMaxClockInfo(const int *handle, int which, unsigned *clock) { *clock = 1410; return 0; }
int nvmlDeviceGetPowerUsage(const int *handle, unsigned *power) { *power = 391000; return 0; }

int nvmlDeviceGetEnforcedPowerLimit(const int *handle, unsigned *limit) {
    *limit = otherwise("watts", *handle, 400) * 1000;
    return 0;
}

int nvmlDeviceGetPowerManagementDefaultLimit(const int *handle, unsigned *limit) { *limit = 400000; return 0; }

int nvmlDeviceGetApplicationsClock(const int *handle, int which, unsigned *clock) {
    *clock = which ? 1593 : otherwise("clock", *handle, 1275);
    return 0;
}

int nvmlDeviceGetVbiosVersion(const int *handle, char *text, unsigned size) {
    snprintf(text, size, "92.00.45.00.%02d", otherwise("vbios", *handle, 3));
    return 0;
}

int nvmlDeviceGetInforomImageVersion(const int *handle, char *text, unsigned size) { snprintf(text, size, "G506.0200.00.04"); return 0; }

int nvmlDeviceGetEccMode(const int *handle, unsigned *now, unsigned *later) {
    *now = 1;
    *later = otherwise("ecc", *handle, 1);
    return 0;
}

int nvmlDeviceGetMigMode(const int *handle, unsigned *now, unsigned *later) {
    *now = 0;
    *later = otherwise("mig", *handle, 0);
    return 0;
}

struct sram { unsigned version; uint64_t counts[11]; unsigned exceeded; };

int nvmlDeviceGetSramEccErrorStatus(const int *handle, struct sram *status) {
    status->exceeded = otherwise("sram", *handle, 0);
    return 0;
}

struct use { unsigned gpu, memory; };

int nvmlDeviceGetUtilizationRates(const int *handle, struct use *use) {
    *use = (struct use){otherwise("use", *handle, 0), 0};
    return 0;
}

struct field { unsigned id, scope; int64_t time, took; int kind, code; uint64_t value; };

int nvmlDeviceGetFieldValues(const int *handle, int count, struct field *field) {
    for (; count--; field++) {
        field->kind = 3;
        field->code = field->id == 82 ? 0 : 3;
        field->value = otherwise("memory", *handle, 45);
    }
    return 0;
}

int nvmlDeviceGetCurrPcieLinkGeneration(const int *handle, unsigned *generation) { *generation = 4; return 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(const int *handle, unsigned *generation) { *generation = 4; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(const int *handle, unsigned *width) { *width = 16; return 0; }

int nvmlDeviceGetCurrPcieLinkWidth(const int *handle, unsigned *width) {
    *width = otherwise("width", *handle, 16);
    return 0;
}

int nvmlDeviceGetPcieReplayCounter(const int *handle, unsigned *count) {
    static unsigned replays;
    *count = otherwise("replays", *handle, 0) ? replays++ : 0;
    return 0;
}
int nvmlDeviceGetSerial(const int *handle, char *text, unsigned size) { /* the second GPU has none, as consumer cards */
    snprintf(text, size, "1650324000%d", *handle);
    return *handle ? 3 : 0;
}
int nvmlDeviceGetTemperature(const int *handle, unsigned sensor, unsigned *degrees) { *degrees = 31; return 0; }
int nvmlDeviceGetTemperatureThreshold(const int *handle, unsigned which, unsigned *degrees) {
    *degrees = which == 1 ? 89 : 95;
    return which == 1 || which == 2 ? 0 : 2;
}

int nvmlDeviceGetPersistenceMode(const int *handle, unsigned *mode) { *mode = 1; return 0; }
int nvmlDeviceGetComputeMode(const int *handle, unsigned *mode) { *mode = 0; return 0; }
