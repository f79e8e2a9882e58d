"""NCCL's network plug-in differs between nodes

## What it finds
Nodes on which NCCL, in the job's environment, would load another network plug-in than on the other nodes, or none: what
the dynamic loader finds as libnccl-net.so, or as the name in NCCL_NET_PLUGIN. One that cannot be loaded counts as none;
NC236 says why. Known are aws-ofi-nccl (AWS's EFA), gIB, GPUDirect-TCPX and FasTrak (Google) and nccl-rdma-sharp
(HPC-X). Also reported is a tuner, libnccl-tuner.so or that of the plug-in, that only some nodes have. The files are
read; nothing is loaded. AMD's RCCL gives its plug-ins other names and is not compared.

## Why it matters
Ranks with different networks cannot connect to each other: the job ends with an error or hangs. Where a plug-in is
missing NCCL says nothing and uses its own transports, over TCP many times slower. A tuner chooses the algorithm of each
collective: ranks that choose differently hang.

## What to type
`ldconfig -p | grep libnccl-net; echo $LD_LIBRARY_PATH` on the named nodes and on another one; then install the same
plug-in, or set the same LD_LIBRARY_PATH and NCCL_NET_PLUGIN, on all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import (
    Absent,
    Cluster,
    Inconclusive,
    NotApplicable,
    Problem,
    Severity,
    Unread,
    cluster_check,
    split,
)
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.nccl.net_plugin import NO_PLUGIN, loaded
from ncheck.parity import on_nodes

_LOOK = "ldconfig -p | grep libnccl-; echo $LD_LIBRARY_PATH $NCCL_NET_PLUGIN"


@cluster_check("NC232", Severity.ERROR, LoadedNcclFacts, also=(NetPluginFacts,))
def net_plugin_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    kinds: dict[str, str] = {}
    tuners: dict[str, str] = {}
    shown: dict[str, str] = {}
    for node in cluster:
        nccl, found = node[LoadedNcclFacts], node.maybe(NetPluginFacts)
        if nccl.library != "NCCL":
            yield NotApplicable(f"{nccl.library} names its plug-ins in another way", (node.name,))
        elif isinstance(found, Unread):
            yield Inconclusive(found.reason, (node.name,))
        else:
            facts = NetPluginFacts(None) if isinstance(found, Absent) else found
            plugin = loaded(facts, nccl)
            kinds[node.name] = (plugin.kind or plugin.described) if plugin else "none"
            tuners[node.name] = "a tuner" if facts.tunes else "no tuner"
            shown[node.name] = facts.plugin.path if facts.plugin else "no plug-in"
    if not any(kind != "none" for kind in kinds.values()):
        yield NotApplicable("no network plug-in of NCCL")
        return
    evidence = on_nodes(shown)
    if parted := split(kinds):
        summary = "NCCL's network plug-in differs"
        yield Problem(f"{summary}: {parted.summary()}", _LOOK, evidence, parted.odd, look=True, summary=summary,
                      follows=NO_PLUGIN)  # fmt: skip
    elif parted := split(tuners):
        summary = "NCCL's tuner differs"
        yield Problem(f"{summary}: {parted.summary()}", _LOOK, evidence, parted.odd, look=True, summary=summary)
