"""Nodes with a GPU and an adapter beneath one switch, and what may keep them apart."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.isolation import AcsFacts, IommuFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.pci import MELLANOX, NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import Facts

ROOT, PORT, SWITCH, TO_GPU, TO_HCA = "pci0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:17:01.0"
GPU = PciDevice("0000:18:00.0", 0x0302, NVIDIA, 0x2330, above=(ROOT, PORT, SWITCH, TO_GPU))
HCA = PciDevice("0000:19:00.0", 0x0207, MELLANOX, 0x1021, above=(ROOT, PORT, SWITCH, TO_HCA))
ON = ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")
TRANSLATED = {GPU.address: "DMA-FQ", HCA.address: "DMA-FQ"}


def node(
    acs: Mapping[str, tuple[str, ...]] | None = None,
    types: Mapping[str, str] | None = None,
    *,
    x86: bool = True,
    virtual: bool = False,
    hca: PciDevice = HCA,
) -> Facts:
    port = HcaPort("mlx5_0", 1, "Active", "LinkUp", 400, "InfiniBand", pci=hca.address)
    return {
        PciFacts: PciFacts((GPU, hca)),
        InfinibandFacts: InfinibandFacts((port,), "sysfs"),
        LibraryFacts: LibraryFacts("", NO_HCA),
        IommuFacts: IommuFacts(types or {}, x86=x86, virtual=virtual),
        AcsFacts: AcsFacts(acs or {}),
    }
