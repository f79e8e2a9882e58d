"""nvidia-smi, amd-smi or the GPU driver hangs

## What it finds
Nodes on which nvidia-smi or amd-smi did not finish in time and was killed. What else could not be read of the driver
follows from this: other checks are unknown there. Without persistence mode the driver wakes all GPUs for the first
program that opens them, which takes up to 25 s on a node with eight: nvidia-smi counts as hung only where NVML had
answered, in a second try if need be. Where NVML does not answer within 30 s either, this check is unknown.

## Why it matters
The driver waits for a GPU that does not answer, because it fell off the bus or its firmware hangs. A job that opens
that GPU hangs silently in the same way, and all other ranks with it.

## What to type
`sudo journalctl -k -g NVRM` (AMD: `-g amdgpu`) shows the driver's last messages. Then reboot the node: a process that
hangs in the driver cannot be killed. Where it is unknown: `sudo nvidia-smi -pm 1` keeps the GPUs awake.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.gpu_log import GPU_UNUSABLE
from ncheck.facts.gpus import DRIVER_HANGS, GpuFacts
from ncheck.facts.topology import TopologyFacts


@node_check("NC505", Severity.ERROR, also=(GpuFacts, TopologyFacts), explains=DRIVER_HANGS, hardware=True)
def nvidia_smi_hangs(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    facts = (node.maybe(GpuFacts), node.maybe(TopologyFacts))
    unread = [fact for fact in facts if isinstance(fact, Unread)]
    hung = [fact.reason for fact in unread if fact.hung]
    hung += [fact.hung for fact in facts if isinstance(fact, GpuFacts | TopologyFacts) and fact.hung]
    if hung:
        of_amd = any(fact.hung.startswith("amd-smi") for fact in unread)
        word, tool = ("amdgpu", "amd-smi") if of_amd else ("NVRM", "nvidia-smi")
        yield Problem(
            f"{tool} hangs" + (", and no GPU could be listed" if isinstance(facts[0], Unread) else ""),
            f"sudo journalctl -k -g {word}",
            tuple(hung),
            look=True,
            summary=f"{tool} hangs",
            follows=GPU_UNUSABLE,
        )
    elif len(unread) == len(facts) or any(fact.unanswered for fact in unread):
        yield Inconclusive(unread[0].reason)
    elif all(isinstance(fact, Absent) for fact in facts):
        yield NotApplicable("no NVIDIA GPU and no nvidia-smi")
