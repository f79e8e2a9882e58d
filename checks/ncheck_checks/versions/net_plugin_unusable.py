"""NCCL cannot load its network plug-in

## What it finds
Nodes on which NCCL, in the job's environment, finds no network plug-in although it needs one: there are EFA devices,
which NCCL itself cannot use; NCCL_NET_PLUGIN names a library that the loader does not find; or NCCL_NET names a network
that is not NCCL's own. Also a plug-in that cannot be loaded: a library that it needs, such as libfabric, is not found,
the file is damaged, or its interface (ncclNetPlugin_v8 and so on) is of other releases than this NCCL takes. The files
are read; nothing is loaded.

## Why it matters
NCCL then uses TCP over the ordinary network card, at a tenth of the speed or less, and says so in its INFO lines only:
"NET/Plugin: Could not find: libnccl-net.so". If other nodes have the plug-in, the job hangs. If NCCL_NET names the
plug-in's network, NCCL stops with "network ... not found".

## What to type
`ldconfig -p | grep libnccl-net`, then `ldd /opt/amazon/ofi-nccl/lib/libnccl-net.so`, or the path of the other plug-in,
which shows what it needs. On AWS EFA's installer puts it there:
`export LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib:$LD_LIBRARY_PATH`. If the job's script does that, show it to ncheck:
`ncheck nodes.txt --setup 'export LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib:$LD_LIBRARY_PATH'`. A container needs a copy
of its own that fits its NCCL. On Google's A3 Ultra and A4: `. /usr/local/gib/scripts/set_nccl_env.sh`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import SLOW_NETWORK, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import EfaFacts, NetPluginFacts
from ncheck.nccl.hca import nccl_value
from ncheck.nccl.net_plugin import NO_PLUGIN, why_not_loaded
from ncheck.nccl.settings import release_of

_SUMMARY = "the network plug-in cannot be used"
_FIND = "ldconfig -p | grep libnccl-net; echo $LD_LIBRARY_PATH"


@node_check(
    "NC236", Severity.ERROR, LoadedNcclFacts, NetPluginFacts, also=(EfaFacts, EnvironmentFacts),
    explains=(SLOW_NETWORK, NO_PLUGIN),
)  # fmt: skip
def net_plugin_unusable(node: NodeView) -> Iterator[Problem | NotApplicable]:
    nccl, found = node[LoadedNcclFacts], node[NetPluginFacts]
    if nccl.library != "NCCL":
        yield NotApplicable(f"{nccl.library} names its plug-ins in another way")
        return
    efa, network = node.maybe(EfaFacts), nccl_value(node, "NCCL_NET")
    named, plugin = ",".join(found.named), found.plugin
    fix, evidence = _FIND, tuple[str, ...]()
    if plugin:
        why = why_not_loaded(plugin, release_of(nccl.version))
        fault = f"NCCL cannot load {plugin.described}: {why}" if why else ""
        fix, evidence = f"ldd {quote(plugin.path)}", (plugin.path,)
    elif found.broken:
        fault = f"NCCL cannot load its network plug-in: {'; '.join(found.broken)}"
    elif named:
        fault = f"NCCL_NET_PLUGIN={named}: the loader finds no {' and no '.join(found.not_found)}"
    elif network.lower() not in ("", "ib", "socket"):
        fault = f"NCCL_NET={network}, and NCCL finds no network plug-in"
    elif isinstance(efa, EfaFacts):
        why = "NCCL_NET_PLUGIN is none" if found.off else "NCCL finds no network plug-in"
        fault = f"NCCL uses TCP and not the {len(efa.devices)} EFA devices: {why}"
    else:
        fault = ""
    if fault and not plugin and found.elsewhere:
        fix = f"export LD_LIBRARY_PATH={quote(found.elsewhere[0].rpartition('/')[0])}:$LD_LIBRARY_PATH"
        evidence = tuple(f"{path} is there, and the loader does not look for it there" for path in found.elsewhere)
    if fault:
        yield Problem(fault, fix, evidence, look=not fix.startswith("export"), summary=_SUMMARY)
    elif not plugin:
        yield NotApplicable("no network plug-in is asked for")
