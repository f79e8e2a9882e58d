"""Each GPU tested alone, with stand-ins for the driver and NVML that can be slow, wrong and hang."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from ncheck.agent.answers import MissingError
from ncheck.decode import decoded
from ncheck.facts.gpus import GpuFacts
from ncheck.fleet.bootstrap import gpu_program
from ncheck.model.finding import Outcome
from ncheck.parse.nvidia_smi import Gpu
from ncheck.probe.agent import gpu_test
from ncheck.probe.agent.gpu_alone import kernels
from ncheck.probe.gpu_test import EXACT, BusyLook, DriverFailure, GpuTestFacts
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_compute_slow import gpu_compute_slow
from ncheck_checks.measured.gpu_computes_wrong import gpu_computes_wrong
from ncheck_checks.measured.gpu_errors_under_load import gpu_errors_under_load
from ncheck_checks.measured.gpu_host_link_slow import gpu_host_link_slow
from ncheck_checks.measured.gpu_memory_slow import gpu_memory_slow
from ncheck_checks.measured.gpu_pair_slow import gpu_pair_slow
from ncheck_checks.measured.gpu_slowed_under_load import gpu_slowed_under_load
from ncheck_checks.measured.gpu_test_failed import gpu_test_failed
from ncheck_checks.measured.pcie_narrow_under_load import pcie_narrow_under_load

from .driven_ranks import FAR, Standins

pytestmark = pytest.mark.slow

UUID = "GPU-00000000-0000-0000-0000-00000000000"
GPUS = [{"uuid": f"{UUID}{index}", "pci": f"0000:{index:02x}:00.0"} for index in range(2)]
NVML = Path(__file__).parents[3] / "lab" / "standins" / "nvml.c"

# In a process of its own: NVML is loaded into the agent, from where its environment says.
AGENT = """
import json, sys
from ncheck.agent.sources import Sources
from ncheck.fleet.bootstrap import module_text
from ncheck.probe.agent.gpu_test import answer
import os
sources = Sources(dict(os.environ))
sources.fetch = module_text
sources.start({"environment": {"python": sys.executable}})
task = json.loads(sys.argv[1])
print(json.dumps(answer(sources, task, task["timeout"])))
"""
SMALL = f"memory={1 << 30}"  # for a host has to write the matrices
# What every GPU computes: each sum, and no wrong block.
RIGHT = {f"{name}{when}": (found, 0) for name, found in EXACT.items() for when in ("", " again")}
Tested = Callable[..., GpuTestFacts]


@pytest.fixture(scope="module")
def compiled_nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-w", "-o", str(library), str(NVML)], check=True)
    return library


@pytest.fixture
def tested(standins: Standins, compiled_nvml: Path, tmp_path: Path) -> Tested:
    """Return a function that tests two GPUs; afterwards, none of its processes may be left."""
    for library in standins().iterdir():
        (tmp_path / library.name).symlink_to(library)
    for name, driver in (
        ("cublas.so.12", "cuda.so.1"),
        ("hiprtc.so", "amdhip64.so.6"),
        ("rocblas.so.4", "amdhip64.so.6"),
    ):
        (tmp_path / f"lib{name}").symlink_to(tmp_path / f"lib{driver}")
    (tmp_path / compiled_nvml.name).symlink_to(compiled_nvml)
    mark = os.urandom(8).hex()

    def run(
        cuda: str = SMALL, nvml: str = "", seconds: float = 0.2, timeout: float = FAR, **more: object
    ) -> GpuTestFacts:
        task = {"gpus": GPUS, "seconds": seconds, "timeout": timeout, **more}
        own = {"LD_LIBRARY_PATH": str(tmp_path), "STANDIN_CUDA": cuda, "STANDIN_NVML": nvml, "STANDIN_MARK": mark}
        own["HOME"] = str(tmp_path)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "CUDA_"))}
        done = subprocess.run(
            [sys.executable, "-c", AGENT, json.dumps(task)],
            env={**plain, **own},
            capture_output=True,
            text=True,
            check=True,
        )
        assert _marked(mark) == []
        assert not (tmp_path / ".nv").exists()
        answered: GpuTestFacts = decoded(json.loads(done.stdout), GpuTestFacts)
        return answered

    return run


def _marked(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and f"STANDIN_MARK={mark}".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text()[:200])
        except OSError:  # noqa: PERF203  it has ended meanwhile
            continue
    return found


def test_healthy_gpus_come_to_the_end_with_every_figure(tested: Tested) -> None:
    facts = tested()
    assert [(gpu.uuid, gpu.done, gpu.ended, gpu.trouble) for gpu in facts.gpus] == [
        (one["uuid"], True, True, "") for one in GPUS
    ]
    for gpu in facts.gpus:
        figures = gpu.figures
        rates = (figures.fma, figures.late_fma, figures.fp32, figures.bf16, figures.memory, figures.to_device)
        assert (*rates, figures.to_host) == pytest.approx((18, 18, 18, 270, 1800, 25, 25), rel=0.01)
        assert gpu.notes == ()
        assert figures.launch
        assert set(gpu.results) == {"integers", "floats", "integers again", "floats again"}
        assert {look.width for look in gpu.looks} == {16}
        assert (gpu.before, gpu.after, gpu.unwatched) == ({"pcie_replays": 0, "ecc": 0},) * 2 + ("",)
    assert [gpu.results for gpu in facts.gpus] == [RIGHT] * 2
    assert [gpu.serial for gpu in facts.gpus] == ["16503240000", ""]
    assert [(one, other) for one, other, _ in facts.pairs] == [(0, 1), (1, 0)]
    assert facts.words == ""


def test_exact_arithmetic_gives_the_results_that_every_gpu_is_compared_with() -> None:
    """By whole numbers alone: no processor, and no library, rounds anything here."""
    assert {"integers": digest(map(integers, range(256))), "floats": digest(map(floats, range(256)))} == EXACT


def digest(words: Iterable[int]) -> str:
    return hashlib.sha256(struct.pack("<256I", *words)).hexdigest()[:16]


def integers(thread: int) -> int:
    x = (thread * 2654435761 + 12345) % 2**32
    for _ in range(500 * 4):
        x = (x * 1664525 + 1013904223) % 2**32
        x ^= x >> 13
        x = (x + (x * 2654435761 >> 32)) % 2**32
    return x


def floats(thread: int) -> int:
    found = 0
    for constant in kernels._CONSTANTS:
        x = struct.pack("<f", thread / 256)
        factor, power = parts(int.from_bytes(x, "little"))
        added, its_power = parts(constant)
        for _ in range(500 * 4):
            low = min(2 * power, its_power)
            total = (factor * factor << 2 * power - low) + (added << its_power - low)
            factor, power = rounded(total, low)
        bits = int.from_bytes(struct.pack("<f", math.ldexp(factor, power)), "little")
        found = ((found << 5 | found >> 27) & 0xFFFFFFFF) ^ bits
    return found


def parts(bits: int) -> tuple[int, int]:
    """Return a number in single precision as a whole number and a power of 2; none here is subnormal, but 0."""
    exponent = bits >> 23 & 0xFF
    factor = bits & 0x7FFFFF | (0x800000 if exponent else 0)
    return -factor if bits >> 31 else factor, max(exponent, 1) - 150


def rounded(factor: int, power: int) -> tuple[int, int]:
    """Return the nearest number of 24 bits, of two the even one."""
    over = abs(factor).bit_length() - 24
    if over <= 0:
        return factor, power
    size, rest = divmod(abs(factor), 1 << over)
    size += rest > 1 << over - 1 or (rest == 1 << over - 1 and size % 2 == 1)
    return (size if factor > 0 else -size), power + over


def test_a_gpu_that_is_slow_or_wrong_shows_it_and_its_neighbour_does_not(tested: Tested) -> None:
    facts = tested(f"{SMALL},compute=0.4@1,copy=0.4@1,host=0.4@1,peer=0.4@1,product=0.4@1,wrong=3@1,warm=2@1")
    well, ill = facts.gpus
    for name in ("fma", "late_fma", "bf16", "fp32", "memory", "to_device", "to_host"):
        assert getattr(ill.figures, name) == pytest.approx(0.4 * getattr(well.figures, name), rel=0.01)
    rates = {(one, other): rate for one, other, rate in facts.pairs}
    assert (rates[0, 1], rates[1, 0]) == pytest.approx((100, 40), rel=0.01)
    wrong = {name: blocks for name, (_, blocks) in ill.results.items()}
    assert wrong == {"integers": 0, "integers again": 0, "floats": 3, "floats again": 5}
    assert {blocks for _, blocks in well.results.values()} == {0}


@pytest.mark.parametrize("vendor", ["NVIDIA", "AMD"])
def test_products_last_until_the_power_cap_acts_and_draw_the_power_for_it(tested: Tested, vendor: str) -> None:
    well, ill = tested(f"{SMALL},capped=0.7@1", vendor=vendor, force=True).gpus
    rates = (well.figures.bf16, ill.figures.bf16, well.figures.fp32, ill.figures.fp32)
    assert rates == pytest.approx((270, 189, 18, 12.6), rel=0.01)
    assert (well.trouble, ill.trouble, well.notes, ill.notes) == ("", "", (), ())


CHECKS = [
    gpu_compute_slow,
    gpu_computes_wrong,
    gpu_errors_under_load,
    gpu_host_link_slow,
    gpu_memory_slow,
    gpu_pair_slow,
    gpu_slowed_under_load,
    gpu_test_failed,
    pcie_narrow_under_load,
]
# One H100 with release 580 of the driver, which knows CUDA 13.0.
H100 = f"{SMALL},driver=13000,devices=1,compute=3@0,product=2.5@0,copy=1.6@0,host=2@0"
NO_PEER = "nothing to compare with: one GPU of its model, and ncheck has no figure of its data sheet"
ALONE = {"gpu-pair-slow": "one GPU alone has no pairs", "gpu-host-link-slow": NO_PEER}
LATE = "it did not end within its time, in: the driver"
WAKES = {
    **ALONE,
    **dict.fromkeys(("gpu-compute-slow", "gpu-memory-slow", "gpu-host-link-slow"), f"not measured: {LATE}"),
    **dict.fromkeys(("gpu-slowed-under-load", "pcie-narrow-under-load"), "no GPU was kept busy to the end"),
    "gpu-computes-wrong": f"0000:00:00.0: {LATE}",
    "gpu-test-failed": f"the test of 0000:00:00.0 did not come to its end: {LATE}",
}
NO_CUBLAS = "cuBLAS cannot be used: libcublas.so.11: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("cuda", "nvml", "notes", "reasons"),
    [
        ("", "", (), ALONE),
        (",init=hang", "", (), WAKES),  # for longer than there is time
        (",capped=0.7@0", "throttled=4@0", (), ALONE),
        ("", "", (NO_CUBLAS,), ALONE),
        (",sm=60", "", (), ALONE),
    ],
    ids=["healthy", "slow start", "power cap", "no cuBLAS", "sm_60"],
)
def test_a_machine_with_one_gpu_is_green_or_says_why(  # noqa: PLR0913, PLR0917  they are one row
    tested: Tested, tmp_path: Path, cuda: str, nvml: str, notes: tuple[str, ...], reasons: dict[str, str]
) -> None:
    if notes:
        (tmp_path / "libcublas.so.12").unlink()
    facts = tested(H100 + cuda, nvml, 0.6, 5 if reasons is WAKES else FAR, gpus=GPUS[:1])
    found = Gpu(0, "NVIDIA H100 80GB HBM3", GPUS[0]["uuid"], GPUS[0]["pci"])
    judged = judge(CHECKS, {"n1": {GpuTestFacts: facts, GpuFacts: GpuFacts((found,), "580.95", "13.0", "nvml")}})
    said = {one.check: one.reason for one in judged.verdicts if one.outcome is not Outcome.PASSED}
    assert (judged.findings, said, facts.gpus[0].notes, facts.words) == ([], reasons, notes, "")


def test_what_fails_or_is_refused_says_in_which_step(tested: Tested) -> None:
    _, ill = tested("lost=host@1").gpus
    words = "cuMemcpyHtoDAsync_v2: unknown error (CUDA error 999)"
    assert (ill.failure, ill.late) == (DriverFailure("a copy to the device", words, 999), False)
    assert ill.figures.memory is not None
    for gpu in tested("init=803").gpus:
        assert gpu.trouble == (
            "the driver: cuInit: system has unsupported display driver / cuda driver combination (CUDA error 803)"
        )


def test_a_gpu_that_hangs_in_its_copy_does_not_keep_the_others_waiting(tested: Tested) -> None:
    hangs, well = tested(f"{SMALL},hang=host@0", timeout=16).gpus
    if well.notes:  # the other one may have had its turn before
        assert well.notes == ("the link to the host was not measured: the copies of another GPU do not end",)
    assert (hangs.trouble, hangs.late) == ("it did not end within its time, in: a copy to the device", True)
    assert (well.trouble, well.done, len(well.results)) == ("", True, 4)


def test_gpus_that_share_a_link_to_the_host_copy_one_after_the_other(tested: Tested, tmp_path: Path) -> None:
    for gpu in tested(f"{SMALL},link={tmp_path}/link").gpus:
        assert (gpu.figures.to_device, gpu.figures.to_host) == pytest.approx((25, 25), rel=0.01)
        assert gpu.notes == ()


def test_a_gpu_of_the_oldest_supported_architecture_computes(tested: Tested) -> None:
    (well, _) = tested(f"{SMALL},sm=50").gpus
    assert (well.trouble, well.notes, len(well.results)) == ("", (), 4)


def test_what_cannot_be_compiled_or_multiplied_is_a_note_and_the_test_goes_on(tested: Tested) -> None:
    (old, _) = tested(f"{SMALL},sm=37").gpus
    refused = "no kernel image is available for execution on the device (CUDA error 209)"
    assert (old.trouble, old.notes, old.results) == ("", (f"nothing was computed: cuModuleLoadData: {refused}",), {})
    assert old.figures.fma is None
    assert (old.figures.fp32, old.figures.to_host) == pytest.approx((18, 25))
    (odd, _) = tested(f"{SMALL},bf16=15").gpus
    assert (odd.trouble, odd.notes, odd.figures.bf16) == (
        "", ("BF16 products were not measured: cublasGemmEx returned status 15",), None,
    )  # fmt: skip
    assert (odd.figures.fp32, odd.figures.late_fma) == pytest.approx((18, 18))
    assert len(odd.results) == 4
    (amd, _) = tested(f"{SMALL},hiprtc=6", vendor="AMD", force=True).gpus
    assert (amd.trouble, amd.notes) == ("", ("nothing was computed: hiprtcCompileProgram returned status 6",))


def test_more_peers_than_the_driver_allows_copy_by_the_host(tested: Tested) -> None:
    facts = tested(f"{SMALL},peers=0")
    assert ([(one, other) for one, other, _ in facts.pairs], facts.words) == ([(0, 1), (1, 0)], "")


def test_nvml_says_what_slows_a_busy_gpu(tested: Tested) -> None:
    well, ill = tested(nvml="throttled=64@1,replays=1@0").gpus
    assert ({look.throttled for look in well.looks}, {look.throttled for look in ill.looks}) == ({1}, {64})
    assert (well.before["pcie_replays"], well.after["pcie_replays"]) == (0, 1)


def test_gpus_of_amd_are_tested_by_hip_and_compute_the_same(tested: Tested) -> None:
    facts = tested(f"{SMALL},copy=0.4@1,peer=0.4@1,warm=2@1", vendor="AMD", force=True)
    well, ill = facts.gpus
    assert (facts.vendor, facts.words, well.trouble, well.notes, ill.trouble) == ("AMD", "", "", (), "")
    assert well.results == RIGHT
    assert {name: blocks for name, (_, blocks) in ill.results.items() if blocks} == {"floats again": 2}
    rates = well.figures
    assert (rates.fma, rates.bf16, rates.fp32, rates.to_host) == pytest.approx((18, 270, 18, 25), rel=0.01)
    assert (rates.memory, ill.figures.memory) == pytest.approx((1800, 720), rel=0.01)
    assert [rate for _, _, rate in facts.pairs] == pytest.approx((100, 40), rel=0.01)


def test_without_a_compiler_gpus_of_amd_compute_nothing_and_say_so(tested: Tested, tmp_path: Path) -> None:
    (tmp_path / "libhiprtc.so").unlink()
    (well, _) = tested(vendor="AMD", force=True).gpus
    assert (well.done, well.results, well.figures.fma, well.notes) == (
        True, {}, None, ("nothing was computed: there is no libhiprtc of ROCm",)
    )  # fmt: skip
    assert (well.figures.memory, well.figures.bf16) == pytest.approx((1800, 270), rel=0.01)


def test_gpus_of_amd_are_left_alone_where_nobody_knows_whether_they_are_in_use(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_test, "_PCI", f"{tmp_path}/{{}}/")
        with pytest.raises(MissingError, match=r"whether 0000:00:00\.0 is in use is not known"):
            gpu_test._need_idle(GPUS)
        for gpu, used in zip(GPUS, (1, 40), strict=True):
            (tmp_path / gpu["pci"]).mkdir()
            (tmp_path / gpu["pci"] / "mem_info_vram_total").write_text("100\n")
            (tmp_path / gpu["pci"] / "mem_info_vram_used").write_text(f"{used}\n")
        gpu_test._need_idle(GPUS[:1])
        with pytest.raises(MissingError, match=r"0000:01:00\.0 is in use: 40% of its memory"):
            gpu_test._need_idle(GPUS)


def test_a_busy_gpu_of_amd_is_looked_at_in_sysfs(tmp_path: Path) -> None:
    values = {
        "pp_dpm_sclk": "0: 132Mhz\n1: 1200Mhz *\n2: 2100Mhz\n", "current_link_speed": "16.0 GT/s PCIe",
        "current_link_width": "8", "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16",
        "hwmon/hwmon3/power1_average": "690000000", "hwmon/hwmon3/power1_cap": "750000000",
        "hwmon/hwmon3/temp2_input": "71000", "ras/umc_err_count": "ue: 2\nce: 5\n", "pcie_replay_count": "4",
    }  # fmt: skip
    for name, text in values.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    watching = object.__new__(gpu_test._WatchingAmd)
    assert decoded(watching._look(f"{tmp_path}/"), BusyLook) == BusyLook(
        1200, 2100, None, 690_000, 750_000, 71, 4, 5, 8, 16
    )
    assert watching._counters(f"{tmp_path}/") == {"pcie_replays": 4, "ecc": 2}
    assert decoded(watching._look(f"{tmp_path}/none/"), BusyLook) == BusyLook()


# What the text for HIP's compiler computes, by the one that is here.
AS_C = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define __global__
static struct {{ unsigned x; }} threadIdx, blockIdx;
static unsigned __umulhi(unsigned a, unsigned b) {{ return (uint64_t)a * b >> 32; }}
static float __uint_as_float(unsigned a) {{ float b; memcpy(&b, &a, 4); return b; }}
static unsigned __float_as_uint(float a) {{ unsigned b; memcpy(&b, &a, 4); return b; }}
{text}
int main(void) {{
    static unsigned out[256];
    void (*kernels[])(unsigned *, unsigned) = {{integers, floats}};
    for (int one = 0; one < 2; one++) {{
        for (threadIdx.x = 0; threadIdx.x < 256; threadIdx.x++) kernels[one](out, 500);
        fwrite(out, 1, sizeof out, stdout);
    }}
}}
"""


def test_the_kernels_for_hip_compute_what_exact_arithmetic_gives(tmp_path: Path) -> None:
    (tmp_path / "kernels.c").write_text(AS_C.format(text=kernels.hip().replace('extern "C"', "")))
    argv = ["cc", "-std=gnu11", "-O1", "-w", "-o", str(tmp_path / "kernels"), str(tmp_path / "kernels.c"), "-lm"]
    subprocess.run(argv, check=True)
    computed = subprocess.run([tmp_path / "kernels"], capture_output=True, check=True).stdout
    assert {
        name: hashlib.sha256(part).hexdigest()[:16] for name, part in zip(EXACT, halves(computed), strict=True)
    } == EXACT


def halves(data: bytes) -> tuple[bytes, bytes]:
    return data[: len(data) // 2], data[len(data) // 2 :]


def test_a_child_that_nobody_ends_ends_by_itself(standins: Standins) -> None:
    environ = {
        **os.environ,
        "LD_LIBRARY_PATH": str(standins()),
        "STANDIN_CUDA": "hang=copy@0",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    task = json.dumps({"seconds": 1, "deadline": 1})
    argv = [sys.executable, "-B", "-S", "-c", gpu_program()]
    done = subprocess.run(
        argv, input=f"{task}\n", env=environ, capture_output=True, text=True, check=False, timeout=FAR
    )
    assert done.returncode == -signal.SIGALRM


def test_the_program_is_one_line_without_a_quote_that_a_shell_reads() -> None:
    assert not {"'", "\n"} & {*gpu_program()}
