"""NCCL's network plug-in differs between nodes

## What it finds
Nodes on which NCCL, in the job's environment, would load another network plug-in than on the other nodes, or none: what
the dynamic loader finds as libnccl-net.so, or as the name in NCCL_NET_PLUGIN. Known are aws-ofi-nccl (AWS's EFA), gIB,
GPUDirect-TCPX and FasTrak (Google) and nccl-rdma-sharp (HPC-X). Also reported is a tuner, libnccl-tuner.so or that of
the plug-in, that only some nodes have. The files are read; nothing is loaded.

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
    fold,
    nodes_by_value,
    split,
)
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.nccl.net_plugin import NO_PLUGIN

_LOOK = "ldconfig -p | grep libnccl-; echo $LD_LIBRARY_PATH $NCCL_NET_PLUGIN"


@cluster_check("NC232", Severity.ERROR, LoadedNcclFacts, also=(NetPluginFacts,))
def net_plugin_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    known: dict[str, NetPluginFacts | None] = {}
    for node in cluster:
        found = node.maybe(NetPluginFacts)
        if isinstance(found, Unread):
            yield Inconclusive(found.reason, (node.name,))
        else:
            known[node.name] = None if isinstance(found, Absent) else found
    plugins = {node: one.plugin if one else None for node, one in known.items()}
    if not any(plugins.values()):
        yield NotApplicable("no network plug-in of NCCL")
        return
    kinds = {node: (one.kind or one.described) if one else "none" for node, one in plugins.items()}
    tuners = {node: one.tunes if one else "" for node, one in known.items()}
    places = nodes_by_value({node: one.path if one else "no plug-in" for node, one in plugins.items()})
    evidence = tuple(f"{path} on {fold(nodes)}" for path, nodes in places.items())
    if parted := split(kinds):
        summary = "NCCL's network plug-in differs"
        yield Problem(f"{summary}: {parted.summary()}", _LOOK, evidence, parted.odd, look=True, summary=summary,
                      follows=NO_PLUGIN)  # fmt: skip
    elif parted := split({node: "a tuner" if tuner else "no tuner" for node, tuner in tuners.items()}):
        summary = "NCCL's tuner differs"
        yield Problem(f"{summary}: {parted.summary()}", _LOOK, evidence, parted.odd, look=True, summary=summary)
