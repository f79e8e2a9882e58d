"""Which GPUs and adapters are beneath one PCIe switch: there data can go from one to the other by itself."""

from __future__ import annotations

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.pci import NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import NodeView
from ncheck.model.fact import Absent, Unread

_LAYERS = ("InfiniBand", "Ethernet")


def places_unread(node: NodeView) -> str:
    """Return why it is not known where the adapters are; "" if it is, or if they are on no PCI bus."""
    pci = node.maybe(PciFacts)
    if isinstance(pci, Unread):
        return pci.reason
    on_bus = [port for port in node[InfinibandFacts].ports if port.pci]
    return f"{on_bus[0].hca} is on the PCI bus, which could not be read" if on_bus and isinstance(pci, Absent) else ""


def near_pairs(node: NodeView) -> tuple[tuple[PciDevice, HcaPort], ...]:
    """Return the NVIDIA GPUs and Active HCA ports that share a bridge; the root of the bus is none."""
    pci, adapters = node.maybe(PciFacts), node[InfinibandFacts]
    if not isinstance(pci, PciFacts):
        return ()
    places = {one.address: bridges(one) for one in pci.adapters}
    ports = [port for port in adapters.ports if port.state == "Active" and port.link_layer in _LAYERS]
    return tuple(
        (gpu, port) for gpu in pci.gpus(NVIDIA) for port in ports if bridges(gpu) & places.get(port.pci, frozenset())
    )


def bridges(device: PciDevice) -> frozenset[str]:
    """Return the addresses of the bridges above a device."""
    return frozenset(place for place in device.above if not place.startswith("pci"))
