"""NC536: GPUs that are not registered with the NVLink fabric, and NVSwitches without a fabric manager, are an error."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.cuda_init import CudaDevice, CudaFailure, CudaInitFacts
from ncheck.facts.fabric_manager import FabricManagerFacts
from ncheck.facts.gpu_health import Fabric, Failure, NvidiaDriverFacts
from ncheck.facts.pci import NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.fabric_not_ready import fabric_not_ready

from .health import HEALTHY, h100, node

SWITCHED = PciFacts((PciDevice("0000:c1:00.0", 0x0680, NVIDIA, 0x22A3),))
RUNS, STOPPED = FabricManagerFacts("active", "not installed"), FabricManagerFacts("inactive", "not installed")
START = "sudo systemctl enable --now nvidia-fabricmanager"
LOOK = "sudo systemctl status nvidia-fabricmanager"


def host(services: object, *, fabric: Fabric | None, switches: bool = True, **changed: object) -> Facts:
    return {
        **node(h100(0, fabric=fabric, **changed)),
        PciFacts: SWITCHED if switches else PciFacts(()),
        FabricManagerFacts: services,
        CudaInitFacts: Absent("CUDA was not tried"),
        NvidiaDriverFacts: NvidiaDriverFacts("550.54.15", "550.54.15"),
    }


def messages(facts: Facts) -> list[tuple[str, str]]:
    return [(one.message, one.fix) for one in judge([fabric_not_ready], {"n1": facts}).findings]


def test_gpus_that_wait_for_the_fabric_are_an_error_with_cuda_s_number() -> None:
    assert judge([fabric_not_ready], {"n1": host(STOPPED, fabric=Fabric(1))}).findings == [
        Finding("NC536", "fabric-not-ready", Severity.ERROR, ("n1",),
                "1 GPU(s) are not registered with the NVLink fabric; the fabric manager is inactive: CUDA fails with "
                "error 802", ("GPU 0 (0000:0f:00.0): fabric not started, status 0",), START,
                summary="the NVLink fabric is not ready"),
    ]  # fmt: skip


def test_a_fabric_manager_of_another_version_is_named() -> None:
    services = FabricManagerFacts("failed", "not installed", "550.90.07")
    message = (
        "NVSwitches are not set up; the fabric manager is failed, its version 550.90.07 is not the driver's "
        "(550.54.15): CUDA fails with error 802"
    )
    assert messages(host(services, fabric=None)) == [(message, LOOK)]


def test_what_the_gpus_say_counts_more_than_the_service() -> None:
    assert messages(host(STOPPED, fabric=Fabric(3))) == []
    assert messages(host(Absent("no systemd here"), fabric=Fabric(3, status=999))) == [
        ("1 GPU(s) are not registered with the NVLink fabric: CUDA fails with error 802", LOOK)
    ]


def test_while_the_fabric_manager_sets_the_switches_up_it_is_not_ready_yet() -> None:
    for services in (RUNS, FabricManagerFacts("activating", "not installed")):
        late = f"the fabric manager is {services.fabric_manager}: until then CUDA fails with error 802"
        assert messages(host(services, fabric=Fabric(2))) == [
            (f"1 GPU(s) are not registered with the NVLink fabric yet; {late}", LOOK)
        ]
    assert messages(host(FabricManagerFacts("activating", "not installed"), fabric=None)) == [
        ("NVSwitches are not set up yet; the fabric manager is activating: until then CUDA fails with error 802", LOOK)
    ]


def test_where_cuda_starts_all_the_same_it_is_a_warning_that_claims_no_error_of_cuda() -> None:
    starts = CudaInitFacts("/usr/lib/libcuda.so.1", "12.4", (CudaDevice(0, "0000:0f:00.0"),))
    known = {**host(STOPPED, fabric=Fabric(2)), CudaInitFacts: starts}
    (found,) = judge([fabric_not_ready], {"n1": known}).findings
    message = "1 GPU(s) are not registered with the NVLink fabric; the fabric manager is inactive: CUDA starts, and "
    assert (found.severity, found.message) == (
        Severity.WARNING, f"{message}NVLink through the NVSwitches may be missing",
    )  # fmt: skip
    fails = replace(starts, devices=(), failed=CudaFailure("cuInit", 802, "system not yet initialized"))
    (found,) = judge([fabric_not_ready], {"n1": {**known, CudaInitFacts: fails}}).findings
    assert found.severity is Severity.ERROR


def test_where_the_gpus_cannot_say_it_the_service_must_run() -> None:
    assert messages(host(RUNS, fabric=None)) == []
    assert messages(host(STOPPED, fabric=Fabric(0))) == [
        ("NVSwitches are not set up; the fabric manager is inactive: CUDA fails with error 802", START)
    ]


def test_nodes_without_switches_and_containers_are_skipped_and_what_was_not_read_is_unknown() -> None:
    failed = {"fabric": Failure(999, "Unknown Error")}
    nodes = {
        "pcie": host(STOPPED, fabric=Fabric(0), switches=False),
        "vm": host(STOPPED, fabric=Fabric(1), switches=False),
        "container": host(Absent("no systemd here"), fabric=None),
        "unread": host(Unread("systemctl: killed"), fabric=None),
        "failed": host(RUNS, fabric=None, errors=failed),
        "no-gpu": {**host(STOPPED, fabric=None), **HEALTHY["none"]},
    }
    judgement = judge([fabric_not_ready], nodes)
    assert judgement.findings == []
    assert {one.nodes[0]: one.outcome for one in judgement.verdicts} == {
        "pcie": Outcome.SKIPPED, "vm": Outcome.SKIPPED, "container": Outcome.SKIPPED,
        "unread": Outcome.UNKNOWN, "failed": Outcome.UNKNOWN,
        "no-gpu": Outcome.SKIPPED,
    }  # fmt: skip
