"""The IOMMU translates what GPUs and adapters send

## What it finds
Nodes with an NVIDIA GPU and an Active InfiniBand or RoCE port beneath one PCIe switch whose IOMMU groups have the type
DMA or DMA-FQ in /sys/kernel/iommu_groups: each address is translated. `identity` (iommu=pt) does not translate. Virtual
machines and Arm systems are left out.

## Why it matters
Translation is the default of many kernels, so this is for information: it may explain an all-reduce that is slower than
the links, and costs nothing where those are reached. On bare metal an IOMMU can send all traffic between a GPU and an
adapter through the processor, which is slow and can hang (NCCL's guide, PCI Access Control Services); a maintainer of
NCCL recommends `iommu=pt` (nccl-tests issue 115).

## What to type
`cat /proc/cmdline` shows the kernel's options. Add `iommu=pt` to GRUB_CMDLINE_LINUX in /etc/default/grub, then
`sudo update-grub` (Debian, Ubuntu) or `sudo grub2-mkconfig -o /boot/grub2/grub.cfg`, and boot again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.isolation import IommuFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.pci import PciFacts
from ncheck.topology.nearness import judged_pairs

_TRANSLATES = ("DMA", "DMA-FQ")


@node_check("NC437", Severity.INFO, PciFacts, InfinibandFacts, IommuFacts, also=(LibraryFacts,), explains=SLOW_NETWORK)
def iommu_translates(node: NodeView) -> Iterator[Problem | NotApplicable]:
    types, pairs = node[IommuFacts].types, judged_pairs(node)
    if not pairs:
        yield NotApplicable("no GPU beneath one PCIe switch with an InfiniBand or RoCE port on bare metal")
    found = {one.address: types[one.address] for pair in pairs for one in pair if types.get(one.address) in _TRANSLATES}
    if found:
        address, kind = next(iter(found.items()))
        yield Problem(
            f"the IOMMU translates the addresses of {len(found)} GPUs and adapters: {address} is of type {kind}",
            "cat /proc/cmdline", look=True, summary="the IOMMU translates",
        )  # fmt: skip
