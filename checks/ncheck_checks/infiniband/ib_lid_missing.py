"""An Active InfiniBand port has no address

## What it finds
InfiniBand ports that are Active and have no LID (0 or 65535), or no LID of a subnet manager. Virtual functions are not
judged: they share the address of a port of the machine beneath.

## Why it matters
An Active port got both from the subnet manager. Without them its state is stale: the subnet manager was replaced or
stopped while the port came up. No packet reaches the port, and connections end with "Got completion with error 12" or
"ibv_modify_qp failed".

## What to type
`sudo sminfo -C HCA -P PORT` queries the subnet manager. If it answers, let the port register again:
`sudo ibportstate -C HCA -P PORT -D 0 PORT reset`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.nccl.hca import active, is_virtual
from ncheck.nccl.hca_ports import problems

NONE = (0, 0xFFFF)


@node_check("NC412", Severity.ERROR, InfinibandFacts, next_step="ticket")
def ib_lid_missing(node: NodeView) -> Iterator[Problem | NotApplicable]:
    ports = [port for port in active(node[InfinibandFacts].ports) if port.link_layer == "InfiniBand"]
    if not ports:
        yield NotApplicable("no Active InfiniBand port")
    own = [port for port in ports if not is_virtual(port)]
    for fault, found in (
        ("Active without a LID", tuple(port for port in own if port.lid in NONE)),
        (
            "Active without a subnet manager",
            tuple(port for port in own if port.lid not in NONE and port.sm_lid in NONE),
        ),
    ):
        fix = "sudo sminfo -C {hca} -P {port}"
        yield from problems({node.name: found} if found else {}, fault, fix, "has no address")
