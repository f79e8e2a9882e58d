"""A GPU or HCA has fewer PCIe lanes than it can use

## What it finds
GPUs and HCAs that run with fewer PCIe lanes than they can, on nodes that are no worse than the others:
pcie-narrower-than-peers reports those that are.

## Why it matters
Most often the slot is wired so: the second slot of a workstation, a server with many cards. The bandwidth between GPU,
NIC and processor is lower in proportion, which explains what an all-reduce reaches.

## What to type
`sudo lspci -vv -s ADDRESS` shows LnkCap (what it can) and LnkSta (what it has).
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.pcie import PcieFacts
from ncheck.topology.pcie_width import behind, ports


@cluster_check("NC532", Severity.INFO, PcieFacts, by_kind=True, alone=True)
def pcie_narrow(cluster: Cluster) -> Iterator[Problem]:
    facts = cluster.facts(PcieFacts)
    worse = behind(facts)
    shown = {id(links): links for links in facts.values()}  # nodes with the same links share one
    lines_of = {
        one: tuple(port.text for port in ports(links) if port.width < port.most_width) for one, links in shown.items()
    }
    narrow = {node: lines_of[id(links)] for node, links in facts.items() if node not in worse and lines_of[id(links)]}
    for lines, nodes in nodes_by_value(narrow).items():
        message = f"fewer PCIe lanes than possible: {lines[0]}"
        summary = "PCIe links with fewer lanes than possible"
        yield Problem(message, "sudo lspci -vv", lines, nodes, look=True, summary=summary)
