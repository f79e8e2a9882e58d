"""nvidia-smi, or the library behind it, does not come back

## What it finds
Nodes on which a question to the NVIDIA driver (NVML, nvidia-smi) did not end in its time and was ended. What the
driver did not say is unknown in every other check.

## Why it matters
The driver waits for a GPU that does not answer: it fell off the bus, or its firmware is stuck. A job that opens that
GPU hangs in the same way, without a word, and all other ranks with it.

## What to type
`sudo journalctl -k -g NVRM` shows what the driver said last. Then reboot the node: a process stuck in the driver cannot
be ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.topology import TopologyFacts


@node_check("NC505", Severity.ERROR, also=(GpuFacts, TopologyFacts))
def nvidia_smi_hangs(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    asked = (node.maybe(GpuFacts), node.maybe(TopologyFacts))
    unread = [fact for fact in asked if isinstance(fact, Unread)]
    hung = [fact.reason for fact in unread if fact.hung]
    hung += [fact.hung for fact in asked if isinstance(fact, GpuFacts) and fact.hung]
    if hung:
        yield Problem(hung[0], "sudo journalctl -k -g NVRM", tuple(hung[1:]))
    elif len(unread) == len(asked) or any(fact.unanswered for fact in unread):
        yield Inconclusive(unread[0].reason)
    elif all(isinstance(fact, Absent) for fact in asked):
        yield NotApplicable("no NVIDIA GPU and no nvidia-smi")
