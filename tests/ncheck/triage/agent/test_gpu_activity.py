"""The activity of GPUs by the real pynvml, over a stand-in for the driver's library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Absent
from ncheck.triage.facts.gpu_activity import (
    GPU_ACTIVITY,
    GpuActivity,
    GpuActivityFacts,
    GpuLook,
    gpu_activity,
)

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler to make a library with")

# The second of two GPUs is lost where LOST is set. MIG and old models have no use: NOT_SUPPORTED is 3.
NVML = r"""
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
static int lost(void *h) { return getenv("LOST") && (long)h == 2 ? 15 : 0; }
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "Not Supported"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  *handle = (void *)(long)(index + 1); return lost(*handle);
}
struct use { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *h, struct use *u) {
  u->gpu = 97; u->memory = 40; return getenv("NO_USE") ? 3 : 0;
}
struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(void *h, struct memory *m) { m->total = 1000; m->used = 600; m->free = 400; return 0; }
int nvmlDeviceGetClockInfo(void *h, unsigned kind, unsigned *clock) { *clock = 1400 + kind; return 0; }
int nvmlDeviceGetMaxClockInfo(void *h, unsigned kind, unsigned *clock) { *clock = 1980; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *h, unsigned long long *reasons) { *reasons = 0x40; return 0; }
int nvmlDeviceGetCurrentClocksEventReasons(void *h, unsigned long long *reasons) { *reasons = 0x40; return 0; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *power) { *power = 500000; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *power) { *power = 700000; return 0; }
int nvmlDeviceGetTemperature(void *h, unsigned sensor, unsigned *degrees) { *degrees = 88; return 0; }
int nvmlDeviceGetTotalEccErrors(void *h, unsigned kind, unsigned counter, unsigned long long *count) {
  *count = kind == 1 && counter == 0 ? 2 : 99; return 0;
}
int nvmlDeviceGetMinorNumber(void *h, unsigned *minor) { *minor = (long)h - 1; return 0; }
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
int nvmlDeviceGetPciInfo_v3(void *h, struct pci *p) {
  memset(p, 0, sizeof *p); snprintf(p->text, 32, "00000000:%02lX:00.0", 14 + (long)h); return 0;
}
struct process { unsigned pid; unsigned long long used; unsigned instances[2]; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *count, struct process *p) {
  if (!*count) { *count = 1; return 7; }
  *count = 1; p->pid = 4711; p->used = 600; return 0;
}
"""

ASK = """
import json
from ncheck.triage.agent import gpu_activity
from ncheck.agent.answers.gpus import _nvml, started
from ncheck.fleet.bootstrap import module_text
gpu_activity.WATCHED = 0.0
print(json.dumps(gpu_activity.watched(started(_nvml(module_text)))))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    (folder / "nvml.c").write_text(NVML)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", str(library), str(folder / "nvml.c")], check=True)
    return folder


def asked(driver: Path, **more: str) -> GpuActivityFacts:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "PYTHONPATH": os.pathsep.join(sys.path), **more}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True)
    value = json.loads(done.stdout)
    facts = gpu_activity(Evidence("n", Login(reached=True), replies={GPU_ACTIVITY.key: Reply(Status.OK, value=value)}))
    assert isinstance(facts, GpuActivityFacts)
    return facts


LOOK = GpuLook(97, 40, 600, 1401, 1980, 0x40, 500000, 700000, 88, 2)
PROCESSES = {4711: 600} if str(Path("/proc/self/ns/pid").readlink()) == "pid:[4026531836]" else None


@needs_compiler
def test_both_looks_at_each_gpu_are_told(driver: Path) -> None:
    assert asked(driver) == GpuActivityFacts(
        (
            GpuActivity(0, (LOOK, LOOK), "0000:0f:00.0", 0, 1000, PROCESSES, {}),
            GpuActivity(1, (LOOK, LOOK), "0000:10:00.0", 1, 1000, PROCESSES, {}),
        ),
        0.0,
    )


@needs_compiler
def test_a_gpu_that_is_lost_is_told_with_nvml_s_words(driver: Path) -> None:
    _, lost = asked(driver, LOST="yes").gpus
    assert lost == GpuActivity(1, (GpuLook(), GpuLook()), errors={"nvmlDeviceGetHandleByIndex": "GPU is lost"})


@needs_compiler
def test_what_a_gpu_does_not_have_is_no_error(driver: Path) -> None:
    gpu, _ = asked(driver, NO_USE="yes").gpus
    assert (gpu.looks[0].use, gpu.looks[0].clock, gpu.errors) == (None, 1401, {})


def test_a_node_without_a_gpu_has_none() -> None:
    missing = Reply(Status.MISSING, reason="no NVIDIA device on PCI")
    assert isinstance(gpu_activity(Evidence("n", Login(reached=True), replies={GPU_ACTIVITY.key: missing})), Absent)
