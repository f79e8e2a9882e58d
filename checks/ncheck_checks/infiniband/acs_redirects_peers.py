"""PCIe access control (ACS) sends GPU traffic through the processor

## What it finds
Nodes with an NVIDIA GPU and an Active InfiniBand or RoCE port beneath one PCIe switch, where a bridge between the two
has ACS request or completion redirect on (`lspci -vvv`: ReqRedir+ or CmpltRedir+). Only root can read it: `--sudo`.
Virtual machines are left out, since they need ACS, and so are Arm systems and ConnectX-8 and newer, whose function that
reaches GPUs directly needs other values.

## Why it matters
Data from the GPU to the adapter goes up to the processor and down again instead of across the switch: the all-reduce is
much slower than the links, often by half, or hangs (NCCL's guide, PCI Access Control Services; nccl-tests issue 112).
The BIOS turns ACS on, or the kernel does for its IOMMU.

## What to type
`sudo lspci -vvv | grep ACSCtl` shows all bridges, `sudo setpci -s BRIDGE ECAP_ACS+0x6.w=0000` turns it off on one until
the next boot. To keep it off: in the BIOS (ACS, and VT-d or IOMMU where no virtual machine runs), or by a systemd unit
that runs setpci at boot.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import SLOW_NETWORK, Cluster, NodeView, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.isolation import AcsFacts, IommuFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.pci import PciFacts
from ncheck.parity import nodes_by_value
from ncheck.topology.nearness import judged_pairs, separate_bridges

_REDIRECTS = {"ReqRedir", "CmpltRedir"}
_SHOWN = 16  # bridges in the evidence


@cluster_check(
    "NC436",
    Severity.WARNING,
    PciFacts,
    InfinibandFacts,
    IommuFacts,
    AcsFacts,
    also=(LibraryFacts,),
    alone=True,
    explains=SLOW_NETWORK,
)
def acs_redirects_peers(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    if others := tuple(node.name for node in cluster if not judged_pairs(node)):
        yield NotApplicable("no GPU beneath one PCIe switch with an InfiniBand or RoCE port, or ACS is wanted", others)
    found = {node.name: bridges for node in cluster if (bridges := _redirecting(node))}
    for bridges, nodes in nodes_by_value(found).items():
        controls = cluster[nodes[0]][AcsFacts].controls
        yield Problem(
            f"ACS sends traffic between GPUs and adapters through the processor, by {len(bridges)} "
            f"bridge{'s' if len(bridges) > 1 else ''}: {bridges[0]}",
            f"sudo setpci -s {quote(bridges[0])} ECAP_ACS+0x6.w=0000",
            tuple(f"{bridge}: {', '.join(controls[bridge])}" for bridge in bridges[:_SHOWN]),
            nodes, summary="ACS slows GPUDirect RDMA",
        )  # fmt: skip


def _redirecting(node: NodeView) -> tuple[str, ...]:
    controls = node[AcsFacts].controls
    between = {bridge for gpu, hca in judged_pairs(node) for bridge in separate_bridges(gpu, hca)}
    return tuple(sorted(bridge for bridge in between if _REDIRECTS & {*controls.get(bridge, ())}))
