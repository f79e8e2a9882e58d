"""CUDA, asked by the real child over a stand-in for the driver's library that fails, hangs and dies to order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from ncheck.agent.answers import MissingError, cuda_init
from ncheck.agent.answers.gpus import on_pci
from ncheck.agent.sources import Sources
from ncheck.facts.cuda_init import CUDA_INIT, CudaDevice, CudaFailure, CudaInitFacts, CudaStop
from ncheck.facts.gpus import DEVICES
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, Reply, Source, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Source, Reply]], Evidence]
Asked = Callable[..., object]
FAR = 60.0  # seconds: more than a child needs on a busy machine
NVML = """
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **handle) { *handle = (void *)pci; return 0; }
int nvmlDeviceGetMemoryInfo(const char *pci, unsigned long long *sizes) {
  sizes[0] = 80ULL << 30; sizes[1] = (pci[6] == '1' ? 1ULL : 1024ULL) << 20; return 0;
}
"""


@pytest.fixture
def asked(standins: Callable[..., Path], answered: Answered) -> Asked:
    """Return a function that asks CUDA in a job's environment, and reads the answer as the head does."""

    def read(
        cuda: str = "devices=2", *, folder: Path | None = None, timeout: float = FAR, kept: bool = False
    ) -> object:
        mark = os.urandom(8).hex()
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "CUDA_"))}
        own = {"LD_LIBRARY_PATH": str(folder or standins()), "STANDIN_CUDA": cuda, "STANDIN_MARK": mark}
        sources = Sources({**plain, **own})
        sources.start({"environment": {"python": sys.executable}})
        if kept:
            sources.job.printed("ncheck:", FAR)
        try:
            value = cuda_init.asked(sources.job, timeout)
        finally:
            sources.end()
        assert _left(mark) == []
        evidence = answered({CUDA_INIT: Reply(Status.OK, value=value)})
        return facts_of(evidence, [CudaInitFacts])[CudaInitFacts]

    return read


def _left(mark: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text()[:200])
        except OSError:  # noqa: PERF203  it has ended meanwhile, or is another user's
            continue
    return found


def device(index: int, **more: object) -> CudaDevice:
    return CudaDevice(index, f"0000:{16 + index:x}:00.0", **more)  # type: ignore[arg-type]


@pytest.mark.slow
def test_healthy_gpus_are_tried_one_by_one_and_nothing_is_left(asked: Asked, standins: Callable[..., Path]) -> None:
    well = CudaInitFacts(str(standins() / "libcuda.so.1"), "12.8", (device(0), device(1)))
    assert (asked(), asked(kept=True)) == (well, well)


@pytest.mark.slow
def test_each_error_of_its_start_comes_with_its_number_and_words(asked: Asked) -> None:
    known = {802: "system not yet initialized", 803: "system has unsupported display driver / cuda driver combination"}
    for code in (3, 34, 46, 100, 101, 304, 802, 803, 804, 805, 806, 807, 808, 999):
        facts = asked(f"init={code}")
        assert isinstance(facts, CudaInitFacts)
        assert (facts.failed, facts.devices) == (CudaFailure("cuInit", code, known.get(code, facts.failed.words)), ())  # type: ignore[union-attr]
        assert bool(facts.uvm) is not os.access("/dev/nvidia-uvm", os.W_OK)


@pytest.mark.slow
def test_a_gpu_that_fails_or_lets_one_program_in_hides_no_other(asked: Asked, standins: Callable[..., Path]) -> None:
    failed = CudaFailure("cuDevicePrimaryCtxRetain", 719, "unknown error")
    devices = (device(0), device(1, failed=failed), device(2, untried="exclusive"), device(3))
    library = str(standins() / "libcuda.so.1")
    assert asked("devices=4,context=719@1,mode=3@2") == CudaInitFacts(library, "12.8", devices)


@pytest.mark.slow
def test_no_context_is_opened_on_a_gpu_without_room(
    asked: Asked, standins: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "nvml.c").write_text(NVML)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-w", "-o", tmp_path / "libnvidia-ml.so.1", tmp_path / "nvml.c"], check=True
    )
    (tmp_path / "libcuda.so.1").symlink_to(standins() / "libcuda.so.1")
    facts = asked("devices=2,context=999@1", folder=tmp_path)
    assert isinstance(facts, CudaInitFacts)
    assert facts.devices == (device(0), device(1, untried="full"))


@pytest.mark.slow
def test_what_hangs_or_dies_is_named_with_its_step_and_gpu(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncheck.facts.cuda_init._PATIENCE", 1.0)

    def stopped(cuda: str, **how: bool) -> tuple[CudaStop | None, int]:
        facts = asked(cuda, timeout=3.0 if "hang" in cuda else FAR, **how)
        assert isinstance(facts, CudaInitFacts)
        return facts.stopped, len(facts.devices)

    for kept in (False, True):
        assert stopped("init=crash", kept=kept) == (CudaStop("cuInit", signal=11), 0)
        assert stopped("context=crash@2", kept=kept) == (
            CudaStop("cuDevicePrimaryCtxRetain", 2, "0000:12:00.0", signal=11), 2,
        )  # fmt: skip
        hung, count = stopped("context=hang@1", kept=kept)
        assert hung is not None
        assert (hung.function, hung.index, hung.pci, hung.signal, count) == (
            "cuDevicePrimaryCtxRetain", 1, "0000:11:00.0", 0, 1,
        )  # fmt: skip
    hung, _ = stopped("init=hang")
    assert (hung and hung.function, hung and hung.seconds > 1) == ("cuInit", True)


def test_what_had_no_time_is_slow_and_not_hung(asked: Asked) -> None:
    facts = asked("context=hang@1", timeout=2.0)
    assert isinstance(facts, Unread)
    assert facts.reason == "CUDA is slow: only 1 GPU(s) could be tried in time, then cuDevicePrimaryCtxRetain"


@pytest.mark.slow
def test_the_start_of_a_slow_interpreter_is_no_silence_of_cuda(standins: Callable[..., Path], tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nsleep 1.5\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    sources = Sources({"LD_LIBRARY_PATH": str(standins()), "STANDIN_CUDA": "init=hang", "PATH": os.environ["PATH"]})
    sources.start({"environment": {"python": str(python)}})
    said = cuda_init.asked(sources.job, 3.0)
    assert (said["late"], said["at"]["function"], said["silent"] <= 1.5) == (True, "cuInit", True)


def test_a_library_that_cannot_be_loaded_comes_with_the_loaders_words(asked: Asked, tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.1"
    for content, words in ((b"", "file too short"), (b"text " * 1000, "invalid ELF header")):
        library.write_bytes(content)
        facts = asked(folder=tmp_path)
        assert isinstance(facts, CudaInitFacts)
        assert facts.failed == CudaFailure("dlopen", None, f"{library}: {words}")
    library.unlink()
    subprocess.run(["cc", "-shared", "-o", library, "-xc", "/dev/null"], check=True)
    facts = asked(folder=tmp_path)
    assert isinstance(facts, CudaInitFacts)
    assert facts.failed == CudaFailure("cuDriverGetVersion", None, "libcuda.so.1 has no such function")


@pytest.mark.skipif(bool(on_pci()) or Path("/proc/driver/nvidia").exists(), reason="this machine has an NVIDIA GPU")
def test_without_an_nvidia_gpu_no_process_is_started() -> None:
    sources = Sources({})
    sources.job.path = "/nowhere/python3"
    with pytest.raises(MissingError):
        cuda_init.answer(sources, None, FAR)


def test_a_node_without_gpus_is_absent_and_one_that_did_not_answer_is_unread(answered: Answered) -> None:
    def read(value: object = None, status: Status = Status.OK, tree: object = None) -> object:
        replies: dict[Source, Reply] = {
            CUDA_INIT: Reply(status, value=value, reason="none"),  # type: ignore[arg-type]
            DEVICES: Reply(Status.OK, value=tree or {}),  # type: ignore[arg-type]
        }
        return facts_of(answered(replies), [CudaInitFacts])[CudaInitFacts]

    gpu = {"/sys/bus/pci/devices/0000:0f:00.0/vendor": "0x10de", "/sys/bus/pci/devices/0000:0f:00.0/class": "0x030200"}
    assert read(status=Status.MISSING) == Absent("no NVIDIA GPU")
    assert read(status=Status.MISSING, tree=gpu) == Unread("PCI shows 1 NVIDIA GPU(s), but CUDA was not tried")
    ended: dict[str, object] = {
        "library": "", "version": None, "failed": None, "uvm": "", "devices": [], "at": None, "done": False,
        "late": False, "silent": 0.0, "exit_status": 1, "words": "No module named '_ctypes'",
    }  # fmt: skip
    for change in ({}, {"exit_status": -9, "at": {"function": "cuInit", "after": 0.1}}):
        facts = read({**ended, **change})
        assert isinstance(facts, Unread)
        assert facts.reason == "CUDA could not be tried by the job's python3: No module named '_ctypes'"
    odd = {"index": 0, "pci": "$(reboot)", "untried": "", "failed": None}
    assert isinstance(read({**ended, "devices": [odd], "done": True}), Unread)
