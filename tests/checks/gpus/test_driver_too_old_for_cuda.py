"""NC535: a driver that is older than the job's CUDA needs is an error."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from ncheck.facts.gpu_health import NvidiaDriverFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.nccl import LoadedNcclFacts, NcclCopiesFacts, NcclCopy
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.gpus.driver_too_old_for_cuda import driver_too_old_for_cuda

PATH = "/opt/job/nccl/lib/libnccl.so.2"


def node(
    driver: str,
    cuda: str,
    nccl: str = "",
    packages: Mapping[str, str] | None = None,
    compatibility: tuple[str, ...] = (),
) -> Facts:
    copies = (NcclCopy("/usr/lib/libnccl.so.2", "2.15.5", "system", "11.8"), NcclCopy(PATH, "2.27.5", "wheel", nccl))
    return {
        GpuFacts: GpuFacts((Gpu(0, "H100"),), driver, cuda, "nvml"),
        NcclCopiesFacts: NcclCopiesFacts(copies),
        LoadedNcclFacts: LoadedNcclFacts("2.27.5", PATH),
        InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", packages or {}),
        NvidiaDriverFacts: NvidiaDriverFacts(driver, driver, compatibility=compatibility),
    }


def test_each_package_is_named_with_the_driver_that_it_needs() -> None:
    lines = (
        "NCCL 2.27.5 was built for CUDA 13.0: driver 580.65.06 or later",
        "torch 2.9.0+cu130 was built for CUDA 13.0: driver 580.65.06 or later",
    )
    nodes = {"n1": node("550.54.15", "12.4", "13.0", {"torch": "2.9.0+cu130"})}
    assert judge([driver_too_old_for_cuda], nodes).findings == [
        Finding("NC535", "driver-too-old-for-cuda", Severity.ERROR, ("n1",), f"driver 550.54.15 is too old: {lines[0]}",
                lines, "modinfo -F version nvidia", kind="look",
                summary="the GPU driver is too old for the job's CUDA"),
    ]  # fmt: skip


@pytest.mark.parametrize(("packages", "needed"), [
    ({"torch": "2.5.1+cu124"}, "525.60.13"),
    ({"torch": "1.7.1+cu92"}, ""),
    ({"jaxlib": "0.4.30+cuda12.cudnn91"}, "525.60.13"),
    ({"cupy-cuda13x": "14.0.0"}, "580.65.06"),
    ({"torch": "2.5.1"}, ""),
    ({"torch": "2.5.1+cpu"}, ""),
    ({"torch": "1.13.1+cu117"}, ""),
])  # fmt: skip
def test_the_build_is_read_from_the_package(packages: dict[str, str], needed: str) -> None:
    found = judge([driver_too_old_for_cuda], {"n1": node("470.57.02", "11.4", "", packages)}).findings
    assert [line.rpartition("driver ")[2] for one in found for line in one.evidence] == (
        [f"{needed} or later"] if needed else []
    )


@pytest.mark.parametrize(("driver", "cuda"), [("525.60.13", "12.0"), ("535.104.05", "12.2"), ("580.65.06", "13.0")])
def test_one_driver_serves_all_minor_versions(driver: str, cuda: str) -> None:
    assert judge([driver_too_old_for_cuda], {"n1": node(driver, cuda, "12.9", {"torch": "2.7.1+cu128"})}).findings == []


def test_libraries_of_the_driver_that_know_this_cuda_are_new_enough() -> None:
    assert judge([driver_too_old_for_cuda], {"n1": node("470.57.02", "12.2", "12.4")}).findings == []


def test_forward_compatibility_is_the_way_around_it() -> None:
    package = ("/usr/local/cuda-13.0/compat/libcuda.so.1",)
    judgement = judge([driver_too_old_for_cuda], {"n1": node("550.54.15", "12.4", "13.0", compatibility=package)})
    assert [one.outcome for one in judgement.verdicts] == [Outcome.SKIPPED]


def test_without_a_gpu_or_a_package_there_is_nothing_to_judge() -> None:
    none = {**node("550.54.15", "12.4", "13.0"), GpuFacts: Absent("no NVIDIA GPU")}
    bare = {**node("550.54.15", "12.4"), LoadedNcclFacts: Absent("no NCCL"), NcclCopiesFacts: Absent("no NCCL")}
    assert {one.outcome for one in judge([driver_too_old_for_cuda], {"n1": none, "n2": bare}).verdicts} == {
        Outcome.SKIPPED
    }
