"""NC534: a GPU without NVIDIA's driver, where others of its type have it, is an error."""

from __future__ import annotations

from ncheck.facts.pci import NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nvidia_driver_not_bound import nvidia_driver_not_bound

H100, DISPLAY = 0x2330, 0x128B


def gpu(address: str, driver: str, device: int = H100) -> PciDevice:
    return PciDevice(address, 0x0302, NVIDIA, device, driver)


def bus(*devices: PciDevice) -> Facts:
    return {PciFacts: PciFacts(devices)}


USUAL = bus(gpu("0000:0f:00.0", "nvidia"), gpu("0000:10:00.0", "nvidia"))


def test_nouveau_in_the_place_of_nvidia_is_named() -> None:
    line = "the GPU at 0000:10:00.0 has the driver nouveau"
    nodes = {"n1": USUAL, "n2": bus(gpu("0000:0f:00.0", "nvidia"), gpu("0000:10:00.0", "nouveau"))}
    assert judge([nvidia_driver_not_bound], nodes).findings == [
        Finding("NC534", "nvidia-driver-not-bound", Severity.ERROR, ("n2",),
                f"NVIDIA's driver does not drive 1 GPU(s): {line}", (line,), "lspci -k -d 10de:", kind="look",
                summary="a GPU without NVIDIA's driver"),
    ]  # fmt: skip


def test_gpus_without_any_driver_are_counted() -> None:
    nodes = {"n1": USUAL, "n2": bus(gpu("0000:0f:00.0", ""), gpu("0000:10:00.0", ""))}
    assert [(one.message, one.fix) for one in judge([nvidia_driver_not_bound], nodes).findings] == [
        ("NVIDIA's driver does not drive 2 GPU(s): the GPU at 0000:0f:00.0 has no driver", "sudo modprobe nvidia")
    ]


def test_it_is_silent_where_all_are_driven_or_none_is_and_about_a_card_for_the_screen() -> None:
    screen = bus(gpu("0000:01:00.0", "nouveau", DISPLAY), gpu("0000:0f:00.0", "nvidia"))
    assert judge([nvidia_driver_not_bound], {"n1": USUAL, "n2": screen}).findings == []
    reserved = bus(gpu("0000:0f:00.0", "nvidia"), gpu("0000:10:00.0", "vfio-pci"))
    assert judge([nvidia_driver_not_bound], {"n1": USUAL, "n2": reserved}).findings == []
    laptop = bus(gpu("0000:01:00.0", "nouveau", DISPLAY))
    none: Facts = {PciFacts: Absent("no PCI bus")}
    assert judge([nvidia_driver_not_bound], {"n1": laptop, "n2": none}).findings == []
