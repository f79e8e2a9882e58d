"""NCCL cannot load its network plug-in

## What it finds
Nodes on which NCCL, in the job's environment, finds no network plug-in although it needs one: there are EFA devices,
which NCCL itself cannot use; NCCL_NET_PLUGIN names a library that the loader does not find; or NCCL_NET names a network
that is not NCCL's own. Also HPC-X's plug-in on nodes with EFA, which it cannot use, as in NVIDIA's containers; and one
that cannot be loaded: a library that it needs, such as libfabric, is not found, the file is damaged, or its interface
(ncclNetPlugin_v8 and so on) is of other releases than this NCCL takes. The files are read; nothing is loaded. It is a
warning where the job's own script may still lead to a plug-in that is there, and where NCCL uses InfiniBand or RoCE
without it.

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

from ncheck import SLOW_NETWORK, Fix, NodeView, NotApplicable, Problem, Severity, login_variables, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import OF_INFINIBAND, EfaFacts, NetPlugin, NetPluginFacts
from ncheck.nccl.hca import active, nccl_value
from ncheck.nccl.net_plugin import NO_PLUGIN, why_not_loaded
from ncheck.nccl.settings import release_of, settings_of

_SUMMARY = "the network plug-in cannot be used"
_FIND = "ldconfig -p | grep libnccl-net; echo $LD_LIBRARY_PATH"


@node_check(
    "NC236", Severity.ERROR, LoadedNcclFacts, NetPluginFacts, also=(EfaFacts, EnvironmentFacts, InfinibandFacts),
    explains=(SLOW_NETWORK, NO_PLUGIN),
)  # fmt: skip
def net_plugin_unusable(node: NodeView) -> Iterator[Problem | NotApplicable]:
    library, found = node[LoadedNcclFacts].library, node[NetPluginFacts]
    plugin = found.plugin
    if library != "NCCL":
        yield NotApplicable(f"{library} names its plug-ins in another way")
    elif fault := _fault_of(plugin, node) if plugin else _lacking(found, node):
        evidence = [plugin.path] if plugin else []
        elsewhere = found.elsewhere if not plugin or plugin.kind == OF_INFINIBAND else ()
        evidence += [f"{path} is there, and the loader does not look for it there" for path in elsewhere]
        fix = _to_load(found, node, elsewhere[0].rpartition("/")[0] if elsewhere else "")
        may_be_set_later = elsewhere and not (plugin or found.named or found.off)  # by the job's own script
        yield Problem(
            fault, fix.line, tuple(evidence), look=fix.look, do=fix.do, summary=_SUMMARY,
            severity=Severity.WARNING if may_be_set_later or _does_without(node) else None,
        )  # fmt: skip
    elif not plugin:
        yield NotApplicable("no network plug-in is asked for")


def _to_load(found: NetPluginFacts, node: NodeView, folder: str) -> Fix:
    """Return what leads the loader to a plug-in in this folder, or removes what keeps NCCL from it."""
    if found.off:
        environment = node.maybe(EnvironmentFacts)
        known = settings_of(environment, node[LoadedNcclFacts]) if isinstance(environment, EnvironmentFacts) else {}
        set_here = known.get("NCCL_NET_PLUGIN")
        return set_here.set_to("") if set_here else login_variables.where_set("NCCL_NET_PLUGIN")
    if not folder:
        return Fix(f"ldd {quote(found.plugin.path)}" if found.plugin else _FIND, look=True)
    if found.plugin:  # the loader takes the first that it finds
        return Fix(f"put {quote(folder)} first in LD_LIBRARY_PATH of the job", do=True)
    return Fix(f"echo {quote(folder)} | sudo tee /etc/ld.so.conf.d/nccl-net.conf && sudo ldconfig")


def _does_without(node: NodeView) -> bool:
    """Tell whether NCCL has HCAs of its own to use where a plug-in does not load."""
    hcas = node.maybe(InfinibandFacts)
    own = nccl_value(node, "NCCL_NET").lower() in ("", "ib")
    return own and isinstance(hcas, InfinibandFacts) and bool(active(hcas.ports))


def _fault_of(plugin: NetPlugin, node: NodeView) -> str:
    """Return why NCCL cannot use the plug-in that it finds; "" if nothing speaks against it."""
    efa = node.maybe(EfaFacts)
    if why := why_not_loaded(plugin, release_of(node[LoadedNcclFacts].version)):
        return f"NCCL cannot load {plugin.described}: {why}"
    if plugin.kind == OF_INFINIBAND and isinstance(efa, EfaFacts):
        return f"NCCL loads {plugin.described}, which cannot use {_named(efa)}"
    return ""


def _lacking(found: NetPluginFacts, node: NodeView) -> str:
    """Return what asks for a plug-in where NCCL finds none; "" if nothing does."""
    efa, network = node.maybe(EfaFacts), nccl_value(node, "NCCL_NET")
    if found.broken:
        return f"NCCL cannot load its network plug-in: {'; '.join(found.broken)}"
    if found.named:
        return f"NCCL_NET_PLUGIN={','.join(found.named)}: the loader finds no {' and no '.join(found.not_found)}"
    if network.lower() not in ("", "ib", "socket"):
        return f"NCCL_NET={network}, and NCCL finds no network plug-in"
    if isinstance(efa, EfaFacts):
        why = "NCCL_NET_PLUGIN is none" if found.off else "NCCL finds no network plug-in"
        return f"NCCL uses TCP and not {_named(efa)}: {why}"
    return ""


def _named(efa: EfaFacts) -> str:
    return f"the {len(efa.devices)} EFA devices" if len(efa.devices) > 1 else f"the EFA device {efa.devices[0]}"
