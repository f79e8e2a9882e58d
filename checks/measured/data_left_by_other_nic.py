"""Data left by another NIC than the plan's

## What it finds
Nodes whose interfaces and HCA ports of the plan carried less than half of what left the node during an all-reduce,
while others carried the rest: by the kernel's own counters, before and after. The cards beneath a bond, a VLAN or a
bridge of the plan count as the plan's.

## Why it matters
The job runs over a management network or a single rail, many times slower than it could, and no error says so.

## What to type
`ncheck plan nodes.txt --for env` gives the variables that name the plan's interfaces; a route that prefers another card
shows in `ip route get ADDRESS` on the node that is named.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import Moot, NodeView, Problem, Severity, node_check
from doctor.model.facts import NicFacts, ProbeFacts
from doctor.probe.verdicts.traffic import strayed, untold


@node_check("NC703", Severity.ERROR, ProbeFacts, NicFacts)
def data_left_by_other_nic(node: NodeView) -> Iterator[Problem | Moot]:
    found = strayed(node[ProbeFacts], node[NicFacts])
    if found:
        yield Problem(found.told, "ncheck plan nodes.txt --for env", found.evidence)
    elif why := untold(node[ProbeFacts]):
        yield Moot(why)
