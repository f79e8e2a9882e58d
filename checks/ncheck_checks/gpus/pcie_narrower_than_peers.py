"""A GPU or HCA has fewer PCIe lanes than on other nodes

## What it finds
Nodes on which a GPU or an HCA runs with fewer PCIe lanes than it can, or an HCA at a lower PCIe speed, while the same
devices of most nodes with this GPU model have more. The speed of GPUs is not judged: an idle GPU lowers it. Where all
nodes are alike, pcie-narrow tells it.

## Why it matters
Half the lanes is half the bandwidth between GPU and NIC, and to the processor: every all-reduce between nodes waits for
this node. Causes are a card that is not seated well, a bent contact, a riser, a slot or a BIOS setting (bifurcation).

## What to type
`sudo lspci -vv -s ADDRESS` shows LnkCap (what it can) and LnkSta (what it has). Reseat the card; if it stays, change
the riser or the slot.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Problem, Severity, cluster_check
from ncheck.facts.pcie import PcieFacts
from ncheck.topology.pcie_width import behind


@cluster_check(
    "NC531", Severity.WARNING, PcieFacts, by_kind=True, explains=SLOW_NETWORK, hardware=True, next_step="ticket"
)
def pcie_narrower_than_peers(cluster: Cluster) -> Iterator[Problem]:
    for node, narrow in behind(cluster.facts(PcieFacts)).items():
        lines = tuple(port.text for port in narrow)
        message = f"fewer PCIe lanes or a lower PCIe speed than on other nodes: {lines[0]}"
        summary = "a PCIe link is narrower than elsewhere"
        yield Problem(message, "sudo lspci -vv", lines, (node,), look=True, summary=summary)
