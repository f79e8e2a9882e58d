"""NC617: a control group that leaves a job with GPUs less than half of its share of the memory."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.host_load import HostLoadFacts
from ncheck.facts.host_settings import GroupLimit, HostSettingsFacts
from ncheck.facts.pci import AMD, NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.host.memory_limit_low import memory_limit_low

GIB = 2**30
JOB = "/sys/fs/cgroup/memory/slurm/uid_1000/job_7"


def node(limit: int | None, gpus: int = 8, there: int = 8, memory: int | None = 1024 * GIB) -> dict[str, Facts]:
    group = None if limit is None else GroupLimit(limit, JOB)
    pci = tuple(PciDevice(f"0000:0{at}:00.0", 0x0302, NVIDIA, 0x2330) for at in range(there))
    return {
        "n1": {
            HostSettingsFacts: HostSettingsFacts(96, memory=group),
            HostLoadFacts: HostLoadFacts(96, memory, memory),
            GpuFacts: GpuFacts(tuple(Gpu(at, "H100") for at in range(gpus)), "550", "12.4", "nvml"),
            PciFacts: PciFacts(pci),
        }
    }


def outcome(nodes: dict[str, Facts]) -> Outcome:
    return judge([memory_limit_low], nodes).verdicts[0].outcome


def test_slurms_default_of_a_few_gibibytes_is_named() -> None:
    assert judge([memory_limit_low], node(16 * GIB)).findings == [
        Finding("NC617", "memory-limit-low", Severity.WARNING, ("n1",),
                "memory is limited to 16.0 GiB; the share of 8 of 8 GPUs is 1024.0 GiB", (JOB,),
                "cat /proc/self/cgroup", kind="look",
                summary="a control group limits memory"),
    ]  # fmt: skip


def test_the_share_of_a_job_with_one_of_eight_gpus_is_an_eighth() -> None:
    assert outcome(node(100 * GIB, gpus=1)) is Outcome.PASSED
    assert outcome(node(60 * GIB, gpus=1)) is Outcome.FAILED
    assert outcome(node(100 * GIB, gpus=1, there=0)) is Outcome.FAILED  # PCI shows none: it has all of them


def test_the_share_of_a_job_with_one_of_eight_amd_gpus_is_an_eighth() -> None:
    of_amd: Facts = {
        GpuFacts: GpuFacts((Gpu(0, "MI300X"),), "6.10", "", "amd-smi", vendor="AMD"),
        PciFacts: PciFacts(tuple(PciDevice(f"0000:0{at}:00.0", 0x1200, AMD, 0x74A1) for at in range(8))),
    }
    assert outcome({"n1": {**node(100 * GIB)["n1"], **of_amd}}) is Outcome.PASSED


def test_no_limit_a_fair_one_and_no_gpu_are_healthy() -> None:
    assert outcome(node(None)) is outcome(node(16 * GIB, memory=None)) is Outcome.SKIPPED
    assert outcome(node(900 * GIB)) is Outcome.PASSED
    nodes = node(GIB)
    assert outcome({"n1": {**nodes["n1"], GpuFacts: Absent("no GPU")}}) is Outcome.SKIPPED
