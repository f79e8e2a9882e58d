"""A GPU has no NIC near it, although the other GPUs have one

## What it finds
GPUs whose nearest RDMA NIC is beyond their host bridge (NODE or SYS), on nodes where most GPUs have a NIC within it and
each such NIC serves two GPUs at most. Nodes whose NICs are all at one processor, and virtual machines that hide where
devices are, are not judged. `ncheck read topo` says the same of a saved matrix.

## Why it matters
Such a board has a NIC for each GPU or for each two (rails). Data of the named GPU crosses a host bridge or the link
between the processors, where GPUDirect RDMA is slow or off, or it goes through another GPU's NIC. The NIC beside it is
missing, or a card is in a wrong slot.

## What to type
`nvidia-smi topo -m` shows the paths, `lspci -tv` the slots; compare with a healthy node.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.topology import TopologyFacts
from ncheck.topology.judgement import rail_remarks


@node_check("NC510", Severity.WARNING, TopologyFacts)
def nic_far_from_gpu(node: NodeView) -> Iterator[Problem | NotApplicable]:
    topology = node[TopologyFacts]
    if not topology.nics:
        yield NotApplicable("no InfiniBand or RoCE device")
    for remark in rail_remarks(topology):
        if remark.level == "warning":
            evidence = (f"read from {topology.source}",)
            yield Problem(remark.text, "lspci -tv", evidence, look=True, summary="a GPU has no NIC near it")
