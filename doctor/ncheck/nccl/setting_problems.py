"""NCCL settings that harm a job, and lines that set nothing. Sources: NCCL's documentation and source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from shlex import quote

from ncheck import login_variables
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import HcaPort
from ncheck.hostlist import fold
from ncheck.model.check import Fix, Problem
from ncheck.nccl.hca import active, selected
from ncheck.nccl.settings import OWN, PlacedSetting, is_on
from ncheck.parity import nodes_by_value, split
from ncheck.text import sudo_for

# Settings that may differ between nodes: each node needs its own, or the difference has little effect.
MAY_DIFFER = frozenset({
    "NCCL_HOSTID", "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_CONF_FILE",
    "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_RAS_ADDR", "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE",
})  # fmt: skip

Effect = tuple[PlacedSetting, str]

_SHOWN = 24  # characters of a value in a headline


def rdma_off(settings: Mapping[str, PlacedSetting], ports: Iterable[HcaPort]) -> Iterator[Effect]:
    """Yield the settings that keep NCCL from using the Active ports."""
    usable = active(ports)
    if is_on(settings, "NCCL_IB_DISABLE"):
        yield settings["NCCL_IB_DISABLE"], "NCCL ignores its InfiniBand and RoCE ports and sends all data over TCP"
    if "NCCL_NET" in settings and settings["NCCL_NET"].value.lower() == "socket":
        yield settings["NCCL_NET"], "NCCL sends all data over TCP instead of its InfiniBand and RoCE ports"
    if "NCCL_IB_HCA" in settings and usable and not selected(settings["NCCL_IB_HCA"].value, usable):
        names = ", ".join(port.name for port in usable[:4])
        yield settings["NCCL_IB_HCA"], f"it selects none of the Active ports ({names}), and all data goes over TCP"


def peers_off(settings: Mapping[str, PlacedSetting]) -> Iterator[Effect]:
    """Yield the settings that keep the GPUs of a node from direct access to each other."""
    level = settings.get("NCCL_P2P_LEVEL")
    if is_on(settings, "NCCL_P2P_DISABLE"):
        yield settings["NCCL_P2P_DISABLE"], "its GPUs exchange data through main memory, not over NVLink or PCIe"
    elif level and level.value.upper() in ("LOC", "0"):
        yield level, "its GPUs exchange data through main memory, not over NVLink or PCIe"
    if is_on(settings, "NCCL_SHM_DISABLE"):
        yield settings["NCCL_SHM_DISABLE"], "GPUs without direct access to each other use the network card"


def harmful(settings: Mapping[str, PlacedSetting], environment: EnvironmentFacts) -> Iterator[Effect]:
    """Yield the settings that harm a job on any node, whatever the other nodes have."""
    for name, effect_of in _HARM.items():
        if name in settings and (effect := effect_of(settings[name].value)):
            yield settings[name], effect
    for name in environment.missing_files:
        if name in settings:
            yield settings[name], "the file does not exist, and NCCL ignores the setting"


def _rendezvous(value: str) -> str:
    return "every communicator connects to this one address: jobs on other nodes hang" if len(value) > 1 else ""


def _debug(value: str) -> str:
    return "NCCL logs every call, which slows it down" if value.upper() == "TRACE" else ""


def _algorithm(value: str) -> str:
    names = {name.strip().lower() for name in value.split(",")}
    pinned = bool(names) and ":" not in value and not value.startswith("^") and "ring" not in names
    return "collectives that only support Ring have no algorithm left, and fail since NCCL 2.24" if pinned else ""


def _protocol(value: str) -> str:
    names = {name.strip().lower() for name in value.split(",")}
    if ":" in value or value.startswith("^") or "simple" in names:
        return ""
    if "ll128" in names:
        return "LL128 is also used on hardware that does not support it, and data may be corrupted"
    return "LL alone halves the bandwidth of large messages" if names == {"ll"} else ""


_HARM: Mapping[str, Callable[[str], str]] = {
    "NCCL_COMM_ID": _rendezvous,
    "NCCL_DEBUG": _debug,
    "NCCL_ALGO": _algorithm,
    "NCCL_PROTO": _protocol,
}


def problems(effects: Mapping[str, Iterable[Effect]]) -> Iterator[Problem]:
    """Yield one problem for each setting and place, with its nodes."""
    groups: dict[Effect, list[str]] = {}
    for node, own in effects.items():
        for effect in own:
            groups.setdefault(effect, []).append(node)
    for (setting, harm), nodes in groups.items():
        summary, fix = f"{setting.variable}={setting.value[:_SHOWN]} is set", setting.set_to("")
        message = f"{setting.described}: {harm}"
        yield Problem(message, fix.line, nodes=tuple(nodes), look=fix.look, summary=summary)


def equal_host_ids(
    settings: Mapping[str, Mapping[str, PlacedSetting]], kernels: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield the nodes that have the same NCCL_HOSTID although, as far as known, they are different machines."""
    own = {node: values["NCCL_HOSTID"] for node, values in settings.items() if "NCCL_HOSTID" in values}
    for value, nodes in nodes_by_value({node: setting.value for node, setting in own.items()}).items():
        if len({kernels.get(node, node) for node in nodes}) > 1:
            message = f"NCCL_HOSTID={value} on {fold(nodes)}: NCCL treats them as one machine and tries shared memory"
            fix = own[nodes[0]].set_to("")
            yield Problem(message, fix.line, nodes=nodes, look=fix.look)


def ignored_lines(environment: EnvironmentFacts) -> Iterator[tuple[str, str, str]]:
    """Yield (file, line, reason) for lines that should set an NCCL variable and set none that NCCL knows."""
    for path, lines in environment.files.items():
        for line in lines if isinstance(lines, tuple) else ():
            if reason := _why_ignored(line):
                yield path, line.strip(), reason


def _why_ignored(line: str) -> str:
    name, equals, _ = line.partition("=")
    words = name.split()
    if not words or line.lstrip().startswith("#") or not any(word.startswith(OWN) for word in words):
        return ""
    if not equals:
        return "it has no ="
    if words[0] == "export":
        return "NCCL is no shell: export counts as part of the name"
    return "the blanks count as part of the name" if name != words[0] else ""


def command_to_repair(path: str) -> str:
    """Return a command that rewrites such lines in the form that NCCL reads."""
    change = r"s/^\s*(export\s+)?([NR]CCL_[A-Z0-9_]+)(\s*=\s*|\s+)/\2=/"
    return f"{sudo_for(path)}sed -i -E {quote(change)} {quote(path)}"


def differing(settings: Mapping[str, Mapping[str, PlacedSetting]]) -> Iterator[Problem]:
    """Yield each variable that differs between nodes, with a command for the nodes that should change it."""
    names = dict.fromkeys(name for own in settings.values() for name in own)
    for name in sorted(name for name in names if name.strip() == name and name not in MAY_DIFFER):
        values = {node: quote(own[name].value) if name in own else "not set" for node, own in settings.items()}
        if parted := split(values):
            wanted = settings[parted.groups[0][1][0]].get(name)
            fix = _aligned(settings[parted.odd[-1]].get(name), wanted)
            message, summary = f"{name} differs: {parted.summary()}", f"{name} differs"
            yield Problem(message, fix.line, nodes=parted.odd, look=fix.look, summary=summary)


def _aligned(odd: PlacedSetting | None, wanted: PlacedSetting | None) -> Fix:
    """Return the command that sets a variable as the other nodes have it."""
    if odd is not None:
        return odd.set_to(wanted.value if wanted else "")
    if wanted is None or not (wanted.file or wanted.variable.startswith(OWN)):
        return login_variables.where_set(wanted.variable) if wanted else Fix("env", look=True)
    line, file = quote(f"{wanted.variable}={wanted.value}"), wanted.file or wanted.machine_file
    return Fix(f"echo {line} | {sudo_for(file)}tee -a {quote(file)}")
