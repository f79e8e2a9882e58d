"""PCIe links for the tests of their width."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.pcie import PcieFacts, PcieLink
from ncheck.model.cluster import Facts
from ncheck.parse.nvidia_smi import Gpu

FULL = PcieLink(16, 32.0, 16, 32.0)
HALF = PcieLink(8, 32.0, 16, 32.0)
IDLE = PcieLink(16, 2.5, 16, 32.0)
SLOW = PcieLink(16, 16.0, 16, 32.0)


def node(*gpus: PcieLink, hcas: tuple[PcieLink, ...] = (), first: int = 0x0F) -> Facts:
    """Return a node with these links; the switch above each GPU is at its full width."""
    addresses = [f"0000:{first + place:02x}:00.0" for place in range(len(gpus))]
    own = {address: (link, FULL) for address, link in zip(addresses, gpus, strict=True)}
    listed = tuple(Gpu(place, "H100", pci=address) for place, address in enumerate(addresses))
    return {
        PcieFacts: PcieFacts(own, {f"mlx5_{place}": (link,) for place, link in enumerate(hcas)}),
        GpuFacts: GpuFacts(listed, "550.54.15", "12.4", "nvml"),
    }
