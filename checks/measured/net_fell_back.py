"""NCCL did not use the network that it was held to

## What it finds
Steps in which NCCL's own log names another network than NCCL_NET asked for, such as Socket instead of IB, or another
interface or HCA than those of the plan.

## Why it matters
NCCL without its HCAs goes on over TCP, many times slower, and a training job says nothing of it. In the probe the
network is pinned, so that this is a failure and not a slow pass.

## What to type
`NCCL_DEBUG=INFO` shows why an HCA was passed over; `ibstat` shows its ports, `ls -l /dev/infiniband` whether they may
be opened, `ncheck plan nodes.txt --for env` the variables that name the right ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import Moot, NodeView, Problem, Severity, node_check
from doctor.model.facts import ProbeFacts
from doctor.probe.verdicts.fallback import fallen_back, silent_about


@node_check("NC704", Severity.ERROR, ProbeFacts)
def net_fell_back(node: NodeView) -> Iterator[Problem | Moot]:
    found = fallen_back(node[ProbeFacts])
    if found:
        yield Problem(found.told, found.fix, found.evidence)
    elif silent_about(node[ProbeFacts]):
        yield Moot("no step with other nodes has NCCL's word of the network that it used")
