"""The version of NCCL's network plug-in differs between nodes

## What it finds
Nodes whose aws-ofi-nccl, gIB or other network plug-in has another version than on the other nodes. Where a plug-in's
file does not say its version, the linker's mark of the file (build ID) is compared.

## Why it matters
Plug-ins of two releases may use other protocols, message sizes or tuning tables: the job hangs in its first collective,
or is slow on these nodes only.

## What to type
`ldconfig -p | grep libnccl-net` and `echo $LD_LIBRARY_PATH` show which copy is loaded. Install the majority's release
on the named nodes, on AWS by the same release of EFA's installer, or load the same copy by LD_LIBRARY_PATH.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, nodes_by_value, split
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.parity import on_nodes


@cluster_check("NC233", Severity.WARNING, NetPluginFacts)
def net_plugin_version_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    plugins = {node: own.plugin for node, own in cluster.facts(NetPluginFacts).items() if own.plugin}
    kinds = nodes_by_value({node: plugin.kind for node, plugin in plugins.items()})
    with_release = {node for node, plugin in plugins.items() if plugin.release}
    if others := tuple(node for node in cluster.facts(NetPluginFacts) if node not in with_release):
        yield NotApplicable("no network plug-in, or one that has neither a version nor a build ID", others)
    for kind, nodes in kinds.items():
        versions = {node: plugins[node].release for node in nodes if node in with_release}
        if parted := split(versions):
            evidence = on_nodes({node: f"{plugins[node].path}: {version}" for node, version in versions.items()})
            summary = f"{kind or 'the network plug-in'} differs"
            fix = f"ls -l {quote(plugins[parted.odd[0]].path)}"
            yield Problem(f"{summary}: {parted.summary()}", fix, evidence, parted.odd, look=True, summary=summary)
