"""The firmware of HCAs of one model differs

## What it finds
HCAs of the same product (the board's PSID, or the type where it has none) with different firmware, in one node or on
several. Not compared are adapters that show no type, such as Intel's, and virtual functions, which show the firmware of
a machine that others keep.

## Why it matters
Firmware decides congestion control, adaptive routing and the handling of link errors. Cards with another release are
slower or less stable in ways that look like a bad cable, on that node only.

## What to type
`sudo mlxfwmanager` (or `sudo mlxup`) compares it with the newest release for the card, and `sudo mlxfwmanager -u`
updates it. To accept it: `ncheck --ignore hca-firmware-differs nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, split
from ncheck.facts.hcas import HcaFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.nccl.hca import is_virtual


@cluster_check("NC418", Severity.WARNING, InfinibandFacts, HcaFacts, alone=True)
def hca_firmware_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    details = cluster.facts(HcaFacts)
    held: dict[str, dict[str, set[str]]] = {}
    for node, facts in cluster.facts(InfinibandFacts).items():
        own = [port for port in facts.ports if port.firmware and port.hca_type and not is_virtual(port)]
        if not own:
            yield NotApplicable("no HCA whose firmware is this machine's own", (node,))
        for port in own:
            board = details[node].of(*port.place).board
            product = f"{port.hca_type} ({board})" if board else port.hca_type
            held.setdefault(product, {}).setdefault(node, set()).add(port.firmware)
    for product, releases in held.items():
        shown = {node: " and ".join(sorted(own)) for node, own in releases.items()}
        parted = split(shown)
        if parted:
            message, nodes = parted.summary(), parted.odd
        elif any(len(own) > 1 for own in releases.values()):
            message, nodes = f"{next(iter(shown.values()))} in one node", tuple(releases)
        else:
            continue
        summary = "the firmware of HCAs differs"
        yield Problem(
            f"firmware of {product} differs: {message}", "sudo mlxfwmanager", nodes=nodes, look=True, summary=summary
        )
