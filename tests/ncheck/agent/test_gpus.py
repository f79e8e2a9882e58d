"""GPUs by what travels of the real pynvml, over a stand-in for the driver's library whose functions fail to order."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from pwd import getpwuid

import pytest
from ncheck.agent.answers import MissingError
from ncheck.agent.answers.gpus import answer, is_ours, on_pci, owners
from ncheck.agent.sources import Sources
from ncheck.model.evidence import JsonValue

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler to make a library with")

NVML = r"""
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int fails(const char *name) { const char *n = getenv("FAILS"); return n && !strcmp(n, name) ? 15 : 0; }
int nvmlInitWithFlags(unsigned flags) { return fails("nvmlInitWithFlags"); }
int nvmlInit_v2(void) { return fails("nvmlInitWithFlags"); }
int nvmlShutdown(void) { fprintf(stderr, "shut down\n"); return 0; }
const char *nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "Unknown Error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "550.54.15"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *number) { *number = 12040; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  *handle = (void *)(long)(index + 1); return index == 0 && fails("forbidden") ? 4 : 0;
}
int nvmlDeviceGetName(void *h, char *text, unsigned size) { snprintf(text, size, "NVIDIA H100 80GB HBM3"); return 0; }
int nvmlDeviceGetUUID(void *h, char *text, unsigned size) { snprintf(text, size, "GPU-%ld", (long)h); return 0; }
struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(void *h, struct memory *m) {
  m->total = 85899345920ULL; m->used = 1024; m->free = m->total - m->used; return fails("nvmlDeviceGetMemoryInfo");
}
struct process { unsigned pid; unsigned long long used; unsigned instances[2]; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *count, struct process *p) {
  if (!*count) { *count = 1; return 7; }
  *count = 1; p->pid = fails("own") ? getpid() : atoi(getenv("COMPUTES")); p->used = 1024; return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *h, unsigned *count, struct process *p) {
  if (!*count) { *count = 1; return (long)h == 1 ? 0 : 7; }
  *count = 1; p->pid = 1234; p->used = 1024; return 0;
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
int nvmlDeviceGetPciInfo_v3(void *h, struct pci *p) {
  memset(p, 0, sizeof *p); snprintf(p->text, 32, "00000000:%02lX:00.0", 14 + (long)h); return 0;
}
"""

ASK = """
import glob
import json
from ncheck.agent.answers.gpus import _nvml, started, driver_and_gpus
from ncheck.fleet.bootstrap import module_text
try:
    print(json.dumps(driver_and_gpus(started(_nvml(module_text)), ["0000:0f:00.0", "0000:10:00.0"])))
except OSError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    (folder / "nvml.c").write_text(NVML)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", str(library), str(folder / "nvml.c")], check=True)
    return folder


def asked(driver: Path, fails: str = "") -> JsonValue:
    path = os.pathsep.join(sys.path)
    environment = {
        **os.environ, "LD_LIBRARY_PATH": str(driver), "FAILS": fails, "PYTHONPATH": path, "COMPUTES": str(os.getpid()),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True)
    said: JsonValue = json.loads(done.stdout)
    return said


OPEN = """
from ncheck.agent.answers import gpus
from ncheck.agent.sources import Sources
gpus.on_pci = lambda: ["0000:0f:00.0", "0000:10:00.0"]
print(gpus.answer(Sources(), None, 1.0)["devices"])
"""


@needs_compiler
def test_nvml_stays_open_so_that_the_driver_starts_once_for_all_programs(driver: Path) -> None:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", OPEN],
        env={**environment, "COMPUTES": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("2\n", "")


# Inside a container the numbers of NVML mean others.
HOST = str(Path("/proc/self/ns/pid").readlink()) == "pid:[4026531836]"
PROCESSES: JsonValue = [[os.getpid(), 1024]] if HOST else None
OURS: JsonValue = {
    "pid": os.getpid(), "name": Path("/proc/self/comm").read_text().strip(), "user": getpwuid(os.getuid()).pw_name,
    "ended": False,
}  # fmt: skip


def gpu(index: int, memory: int | None = 85899345920) -> JsonValue:
    return {
        "index": index, "name": "NVIDIA H100 80GB HBM3", "uuid": f"GPU-{index + 1}",
        "pci": f"0000:{15 + index:02x}:00.0", "memory_total": memory, "memory_used": None if memory is None else 1024,
        "processes": PROCESSES, "graphics": [1234] if index and HOST else [],
    }  # fmt: skip


@needs_compiler
def test_gpus_are_told_as_nvml_knows_them(driver: Path) -> None:
    assert asked(driver) == {
        "driver": "550.54.15", "cuda": "12.4", "gpus": [gpu(0), gpu(1)], "errors": {}, "devices": 2,
        "owners": [OURS] if HOST else [],
    }  # fmt: skip


@needs_compiler
def test_a_process_of_the_agent_itself_is_left_out(driver: Path) -> None:
    said = asked(driver, "own")  # as the one that opens a context on each GPU
    assert isinstance(said, dict)
    assert said["gpus"] == [
        {**one, "processes": [] if HOST else None} for one in (gpu(0), gpu(1)) if isinstance(one, dict)
    ]
    assert said["owners"] == []
    with subprocess.Popen(["sleep", "60"]) as child:
        assert (is_ours(child.pid), is_ours(os.getppid())) == (True, False)
        child.kill()


def test_of_a_process_that_this_user_is_not_shown_the_number_is_all_and_one_that_ended_is_told_as_such(
    tmp_path: Path,
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    hidden, gone = ({"name": "", "user": "", "ended": over} for over in (False, True))
    assert owners([os.getppid(), ended.pid], root=str(tmp_path)) == [  # as /proc is with hidepid
        {"pid": os.getppid(), **hidden},
        {"pid": ended.pid, **gone},
    ]


def test_only_the_first_processes_are_looked_up_and_a_user_without_a_name_is_a_number(tmp_path: Path) -> None:
    for pid in range(1, 20):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "comm").write_text("python3\n")
        if os.getuid() == 0:
            os.chown(tmp_path / str(pid), 54321, -1)
    user = "54321" if os.getuid() == 0 else getpwuid(os.getuid()).pw_name
    assert owners([*range(1, 20), 1], root=str(tmp_path)) == [
        {"pid": pid, "name": "python3", "user": user, "ended": False} for pid in range(1, 9)
    ]


@needs_compiler
def test_a_function_that_fails_is_named_and_the_rest_is_told(driver: Path) -> None:
    said = asked(driver, "nvmlDeviceGetMemoryInfo")
    assert isinstance(said, dict)
    assert said["errors"] == {"nvmlDeviceGetMemoryInfo": "GPU is lost"}
    assert said["gpus"] == [gpu(0, None), gpu(1, None)]


@needs_compiler
def test_a_gpu_that_this_user_has_no_right_to_is_left_out(driver: Path) -> None:
    said = asked(driver, "forbidden")  # in a job of Slurm, which has the other one
    assert isinstance(said, dict)
    assert (said["gpus"], said["errors"]) == ([gpu(1)], {})


@needs_compiler
def test_a_driver_that_does_not_answer_at_all_is_named(driver: Path) -> None:
    assert asked(driver, "nvmlInitWithFlags") == "nvmlInit: GPU is lost"


@pytest.mark.skipif(bool(on_pci()), reason="this machine has an NVIDIA GPU")
def test_a_node_without_any_nvidia_device_is_not_sent_pynvml() -> None:
    sources = Sources({})
    sources.fetch = lambda _: pytest.fail("pynvml was fetched")
    with pytest.raises(MissingError):
        answer(sources, None, 5.0)


@pytest.mark.parametrize(
    "name", ["gpus", "gpu-health", "nvlinks", "pci", "hcas", "roce", "interfaces", "error-counters"]
)
def test_without_sysfs_hardware_is_not_seen_and_not_absent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, found in ((os.path, "isdir"), (os.path, "exists"), (glob, "glob")):
        before = getattr(module, found)
        hidden: object = [] if found == "glob" else False
        monkeypatch.setattr(
            module,
            found,
            lambda path, b=before, h=hidden: h if path.startswith(("/sys", "/dev/", "/proc/dr")) else b(path),
        )
    words = "/sys is not mounted: hardware cannot be seen"
    for source in ({"kind": "answer", "name": name}, {"kind": "tree", "patterns": ["/sys/class/infiniband/*"]}):
        reply = Sources({}).read(source)
        assert (reply["status"], reply["reason"]) == ("failed", words)
