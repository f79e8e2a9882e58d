"""NC628: a container without the GPUs of its machine."""

from __future__ import annotations

from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.pci import NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.gpu_device_missing import gpu_device_missing


def node(devices: int, driver: str = "nvidia", container: str = "docker", on_bus: int = 8) -> dict[str, Facts]:
    pci = tuple(PciDevice(f"0000:0{at}:00.0", 0x0302, NVIDIA, 0x2330, driver) for at in range(on_bus))
    return {
        "n1": {
            PciFacts: PciFacts(pci),
            HostSettingsFacts: HostSettingsFacts(8, gpu_devices=devices),
            InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", {}, container),
        }
    }


def outcome(nodes: dict[str, Facts]) -> Outcome:
    return judge([gpu_device_missing], nodes).verdicts[0].outcome


def test_a_container_without_any_is_named() -> None:
    assert judge([gpu_device_missing], node(0)).findings == [
        Finding("NC628", "gpu-device-missing", Severity.WARNING, ("n1",),
                "this container has none of the 8 GPUs of its machine: no /dev/nvidia0", (),
                "start the container again with --gpus all", kind="do", summary="a container has no GPU"),
    ]  # fmt: skip


def test_a_container_with_one_of_eight_is_healthy() -> None:
    assert outcome(node(1)) is outcome(node(8)) is Outcome.PASSED


def test_no_container_no_gpu_and_gpus_of_a_virtual_machine_are_skipped() -> None:
    assert outcome(node(0, container="")) is outcome(node(0, on_bus=0)) is outcome(node(0, "vfio-pci"))
    assert outcome(node(0, "vfio-pci")) is Outcome.SKIPPED
    nodes: dict[str, Facts] = {"n1": {**node(0)["n1"], PciFacts: Absent("no PCI bus")}}
    assert outcome(nodes) is Outcome.SKIPPED
