"""Which network plug-in NCCL loads, and why it cannot load one that it finds."""

from __future__ import annotations

from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPlugin, NetPluginFacts
from ncheck.nccl.settings import Release, release_of

NO_PLUGIN = "missing plug-in"  # what net-plugin-unusable explains: that a node has another network than the others

# From this release on: the oldest and the newest version of ncclNetPlugin_v* that NCCL looks for (NCCL source:
# net.cc, since 2.26 plugin/net.cc).
_INTERFACES = (
    ((2, 12), 4, 5), ((2, 13), 4, 6), ((2, 19), 5, 7), ((2, 20), 5, 8), ((2, 24), 5, 9), ((2, 26), 6, 10),
    ((2, 28), 6, 11), ((2, 30), 6, 12),
)  # fmt: skip
_NEXT = (2, 31)  # of which it is not known what is the newest


def loaded(found: NetPluginFacts, nccl: LoadedNcclFacts | None) -> NetPlugin | None:
    """Return the plug-in that carries the data; None where NCCL uses its own networks. AMD's RCCL looks for files of
    other names. `nccl` is None if it is not known.
    """
    if not found.plugin or (nccl and nccl.library != "NCCL"):
        return None
    return None if why_not_loaded(found.plugin, release_of(nccl.version) if nccl else ()) else found.plugin


def why_not_loaded(plugin: NetPlugin, release: Release) -> str:
    """Return why NCCL of this release, () if it is unknown, cannot load a plug-in; "" if nothing speaks against it."""
    if plugin.missing:
        return f"the loader does not find {', '.join(plugin.missing)}, which it needs"
    known = next(((least, most) for since, least, most in reversed(_INTERFACES) if since <= release), None)
    if not known or not plugin.net:
        return ""
    least, most = known
    if max(plugin.net) < least or (min(plugin.net) > most and release < _NEXT):
        own = ", ".join(f"v{number}" for number in plugin.net)
        return f"it has NCCL's network interface {own}, and this NCCL takes v{least} to v{most}"
    return ""
