"""The libfabric of NCCL's network plug-in differs between nodes

## What it finds
Nodes on which the loader gives aws-ofi-nccl another release of libfabric than on the other nodes: that of EFA's
installer, of the distribution, of conda or of an MPI. The release is read from libfabric.pc beside the library, or from
the name of its file.

## Why it matters
libfabric holds the EFA provider, which sends the job's data. Releases differ in what they demand of the driver and of
the plug-in, and in the protocol between nodes: NCCL prints "NET/OFI Couldn't open a fabric provider", hangs, or uses
TCP on these nodes.

## What to type
`ldconfig -p | grep libfabric` and `echo $LD_LIBRARY_PATH` on the named nodes; `fi_info --version`, which lies in
/opt/amazon/efa/bin, prints the release. Install the same one of EFA's installer on all nodes, and take other copies of
libfabric out of LD_LIBRARY_PATH.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, split
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.parity import on_nodes

_LOOK = "ldconfig -p | grep libfabric; echo $LD_LIBRARY_PATH"


@cluster_check("NC234", Severity.WARNING, NetPluginFacts)
def libfabric_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    plugins = {node: own.plugin for node, own in cluster.facts(NetPluginFacts).items()}
    copies = {node: one.libfabric for node, one in plugins.items() if one and one.libfabric and one.libfabric.version}
    if others := tuple(node for node in plugins if node not in copies):
        yield NotApplicable("no network plug-in that uses libfabric, or a libfabric whose version is not known", others)
    if parted := split({node: copy.version for node, copy in copies.items()}):
        evidence = on_nodes({node: f"{copy.path}: {copy.version}" for node, copy in copies.items()})
        summary = "libfabric differs"
        yield Problem(f"{summary}: {parted.summary()}", _LOOK, evidence, parted.odd, look=True, summary=summary)
