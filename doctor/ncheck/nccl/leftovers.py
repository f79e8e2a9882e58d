"""NCCL's settings that somebody left behind, and what each does to a job. Sources: NCCL's documentation and source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from shlex import quote

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import HcaPort
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.hostlist import fold
from ncheck.model.check import Problem
from ncheck.model.cluster import Cluster
from ncheck.nccl.choice import placed_settings, releases_of
from ncheck.nccl.hca import active, taken
from ncheck.nccl.ifname import Named
from ncheck.parity import nodes_by_value, split
from ncheck.text import sudo_for

# Each node's own by right, or of no weight when they differ.
OWN_BY_RIGHT = frozenset({
    "NCCL_HOSTID", "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_CONF_FILE",
    "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_RAS_ADDR", "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE",
})  # fmt: skip


# 1, 0x1, -1: what strtoll reads at the beginning
_NUMBER = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+))", re.ASCII)


Told = tuple[Named, str]


def settings_of(environment: EnvironmentFacts, nccl: object) -> dict[str, Named]:
    """Return NCCL's settings in force on a node, with where each stands."""
    placed = placed_settings(environment, releases_of(nccl)[-1])
    return {name: Named(name, value, file) for name, (value, file) in placed.items()}


def settings_everywhere(cluster: Cluster) -> dict[str, dict[str, Named]]:
    """Return the same by node; the check is to declare EnvironmentFacts and LoadedNcclFacts."""
    return {node.name: settings_of(node[EnvironmentFacts], node.maybe(LoadedNcclFacts)) for node in cluster}


def is_on(settings: Mapping[str, Named], name: str) -> bool:
    """Tell whether a number other than 0 is set; NCCL takes words for 0."""
    found = _NUMBER.match(settings[name].value) if name in settings else None
    return found is not None and found[1].lower().replace("0x", "").strip("+-0") != ""


def rdma_off(settings: Mapping[str, Named], ports: Iterable[HcaPort]) -> Iterator[Told]:
    """Yield what keeps NCCL off the Active ports, which are there."""
    held = active(ports)
    if is_on(settings, "NCCL_IB_DISABLE"):
        yield settings["NCCL_IB_DISABLE"], "NCCL leaves its InfiniBand and RoCE ports alone, and sends all data by TCP"
    if "NCCL_NET" in settings and settings["NCCL_NET"].value.lower() == "socket":
        yield settings["NCCL_NET"], "all data goes by TCP, past its InfiniBand and RoCE ports"
    if "NCCL_IB_HCA" in settings and held and not taken(settings["NCCL_IB_HCA"].value, held):
        names = ", ".join(port.name for port in held[:4])
        yield settings["NCCL_IB_HCA"], f"it takes none of its Active ports ({names}), and all data goes by TCP"


def peers_off(settings: Mapping[str, Named]) -> Iterator[Told]:
    """Yield what keeps the GPUs of a node from each other."""
    level = settings.get("NCCL_P2P_LEVEL")
    if is_on(settings, "NCCL_P2P_DISABLE"):
        yield settings["NCCL_P2P_DISABLE"], "its GPUs reach each other through main memory, not by NVLink or PCIe"
    elif level and level.value.upper() in ("LOC", "0"):
        yield level, "its GPUs reach each other through main memory, not by NVLink or PCIe"
    if is_on(settings, "NCCL_SHM_DISABLE"):
        yield settings["NCCL_SHM_DISABLE"], "GPUs that have no direct way to each other go out by the network card"


def left_over(settings: Mapping[str, Named], environment: EnvironmentFacts) -> Iterator[Told]:
    """Yield what does harm on any node, whatever the others have."""
    for name, why in _HARM.items():
        if name in settings and (said := why(settings[name].value)):
            yield settings[name], said
    for name in environment.missing_files:
        if name in settings:
            yield settings[name], "there is no such file, and NCCL goes on without what it was to tell"


def _rendezvous(value: str) -> str:
    return "every communicator meets at that one address: jobs of other nodes hang" if len(value) > 1 else ""


def _debug(value: str) -> str:
    return "NCCL writes a line for every call, and slows down" if value.upper() == "TRACE" else ""


def _algorithm(value: str) -> str:
    names = {name.strip().lower() for name in value.split(",")}
    pinned = bool(names) and ":" not in value and not value.startswith("^") and "ring" not in names
    return "collectives that only know Ring have no algorithm left, and stop since NCCL 2.24" if pinned else ""


def _protocol(value: str) -> str:
    names = {name.strip().lower() for name in value.split(",")}
    if ":" in value or value.startswith("^") or "simple" in names:
        return ""
    if "ll128" in names:
        return "LL128 is forced also where the hardware does not keep its promise, and data may be wrong"
    return "LL alone gives half of the bandwidth to large messages" if names == {"ll"} else ""


_HARM: Mapping[str, Callable[[str], str]] = {
    "NCCL_COMM_ID": _rendezvous,
    "NCCL_DEBUG": _debug,
    "NCCL_ALGO": _algorithm,
    "NCCL_PROTO": _protocol,
}


def problems(found: Mapping[str, Iterable[Told]]) -> Iterator[Problem]:
    """Yield one problem for each setting, with the nodes where it stands in the same place."""
    groups: dict[Told, list[str]] = {}
    for node, told in found.items():
        for one in told:
            groups.setdefault(one, []).append(node)
    for (named, why), nodes in groups.items():
        yield Problem(f"{named.told}: {why}", named.set_to(""), nodes=tuple(nodes))


def equal_host_ids(settings: Mapping[str, Mapping[str, Named]], kernels: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the nodes that call themselves one host to NCCL, and are several machines as far as is known."""
    own = {node: held["NCCL_HOSTID"] for node, held in settings.items() if "NCCL_HOSTID" in held}
    for value, nodes in nodes_by_value({node: named.value for node, named in own.items()}).items():
        if len({kernels.get(node, node) for node in nodes}) > 1:
            told = f"NCCL_HOSTID={value} on {fold(nodes)}: NCCL takes them for one machine, and looks for shared memory"
            yield Problem(told, own[nodes[0]].set_to(""), nodes=nodes)


def ignored_lines(environment: EnvironmentFacts) -> Iterator[tuple[str, str, str]]:
    """Yield (file, line, why) for lines that were meant to set something of NCCL's and set nothing that it knows."""
    for path, lines in environment.files.items():
        for line in lines if isinstance(lines, tuple) else ():
            if why := _why_ignored(line):
                yield path, line.strip(), why


def _why_ignored(line: str) -> str:
    name, equals, _ = line.partition("=")
    words = name.split()
    if not words or line.lstrip().startswith("#") or not any(word.startswith("NCCL_") for word in words):
        return ""
    if not equals:
        return "it has no ="
    if words[0] == "export":
        return "NCCL is no shell: it takes export as a part of the name"
    return "NCCL takes the blanks as a part of the name" if name != words[0] else ""


def repaired(path: str) -> str:
    """Return a line that writes such lines as NCCL reads them."""
    change = r"s/^\s*(export\s+)?(NCCL_[A-Z0-9_]+)(\s*=\s*|\s+)/\2=/"
    return f"{sudo_for(path)}sed -i -E {quote(change)} {quote(path)}"


def differing(own: Mapping[str, Mapping[str, Named]]) -> Iterator[Problem]:
    """Yield each variable that is not set alike, with a line for the nodes that are to be brought round."""
    names = dict.fromkeys(name for settings in own.values() for name in settings)
    for name in sorted(name for name in names if name.strip() == name and name not in OWN_BY_RIGHT):
        found = {node: settings[name].value if name in settings else None for node, settings in own.items()}
        if parted := split({node: "not set" if value is None else quote(value) for node, value in found.items()}):
            wanted = own[parted.groups[0][1][0]].get(name)
            fix = _brought_round(own[parted.odd[-1]].get(name), wanted)
            yield Problem(f"{name} differs: {parted.summary()}", fix, nodes=parted.odd)


def _brought_round(odd: Named | None, wanted: Named | None) -> str:
    """Return a line that sets a variable as the others have it."""
    if odd is not None:
        return odd.set_to(wanted.value if wanted else "")
    if wanted is None or not wanted.file or not wanted.file.isprintable():
        return wanted.set_to(wanted.value) if wanted else "env"
    line = quote(f"{wanted.variable}={wanted.value}")
    return f"echo {line} | {sudo_for(wanted.file)}tee -a {quote(wanted.file)}"
