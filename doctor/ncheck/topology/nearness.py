"""Which GPUs and adapters are beneath one PCIe switch: there data can go from one to the other by itself."""

from __future__ import annotations

from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.isolation import IommuFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.pci import MELLANOX, NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import NodeView
from ncheck.model.fact import Absent, Unread
from ncheck.nccl.hca import active
from ncheck.nccl.hca_ports import usable

_DIRECT = (0x1023, 0x1025)  # ConnectX-8 and 9: a second function reaches the GPU, and wants other values of ACS


def places_unread(node: NodeView) -> str:
    """Return why it is not known where the adapters are; "" if it is, or if they are on no PCI bus."""
    pci = node.maybe(PciFacts)
    if isinstance(pci, Unread):
        return pci.reason
    on_bus = [port for port in node[InfinibandFacts].ports if port.pci]
    return f"{on_bus[0].hca} is on the PCI bus, which could not be read" if on_bus and isinstance(pci, Absent) else ""


def near_pairs(node: NodeView) -> tuple[tuple[PciDevice, PciDevice], ...]:
    """Return the NVIDIA GPUs and adapters with an Active HCA port that a job can use, where they share a bridge; the
    root of the bus is none. The check must declare PciFacts, InfinibandFacts and LibraryFacts.
    """
    pci = node.maybe(PciFacts)
    if not isinstance(pci, PciFacts):
        return ()
    libraries = node.maybe(LibraryFacts)
    places = {port.pci for port in active(node[InfinibandFacts].ports) if usable(port.hca, libraries)}
    adapters = [one for one in pci.adapters if one.address in places]
    return tuple((gpu, one) for gpu in pci.gpus(NVIDIA) for one in adapters if gpu.bridges & one.bridges)


def judged_pairs(node: NodeView) -> tuple[tuple[PciDevice, PciDevice], ...]:
    """Return the near pairs that nothing should keep apart: on bare metal, on x86, without a direct function."""
    machine = node[IommuFacts]
    if machine.virtual or not machine.x86:
        return ()
    return tuple((gpu, one) for gpu, one in near_pairs(node) if not (one.vendor == MELLANOX and one.device in _DIRECT))


def separate_bridges(one: PciDevice, other: PciDevice) -> frozenset[str]:
    """Return the bridges between two devices, without those above both."""
    return one.bridges ^ other.bridges
