"""A GPU has no NVLink where NVSwitches join the others

## What it finds
GPUs without NVLink to some or all other GPUs of their node, although NVSwitches join the GPUs: the matrix then shows
more NVLinks at a GPU than any GPU has. Boards without NVSwitch are not judged, since bridges join pairs only, nor are
GPUs in MIG mode. `ncheck read topo` says the same of a saved matrix.

## Why it matters
NVSwitches join all GPUs of a board. Where one is cut off, CUDA may not start on it ("system not yet initialized"), or
NCCL goes through PCIe there: the whole ring falls from hundreds of GB/s to what the slowest hop carries.

## What to type
`nvidia-smi nvlink -s` shows the links that are inactive, `sudo journalctl -u nvidia-fabricmanager` why. A reset of the
GPUs or a reboot may train them again; otherwise the board needs repair.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.topology import TopologyFacts
from ncheck.topology.judgement import LINK_DOWN, UNEVEN, nvlink_remarks


@node_check("NC508", Severity.ERROR, TopologyFacts, explains=UNEVEN, hardware=True)
def nvlink_missing(node: NodeView) -> Iterator[Problem | NotApplicable]:
    topology = node[TopologyFacts]
    if len(topology.gpus) == 1:
        yield NotApplicable("one GPU")
    for remark in nvlink_remarks(topology):
        if remark.level == "error":
            evidence = (f"read from {topology.source}",)
            summary = "NVLink is missing"
            yield Problem(remark.text, "nvidia-smi nvlink -s", evidence, look=True, summary=summary, follows=LINK_DOWN)
