"""PCIe links: read in a tree such as the kernel shows, where the way up from a device leads through its real folder."""

from __future__ import annotations

from pathlib import Path

from ncheck.agent.files import read_tree
from ncheck.facts.pcie import LINKS, PROCESSOR, PcieFacts, PcieLink, Processor, pcie
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Absent, Unread

CPUINFO = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\n"


def port(folder: Path, now: tuple[str, str], most: tuple[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(("width", "speed"), now, strict=True):
        (folder / f"current_link_{name}").write_text(text + "\n")
    for name, text in zip(("width", "speed"), most, strict=True):
        (folder / f"max_link_{name}").write_text(text + "\n")


def machine(root: Path) -> Path:
    """Lay out a GPU and an HCA under one switch: root port, upstream port, downstream ports, devices."""
    up = root / "sys/devices/pci0000:0a/0000:0a:01.0/0000:0b:00.0"
    for place in (up.parent, up, up / "0000:0c:00.0", up / "0000:0c:01.0"):
        port(place, ("16", "32.0 GT/s PCIe"), ("16", "32.0 GT/s PCIe"))
    gpu, hca = up / "0000:0c:00.0/0000:0f:00.0", up / "0000:0c:01.0/0000:10:00.0"
    port(gpu, ("16", "2.5 GT/s PCIe"), ("16", "32.0 GT/s PCIe"))
    port(hca, ("8", "32.0 GT/s PCIe"), ("16", "64.0 GT/s PCIe"))
    link(root / "sys/bus/pci/drivers/nvidia/0000:0f:00.0", gpu)
    link(root / "sys/class/infiniband/mlx5_0/device", hca)
    return root


def link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def evidence(root: Path, cpuinfo: str = CPUINFO) -> Evidence:
    said = read_tree([str(root) + pattern for pattern in LINKS.patterns])["value"]
    tree = {path[len(str(root)) :]: text for path, text in said.items()}
    replies = {
        LINKS.key: Reply(Status.OK, value=tree),
        PROCESSOR.key: Reply(Status.OK, exit_status=0 if cpuinfo else 1, stdout=cpuinfo),
    }
    return Evidence("n1", Login(reached=True), replies=replies)


def test_each_device_has_the_links_up_to_the_processor(tmp_path: Path) -> None:
    above = PcieLink(16, 32.0, 16, 32.0)
    assert pcie(evidence(machine(tmp_path))) == PcieFacts(
        gpus={"0000:0f:00.0": (PcieLink(16, 2.5, 16, 32.0), above)},
        hcas={"mlx5_0": (PcieLink(8, 32.0, 16, 32.0), above)},
        processor=Processor("GenuineIntel", 6, 143),
    )


def test_a_processor_without_a_vendor_is_none(tmp_path: Path) -> None:
    for text in ("", "CPU implementer\t: 0x41\n", "vendor_id\t: GenuineIntel\n"):
        found = pcie(evidence(machine(tmp_path / str(len(text))), text))
        assert isinstance(found, PcieFacts)
        assert found.processor is None


def test_a_virtual_function_has_no_link_of_its_own(tmp_path: Path) -> None:
    device = tmp_path / "sys/devices/pci0000:00/0000:00:05.0"
    port(device, ("0", "Unknown"), ("255", "Unknown speed"))
    link(tmp_path / "sys/class/infiniband/mlx5_0/device", device)
    assert pcie(evidence(tmp_path)) == PcieFacts(
        {}, {"mlx5_0": (PcieLink(None, None, None, None),)}, Processor("GenuineIntel", 6, 143)
    )


def test_a_machine_without_such_devices_has_none(tmp_path: Path) -> None:
    assert pcie(evidence(tmp_path)) == Absent("no NVIDIA GPU or HCA with a PCIe link")


def test_what_could_not_be_read_is_unread() -> None:
    found = pcie(Evidence("n1", Login(reached=True), replies={LINKS.key: Reply(Status.FAILED, "Input/output error")}))
    assert isinstance(found, Unread)
    assert "Input/output error" in found.reason
