"""The health of GPUs by the real pynvml in its child, over a stand-in for the driver's library that breaks to order."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.agent.answers import MissingError, gpu_health
from ncheck.agent.answers.gpus import nvml_text, on_pci
from ncheck.agent.sources import Sources
from ncheck.decode import decoded
from ncheck.facts.definition import trouble
from ncheck.facts.gpu_health import (
    HEALTH,
    Fabric,
    Failure,
    GpuHealth,
    GpuHealthFacts,
    HealthAnswer,
    LinkCounters,
    NvidiaDriverFacts,
    RemappedRows,
    nvidia_driver,
)
from ncheck.facts.gpu_health import gpu_health as read_health
from ncheck.facts.gpus import SMI
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Absent, Unread

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler to make a library with")

# Two H100. FAULT names what breaks, of the second GPU where it is about one. 3 is "not supported", 15 "GPU is lost".
NVML = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef long gpu;
static int fault(const char *name) { const char *f = getenv("FAULT"); return f && strstr(f, name) != 0; }
static int second(gpu g, const char *name) { return g == 2 && fault(name); }
static int optional(void) { return fault("consumer") ? 3 : 0; }
int nvmlInitWithFlags(unsigned flags) {
  if (fault("init-hangs")) for (;;) pause();
  return fault("mismatch") ? 18 : fault("unloaded") ? 9 : 0;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
const char *nvmlErrorString(int code) {
  return code == 15 ? "GPU is lost" : code == 18 ? "Driver/library version mismatch" : code == 3 ? "Not Supported"
       : code == 4 ? "Insufficient Permissions" : code == 9 ? "Driver Not Loaded" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char *t, unsigned n) { snprintf(t, n, "550.54.15"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = fault("no-gpu") ? 0 : 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, gpu *g) {
  *g = i + 1; return second(*g, "lost") ? 15 : second(*g, "others") ? 4 : 0;
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
int nvmlDeviceGetPciInfo_v3(gpu g, struct pci *p) {
  memset(p, 0, sizeof *p); snprintf(p->text, 32, "00000000:%02lX:00.0", 14 + g); return 0;
}
int nvmlDeviceGetName(gpu g, char *t, unsigned n) { snprintf(t, n, "NVIDIA H100 80GB HBM3"); return 0; }
int nvmlDeviceGetEccMode(gpu g, unsigned *a, unsigned *b) {
  *a = !second(g, "no-ecc"); *b = *a && !second(g, "ecc-pending"); return optional();
}
int nvmlDeviceGetTotalEccErrors(gpu g, unsigned kind, unsigned counter, uint64_t *n) {
  if (second(g, "hangs")) for (;;) pause();
  if (second(g, "crashes")) abort();
  *n = second(g, "ecc-errors") && kind == 1 ? 2 + counter : 0; return optional();
}
int nvmlDeviceGetRemappedRows(gpu g, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed) {
  *c = 0; *u = *pending = second(g, "remap-pending"); *failed = second(g, "remap-failed");
  return second(g, "falls-off") ? 15 : optional();
}
int nvmlDeviceGetTemperature(gpu g, unsigned sensor, unsigned *t) { *t = second(g, "hot") ? 91 : 31; return 0; }
int nvmlDeviceGetTemperatureThreshold(gpu g, unsigned which, unsigned *t) {
  *t = which == 1 ? 89 : 95; return which == 1 ? 0 : which == 2 ? optional() : 2;
}
int nvmlDeviceGetEnforcedPowerLimit(gpu g, unsigned *mw) {
  *mw = second(g, "capped") ? 500000 : 700000; return optional();
}
int nvmlDeviceGetPowerManagementDefaultLimit(gpu g, unsigned *mw) { *mw = 700000; return optional(); }
int nvmlDeviceGetApplicationsClock(gpu g, unsigned which, unsigned *mhz) {
  *mhz = which ? 2619 : second(g, "slow-clock") ? 1200 : 1980; return fault("deprecated") ? 26 : optional();
}
int nvmlDeviceGetMaxClockInfo(gpu g, unsigned which, unsigned *mhz) { *mhz = which ? 2619 : 1980; return optional(); }
int nvmlDeviceGetVbiosVersion(gpu g, char *t, unsigned n) {
  snprintf(t, n, second(g, "old-firmware") ? "96.00.5E.00.01" : "96.00.74.00.01"); return optional();
}
int nvmlDeviceGetSerial(gpu g, char *t, unsigned n) { snprintf(t, n, "1650324000001"); return optional(); }
int nvmlDeviceGetInforomImageVersion(gpu g, char *t, unsigned n) {
  snprintf(t, n, second(g, "old-firmware") ? "G520.0200.00.03" : "G520.0200.00.05"); return optional();
}
struct sram { unsigned version; uint64_t counts[11]; unsigned exceeded; };
int nvmlDeviceGetSramEccErrorStatus(gpu g, struct sram *s) {
  if (s->version != (sizeof *s | 1 << 24)) return 25;
  s->exceeded = second(g, "sram"); return fault("ordinary-user") ? 4 : optional();
}
int nvmlDeviceGetPcieReplayCounter(gpu g, unsigned *n) { *n = second(g, "replays") ? 1200 : 0; return optional(); }
struct use { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(gpu g, struct use *u) {
  static int looks;
  u->gpu = second(g, "busy") ? 98 - looks++ : second(g, "bump") && !looks++ ? 40 : 0; return optional();
}
int nvmlDeviceGetMarginTemperature(gpu g, int *info) { info[1] = second(g, "hot") ? -2 : 56; return optional(); }
int nvmlDeviceGetPersistenceMode(gpu g, unsigned *m) { *m = !second(g, "no-persistence"); return 0; }
int nvmlDeviceGetComputeMode(gpu g, unsigned *m) { *m = second(g, "prohibited") ? 2 : 0; return 0; }
int nvmlDeviceGetMigMode(gpu g, unsigned *now, unsigned *then) {
  *now = second(g, "mig"); *then = *now || second(g, "divided-later"); return optional();
}
int nvmlDeviceGetNvLinkState(gpu g, unsigned link, unsigned *state) {
  if (!link && second(g, "no-first-link")) return 2;
  *state = !(second(g, "link-down") && link == 7); return link < 18 ? optional() : 2;
}
int nvmlDeviceGetCurrentClocksEventReasons(gpu g, uint64_t *r) {
  static int times;
  *r = second(g, "slowdown") ? 0x48 : second(g, "moment") && times++ ? 0x08 : 1; return fault("old-names") ? 13 : 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(gpu g, uint64_t *r) { *r = 4; return fault("old-names") ? 0 : 13; }
union value { double d; unsigned u; uint64_t l; };
struct field { unsigned id, scope; int64_t time, took; int kind, code; union value value; };
int nvmlDeviceGetFieldValues(gpu g, int n, struct field *f) {
  for (; n--; f++) {
    f->kind = 3; f->code = optional(); f->value.l = 0;
    if (f->id == 230) f->kind = 1, f->value.u = second(g, "reset-asked");
    if (f->id == 82) f->kind = 1, f->value.u = second(g, "hot") ? 96 : 44;
    if (f->id == 59) f->value.l = second(g, "link-errors") ? 3 : 0;
    if (f->id == 52) f->value.l = second(g, "link-errors") ? 50000 : 7;
    if (f->id < 60 && fault("blackwell")) f->code = 3;
    if (f->id > 160 && f->id < 222) { /* of one link: the first three up to Hopper, the others since Blackwell */
      if (f->id < 164 == fault("blackwell")) f->code = 3;
      if (f->id == 162) f->value.l = second(g, "link-errors") && f->scope == 3 ? 3 : 0;
      if (f->id == 214) f->value.l = second(g, "link-errors") && f->scope == 14 ? 2 : 0;
      if (f->id == 215) f->value.l = second(g, "link-errors") && f->scope == 14 ? 505 : 0;
      if (second(g, "root-only")) f->code = 4;
      if (second(g, "no-counter") && f->scope == 7) f->code = 999;
    }
  }
  return 0;
}
struct fabric { unsigned version; uint8_t uuid[16]; int status; uint32_t clique; uint8_t state; uint32_t health; };
int nvmlDeviceGetGpuFabricInfoV(gpu g, struct fabric *f) {
  f->state = fault("fabric-late") ? 2 : 3; f->status = 0; f->clique = 5; f->health = 0xAA;
  memset(f->uuid, fault("rack") ? 0xab : 0, 16); return optional();
}
"""

ASK = """
import json, sys
from ncheck.agent.answers.gpu_health import asked
from ncheck.fleet.bootstrap import module_text
print(json.dumps(asked(module_text("pynvml"), float(sys.argv[1]))))
"""

FAR = 60.0  # seconds: more than a child needs on a busy machine


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    (folder / "nvml.c").write_text(NVML)
    library = folder / "libnvidia-ml.so.550.54.15"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", str(library), str(folder / "nvml.c")], check=True)
    (folder / "libnvidia-ml.so.1").symlink_to(library)
    return folder


def answered(driver: Path, fault: str, seconds: float = FAR) -> Evidence:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(driver),
        "FAULT": fault,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(seconds)], env=environment, capture_output=True, text=True, check=True
    )
    module = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024"
    value: JsonValue = {
        **json.loads(done.stdout),
        "module": module, "unlisted": [], "channels": 0, "usable_channels": 0, "compatibility": [],
    }  # fmt: skip
    assert decoded(value, HealthAnswer)
    return Evidence("n", Login(reached=True), replies={HEALTH.key: Reply(Status.OK, value=value)})


def asked(driver: Path, fault: str = "") -> GpuHealthFacts:
    facts = read_health(answered(driver, fault))
    assert isinstance(facts, GpuHealthFacts), facts
    return facts


def second(driver: Path, fault: str) -> GpuHealth:
    _, gpu = asked(driver, fault).gpus
    return gpu


HEALTHY = GpuHealth(
    index=1, pci="0000:10:00.0", name="NVIDIA H100 80GB HBM3", ecc_mode=1, ecc=0, ecc_ever=0,
    remapped=RemappedRows(0, 0, pending=False, failed=False), retired=None, retiring=None, throttled=1, temperature=31,
    slowdown=89, margin=56, persistence=1, compute_mode=0, mig=False, links=(1,) * 18, ecc_pending=1, mig_pending=False,
    power_limit=700000, power_default=700000, application_clocks=(1980, 2619), max_clocks=(1980, 2619),
    serial="1650324000001", vbios="96.00.74.00.01", inforom="G520.0200.00.05", memory_temperature=44, memory_limit=95,
    sram_exceeded=False,
    link_errors={"flit_crc": 0, "data_crc": 0, "replay": 7, "recovered": 0}, counted=LinkCounters(read=18), action=0,
    fabric=Fabric(3, 0, "", 5, 0xAA), pcie_replays=0,
)  # fmt: skip


@needs_compiler
def test_a_healthy_gpu_is_told_whole(driver: Path) -> None:
    facts = asked(driver)
    assert (facts.hung, facts.unlisted, facts.busy) == (None, {}, {})
    assert facts.gpus[1] == HEALTHY
    assert [gpu.pci for gpu in facts.gpus] == ["0000:0f:00.0", "0000:10:00.0"]


@pytest.mark.slow
@needs_compiler
def test_each_fault_is_in_its_own_field(driver: Path) -> None:
    assert second(driver, "no-ecc").ecc_mode == 0
    worn = second(driver, "ecc-errors remap-pending")
    assert (worn.ecc, worn.ecc_ever, worn.remapped) == (2, 3, RemappedRows(0, 1, pending=True, failed=False))
    assert second(driver, "remap-failed").remapped == RemappedRows(0, 0, pending=False, failed=True)
    hot = second(driver, "hot slowdown")
    assert (hot.temperature, hot.margin, hot.throttled) == (91, -2, 0x48)
    modes = second(driver, "no-persistence prohibited mig")
    assert (modes.persistence, modes.compute_mode, modes.mig) == (0, 2, True)
    assert second(driver, "no-first-link").links == (0, *(1,) * 17)
    linked = second(driver, "link-down link-errors")
    assert linked.links == (*(1,) * 7, 0, *(1,) * 10)
    assert linked.link_errors == {"flit_crc": 0, "data_crc": 0, "replay": 50000, "recovered": 3}
    assert linked.counted == LinkCounters(17, 0, {3: {"recovered": 3}})
    assert (hot.memory_temperature, hot.memory_limit) == (96, 95)
    assert second(driver, "reset-asked").action == 1
    pending = second(driver, "ecc-pending divided-later")
    assert (pending.ecc_mode, pending.ecc_pending, pending.mig, pending.mig_pending) == (1, 0, False, True)
    slow = second(driver, "capped slow-clock old-firmware")
    assert (slow.power_limit, slow.application_clocks) == (500000, (1200, 2619))
    assert (slow.vbios, slow.inforom) == ("96.00.5E.00.01", "G520.0200.00.03")
    worn = second(driver, "sram replays")
    assert (worn.sram_exceeded, worn.pcie_replays) == (True, 1200)
    assert second(driver, "fabric-late rack").fabric == Fabric(2, 0, "ab" * 16, 5, 0xAA)


@pytest.mark.slow
@needs_compiler
def test_blackwell_counts_the_errors_of_each_nvlink(driver: Path) -> None:
    assert second(driver, "blackwell") == replace(HEALTHY, link_errors={})
    assert second(driver, "blackwell link-errors").counted == LinkCounters(18, 0, {14: {"lost": 2, "recoveries": 505}})
    assert second(driver, "blackwell root-only").counted == LinkCounters(0, 18)
    gpu = second(driver, "blackwell no-counter")
    assert (gpu.counted, gpu.errors) == (LinkCounters(17), {"counted": Failure(999, "Unknown Error")})


@needs_compiler
def test_a_slowdown_of_a_moment_is_none(driver: Path) -> None:
    assert second(driver, "moment").throttled == 0


@needs_compiler
def test_a_gpu_is_busy_that_is_so_in_two_looks(driver: Path) -> None:
    assert asked(driver, "busy").busy == {1: 97}
    assert asked(driver, "bump").busy == {}


@needs_compiler
def test_what_only_root_may_read_and_what_a_newer_driver_has_no_more_is_no_error(driver: Path) -> None:
    gpu = second(driver, "ordinary-user deprecated")
    assert gpu == replace(HEALTHY, sram_exceeded=None, application_clocks=None)


@needs_compiler
def test_an_old_driver_has_the_reasons_under_their_old_name(driver: Path) -> None:
    assert second(driver, "old-names").throttled == 4


@needs_compiler
def test_what_a_consumer_card_does_not_have_is_no_error(driver: Path) -> None:
    gpu = second(driver, "consumer")
    assert gpu == GpuHealth(
        index=1, pci="0000:10:00.0", name="NVIDIA H100 80GB HBM3", throttled=1, temperature=31, slowdown=89,
        persistence=1, compute_mode=0,
    )  # fmt: skip


@needs_compiler
def test_a_gpu_that_is_lost_is_named_and_the_others_are_told(driver: Path) -> None:
    first, lost = asked(driver, "lost").gpus
    assert first.temperature == 31
    assert lost == GpuHealth(1, errors={"handle": Failure(15, "GPU is lost")})


@needs_compiler
def test_a_gpu_that_is_lost_in_between_keeps_what_was_read(driver: Path) -> None:
    gpu = second(driver, "falls-off")
    assert (gpu.temperature, gpu.remapped, gpu.errors) == (31, None, {"remapped": Failure(15, "GPU is lost")})


@needs_compiler
def test_a_gpu_of_another_job_is_not_this_user_s(driver: Path) -> None:
    assert [gpu.index for gpu in asked(driver, "others").gpus] == [0]


@pytest.mark.slow
@needs_compiler
def test_a_gpu_that_hangs_is_named_and_what_the_others_said_is_kept(driver: Path) -> None:
    began = time.monotonic()
    evidence = answered(driver, "hangs", seconds=5.0)
    assert time.monotonic() - began < FAR
    facts = read_health(silent_for(evidence, 13.0))
    assert isinstance(facts, GpuHealthFacts)
    assert ([gpu.index for gpu in facts.gpus], facts.hung) == ([0], 1)
    slow = read_health(silent_for(evidence, 1.0))  # without persistence mode each GPU must be woken first
    assert slow == Unread("NVML is slow: only 1 GPU(s) could be read in time", fix="timeout 60 nvidia-smi -q")


def silent_for(evidence: Evidence, seconds: float) -> Evidence:
    value = evidence.reply(HEALTH).value
    assert isinstance(value, dict)
    reply = Reply(Status.OK, value={**value, "silent": seconds})
    return replace(evidence, replies={HEALTH.key: reply})


@needs_compiler
def test_a_library_that_ends_its_process_ends_nothing_else(driver: Path) -> None:
    facts = read_health(answered(driver, "crashes"))
    assert facts == Unread("NVML ended the process that asked it", fix="nvidia-smi -q")


@needs_compiler
def test_a_start_that_hangs_is_unread(driver: Path) -> None:
    facts = read_health(answered(driver, "init-hangs", seconds=1.0))
    assert isinstance(facts, Unread)
    assert facts.hung == "nvmlInit"


@needs_compiler
def test_a_mismatch_is_told_with_nvml_s_number_and_both_versions(driver: Path) -> None:
    evidence = answered(driver, "mismatch")
    mismatch = Failure(18, "RM has detected an NVML/RM version mismatch.")
    assert nvidia_driver(evidence) == NvidiaDriverFacts("550.54.15", "550.54.15", mismatch)
    assert read_health(evidence) == Unread(
        "NVML does not start: RM has detected an NVML/RM version mismatch.", fix="nvidia-smi"
    )  # fmt: skip


def test_a_mismatch_that_only_nvidia_smi_tells_counts_too() -> None:
    printed = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.127\n"
    replies = {
        HEALTH.key: Reply(Status.MISSING, reason="no NVML library"),
        SMI.key: Reply(Status.OK, exit_status=18, stdout=printed),
    }
    mismatch = Failure(18, "Failed to initialize NVML: Driver/library version mismatch")
    assert nvidia_driver(Evidence("n", Login(reached=True), replies=replies)) == NvidiaDriverFacts("", "", mismatch)
    why = trouble(SMI, replies[SMI.key])
    assert why
    assert why.reason.endswith(f"exit status 18: {mismatch.words}; NVML library version: 550.127")


@needs_compiler
def test_a_driver_without_a_gpu_has_none(driver: Path) -> None:
    assert isinstance(read_health(answered(driver, "no-gpu")), Absent)


def test_the_open_module_says_its_version_elsewhere_in_the_line() -> None:
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder@U16)"
    value: JsonValue = {
        "library": "/usr/lib64/libnvidia-ml.so.560.35.03", "module": line, "gpus": [],
        "failed": None, "at": None, "done": True, "ended": True, "silent": 0.0, "words": "",
        "unlisted": [], "channels": 3,
        "usable_channels": 1,
        "compatibility": ["/usr/local/cuda-12.8/compat/libcuda.so.1"],
    }  # fmt: skip
    evidence = Evidence("n", Login(reached=True), replies={HEALTH.key: Reply(Status.OK, value=value)})
    assert nvidia_driver(evidence) == NvidiaDriverFacts(
        "560.35.03", "560.35.03", None, 3, 1, ("/usr/local/cuda-12.8/compat/libcuda.so.1",)
    )


def test_a_gpu_that_nvml_does_not_list_is_told_only_if_it_is_ours_and_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_health, "GPUS", str(tmp_path))
    monkeypatch.setattr(gpu_health, "DEVICE", str(tmp_path / "nvidia{}"))
    for minor in range(5):
        folder = tmp_path / f"0000:0{minor}:00.0"
        folder.mkdir()
        excluded = "Yes" if minor == 4 else "No"  # by NVreg_ExcludedGpus
        text = f"Model: \t\t NVIDIA H100\nDevice Minor: \t {minor}\nGPU Excluded:\t {excluded}\n"
        (folder / "information").write_text(text)
    (tmp_path / "nvidia0").touch()
    with socket.socket(socket.AF_UNIX) as broken:  # as a device whose card is gone: ENXIO
        broken.bind(str(tmp_path / "nvidia1"))
        (tmp_path / "nvidia3").symlink_to(tmp_path / "nvidia1")
        (tmp_path / "nvidia4").symlink_to(tmp_path / "nvidia1")
        assert gpu_health.unlisted({"0000:03:00.0"}, 30.0) == [["0000:01:00.0", "No such device or address"]]


def test_a_gpu_that_does_not_open_in_time_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_health, "GPUS", str(tmp_path))
    monkeypatch.setattr(gpu_health, "DEVICE", str(tmp_path / "nvidia{}"))
    monkeypatch.setattr(gpu_health, "_OPEN", "import signal; signal.pause()")
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "information").write_text("Device Minor: \t 0\n")
    assert gpu_health.unlisted(set(), 0.3) == [["0000:01:00.0", "no answer in time"]]


@pytest.mark.skipif(bool(on_pci()), reason="this machine has an NVIDIA GPU")
def test_a_node_without_any_nvidia_device_starts_no_child() -> None:
    with pytest.raises(MissingError):
        gpu_health.answer(Sources({}), None, 5.0)


def test_pynvml_is_sent_once_for_all_answers() -> None:
    sources = Sources({})
    sent = iter(["text"])  # a second question finds nothing left
    sources.fetch = lambda _: next(sent)
    assert [nvml_text(sources), nvml_text(sources)] == ["text", "text"]


@pytest.mark.parametrize("pci", ["--PWNED", "0000:0f:00.0; reboot", "GPU-1", ""])
def test_what_is_no_address_is_no_gpu(pci: str) -> None:
    value: JsonValue = {
        "library": "", "module": "", "failed": None, "at": None, "done": True,
        "ended": True, "silent": 0.0, "words": "",
        "unlisted": [], "channels": 0, "usable_channels": 0, "compatibility": [],
        "gpus": [{"index": 0, "pci": pci, "errors": {}}],
    }  # fmt: skip
    evidence = Evidence("n", Login(reached=True), replies={HEALTH.key: Reply(Status.OK, value=value)})
    facts = facts_of(evidence, [GpuHealthFacts])[GpuHealthFacts]
    if pci:
        assert isinstance(facts, Unread)
    else:
        assert facts == GpuHealthFacts((GpuHealth(0),))
