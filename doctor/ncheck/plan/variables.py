"""The variables of NCCL and gloo that select the job's network, each set only where the default would be wrong.

Except in `advise`, clusters here hold only nodes that were logged in to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncheck.facts.environment import IFNAME, EnvironmentFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.names import HostNameFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.launchers import LAUNCHER_TABLE
from ncheck.model.cluster import Cluster
from ncheck.model.plan import Setting
from ncheck.nccl.choice import MOST_ENTRIES, Choice, choices, nccl_choice
from ncheck.nccl.dead_ends import over_tcp
from ncheck.nccl.hca import value_for
from ncheck.nccl.requested_interface import subnet_and_addresses, unusable, why_not_connected
from ncheck.nccl.settings import EXACT_NAMES, GLOO, LINK_STATE_COUNTS, release_of, releases_of, settings_in_force
from ncheck.network.subnets import speed
from ncheck.parity import nodes_by_value
from ncheck.plan.advice import PER_NODE, Advice, commands_to_set, merged, per_node_values
from ncheck.plan.hca import advise_hcas, sort_ports
from ncheck.plan.inputs import (
    each_node_once,
    environments,
    logged_in,
    rdma_everywhere,
    requested_interface,
    unread_reasons,
)
from ncheck.plan.networks import Network, NetworkChoice, choose_network, connectivity

USES_GLOO = frozenset({"torch", "horovod", "paddle"})

FAMILY = "NCCL_SOCKET_FAMILY"
FAMILIES = {4: "AF_INET", 6: "AF_INET6"}

THREADS, SOCKETS = "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"
FAST = 25000  # Mb/s: more than one thread with one socket can fill
_TUNED_BY_NCCL = frozenset({"ena", "gve"})  # for these drivers NCCL uses more by default (NCCL source, net_socket.cc)

NIXL_HOST = "VLLM_NIXL_SIDE_CHANNEL_HOST"

_NAMED = 3  # different choices of NCCL in a reason
Picks = Mapping[str, tuple[Choice, ...]]


def advise(cluster: Cluster, launcher: str = "", program: Sequence[str] = ()) -> Advice:
    """Return the settings of NCCL and gloo for all listed nodes, and of the server that this launcher starts."""
    if len(each_node_once(cluster)) == 1:
        return Advice({IFNAME: Setting(None, "one node alone needs no network between nodes")})
    cluster = logged_in(cluster)
    if unread := unread_reasons(cluster, NicFacts):
        reason = f"the interfaces of {fold(unread)} could not be read, so no interface can be set for all nodes"
        return _undecided(reason, tuple(f"{node}: {why}" for node, why in unread.items()))
    picks = _picks(cluster)
    choice = job_network(cluster, picks)
    if choice.network is None:
        return _undecided(choice.reason, choice.not_used, choice.notes)
    interfaces = _advise_interface(cluster, choice.network, picks, choice.not_used)
    server = _advise_server(cluster, choice.network, launcher, program)
    parts = (
        interfaces,
        advise_family(cluster, choice.network, interfaces),
        _advise_gloo(cluster, choice.network, serves=bool(server.env)),
        advise_hcas(cluster),
        server,
    )
    env = {name: setting for part in parts for name, setting in part.env.items()}
    return Advice(
        {**env, **socket_threads(cluster, choice.network)},
        (*choice.notes, *(note for part in parts for note in part.notes)),
        choice.network,
        merged(*(part.per_node for part in parts)),
    )


def job_network(cluster: Cluster, picks: Picks | None = None) -> NetworkChoice:
    """Return the network of a job on these nodes; `picks`: what NCCL picks on each of them by itself."""
    if name := requested_interface(cluster):
        return _network_of(cluster, name)
    own, rdma = _picks(cluster) if picks is None else picks, over_tcp(cluster) is False
    return choose_network(cluster, lambda network: _rank(network, own, rdma=rdma))


def _undecided(reason: str, evidence: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> Advice:
    return Advice({IFNAME: Setting(None, reason, evidence, decided=False)}, notes)


def _picks(cluster: Cluster) -> dict[str, tuple[Choice, ...]]:
    """Return what NCCL picks on each node with its present settings: by its own answer if there is one."""
    libraries, answers, own = cluster.facts(LoadedNcclFacts), cluster.facts(NcclPickFacts), environments(cluster)
    return {
        node: choices(nics, own[node], libraries.get(node), answers.get(node))
        for node, nics in cluster.facts(NicFacts).items()
    }


def _rank(network: Network, picks: Picks, *, rdma: bool) -> tuple[int | bool, ...]:
    """Rank a network: with RDMA the one that NCCL picks by default, or the default route; otherwise the fastest."""
    picked = all(_picks_address_in(network, node, choice) for node in network.members for choice in picks[node])
    default = all(
        any(address.interface.default_route for address in addresses) for addresses in network.members.values()
    )
    return (picked, default, speed(network.members)) if rdma else (speed(network.members), picked, default)


def _network_of(cluster: Cluster, name: str) -> NetworkChoice:
    """Return the network of the interface that the user requested; None if some node cannot use that interface."""
    nodes = cluster.facts(NicFacts)
    if reasons := unusable(name, nodes):
        where = ", ".join(f"{why} on {fold(owners)}" for why, owners in nodes_by_value(reasons).items())
        return NetworkChoice(None, f"--ifname {name}: {name} {where}; see ncheck explain NC330")
    network = Network(*subnet_and_addresses(name, nodes))
    if why := why_not_connected(name, nodes):
        return NetworkChoice(network, notes=(f"--ifname {name}: {why}; see ncheck explain NC330",))
    state = connectivity(cluster, network)
    return NetworkChoice(network, notes=(f"--ifname {name}: {state.why}",) if state.whole is False else ())


def _advise_interface(cluster: Cluster, network: Network, picks: Picks, not_used: tuple[str, ...]) -> Advice:
    """Set NCCL_SOCKET_IFNAME: to one exact name, a list of exact names, or a separate value on each node."""
    evidence = (*_pick_evidence(network, picks), *not_used)
    if name := requested_interface(cluster):
        reason = f"set by --ifname; it is in {network.label}"
        return Advice({IFNAME: Setting(_exactly(cluster, name), reason, evidence)})
    rdma = over_tcp(cluster) is False
    wrong = [node for node in network.members if not _right_already(network, node, picks[node], rdma=rdma)]
    if not wrong:
        return Advice({IFNAME: _picked_already(cluster, network, picks, evidence)})
    used = nodes_by_value({node: _interfaces_used(picks[node]) for node in wrong})
    reason = f"currently NCCL would use {_some(used)}; the job's network is {network.label}"
    if network.names:
        return Advice({IFNAME: Setting(_exactly(cluster, network.names[0]), reason, evidence)})
    names = {node: addresses[0].interface.name for node, addresses in network.members.items()}
    distinct = sorted(set(names.values()))
    if _one_per_node(cluster, distinct):
        listed = f"{reason}; each node has exactly one of these names"
        return Advice({IFNAME: Setting(_exactly(cluster, ",".join(distinct)), listed, evidence)})
    values = {node: _exactly(cluster, name) for node, name in names.items()}
    release = releases_of(next(iter(cluster.facts(LoadedNcclFacts).values()), None))[-1]
    return Advice(
        {IFNAME: Setting(None, f"{reason}; no single value is right on all nodes: {PER_NODE}", evidence)},
        tuple(commands_to_set(IFNAME, values, environments(cluster), release)),
        per_node=per_node_values(IFNAME, values, reason),
    )


def _some(groups: Mapping[str, Sequence[str]]) -> str:
    """Return "eno1 on n1, eth0 on n[2-3]"; of many, the first ones."""
    named = [f"{name} on {fold(nodes)}" for name, nodes in groups.items()]
    return ", ".join(named[:_NAMED]) + (", ..." if len(named) > _NAMED else "")


def _picked_already(cluster: Cluster, network: Network, picks: Picks, evidence: tuple[str, ...]) -> Setting:
    """Return that nothing is needed, with the interface that NCCL picks, and the value that makes sure of it."""
    names = {node: " or ".join(dict.fromkeys(one.name for one in picks[node])) for node in network.members}
    groups = nodes_by_value(names)
    where = next(iter(groups)) if len(groups) == 1 else f"{_some(groups)}, all in {network.label}"
    distinct = sorted(groups)
    usable = not any(" or " in name for name in distinct) and (len(distinct) == 1 or _one_per_node(cluster, distinct))
    already = any(one.why.startswith(IFNAME) for node in network.members for one in picks[node])
    begin = "set already" if already else "not needed"
    return Setting(
        None, f"{begin}, NCCL picks {where}", evidence, pin=_exactly(cluster, ",".join(distinct)) if usable else ""
    )


def _exactly(cluster: Cluster, names: str) -> str:
    """Return the value that selects these names alone; to an NCCL before 2.5.6 a "=" would be part of a name."""
    releases = [release_of(nccl.version) for nccl in cluster.facts(LoadedNcclFacts).values()]
    return names if any(() < release < EXACT_NAMES for release in releases) else f"={names}"


def _one_per_node(cluster: Cluster, names: list[str]) -> bool:
    """Return whether each node has one of the names: with two, the kernel's order would decide, not the list's."""
    interfaces = ({nic.name for nic in nics.interfaces} for nics in cluster.facts(NicFacts).values())
    return len(names) <= MOST_ENTRIES and all(len(own.intersection(names)) == 1 for own in interfaces)


def _picks_address_in(network: Network, node: str, choice: Choice) -> bool:
    """Return whether NCCL picks an address in the network. An address that no interface has does not count."""
    own = {address.ip for address in network.members[node]}
    return choice.picked is not None and not choice.stray and choice.picked[1].ip in own


def _right_already(network: Network, node: str, alternatives: tuple[Choice, ...], *, rdma: bool) -> bool:
    """Return whether ranks connect in the network and, without RDMA, all data stays in it."""
    inside = {address.interface.name for address in network.members[node]}
    data_inside = all(nic.name in inside for choice in alternatives for nic, _ in choice.used)
    return (rdma or data_inside) and all(_picks_address_in(network, node, choice) for choice in alternatives)


def _interfaces_used(alternatives: tuple[Choice, ...]) -> str:
    return " and ".join(nic.name for nic, _ in alternatives[-1].used) or "no interface"


def _pick_evidence(network: Network, picks: Picks) -> tuple[str, ...]:
    lines = {
        node: f"{'/'.join(address.interface.name for address in addresses)} is in {network.label}; "
        f"NCCL picks {_pick_with_reason(picks[node][-1])}"
        for node, addresses in network.members.items()
    }
    return tuple(f"{line}: {fold(nodes)}" for line, nodes in nodes_by_value(lines).items())


def _pick_with_reason(choice: Choice) -> str:
    return f"{choice.stray or choice.name or 'none'} ({'; '.join((choice.why, *choice.answer))})"


def _advise_server(cluster: Cluster, network: Network, launcher: str, program: Sequence[str]) -> Advice:
    """Set each node's own address for a server that takes, by itself, the one on the route to the internet.

    vLLM: vllm/utils get_ip, docs/serving/parallelism_scaling.md (unique on each node). SGLang: get_local_ip_auto. A
    program that moves its KV cache with NIXL goes by UCX, which reads no variable of NCCL; vLLM's side of it meets
    others on localhost by default (vLLM documentation: features/nixl_connector_usage).
    """
    own_address = LAUNCHER_TABLE[launcher].own_address if launcher in LAUNCHER_TABLE else ""
    if not own_address:
        return Advice({})
    addresses = {node: members[0].ip for node, members in network.members.items()}
    why = f"the node's own address in {network.label}"
    parts = [_for_each_node(own_address, addresses, why)]
    if any("nixl" in word.lower() for word in program):
        hcas = sort_ports(cluster).used if rdma_everywhere(cluster) else {}
        devices = {
            node: value_for(hcas[node]).removeprefix("=") if node in hcas else members[0].interface.name
            for node, members in network.members.items()
        }
        parts.append(_for_each_node("UCX_NET_DEVICES", devices, "NIXL uses UCX, which would try every device"))
        parts += [_for_each_node(NIXL_HOST, addresses, why)] if launcher == "vllm" else []
    env = {name: setting for part in parts for name, setting in part.env.items()}
    return Advice(env, per_node=merged(*(part.per_node for part in parts)))


def _for_each_node(variable: str, values: Mapping[str, str], reason: str) -> Advice:
    """Set one value, or a separate one on each node where they differ."""
    if len(set(values.values())) == 1:
        return Advice({variable: Setting(next(iter(values.values())), reason)})
    return Advice(
        {variable: Setting(None, f"{reason}: {PER_NODE}")}, per_node=per_node_values(variable, values, reason)
    )


def _advise_gloo(cluster: Cluster, network: Network, *, serves: bool) -> Advice:
    """Set GLOO_SOCKET_IFNAME if a framework that uses gloo is installed: one exact name, or a separate one per node.

    vLLM and SGLang (`serves`) always use it; they are often in a container that ncheck does not see.
    """
    installed = {name for python in cluster.facts(InterpreterFacts).values() for name in python.frameworks}
    if not (serves or installed & USES_GLOO):
        return Advice({})
    requested = requested_interface(cluster)
    if not requested and _host_names_resolve_into(cluster, network):
        return Advice({GLOO: Setting(None, f"nothing to set: each hostname resolves to an address in {network.label}")})
    reason = "gloo uses the address that the hostname resolves to, often 127.0.1.1"
    if network.names:
        name = requested or network.names[0]
        return Advice({GLOO: Setting(name, f"{reason}; {name} is in {network.label} on every node")})
    names = {node: addresses[0].interface.name for node, addresses in network.members.items()}
    return Advice(
        {GLOO: Setting(None, f"{reason}; the interfaces in {network.label} have different names: {PER_NODE}")},
        per_node=per_node_values(GLOO, names, f"it is in {network.label}"),
    )


def _host_names_resolve_into(cluster: Cluster, network: Network) -> bool:
    """Return whether every hostname is known to resolve to an address in the network first."""
    first = {node: names.leads_to.addresses[:1] for node, names in cluster.facts(HostNameFacts).items()}
    own = {node: {address.ip for address in addresses} for node, addresses in network.members.items()}
    return all(first.get(node) and first[node][0] in addresses for node, addresses in own.items())


def advise_family(cluster: Cluster, network: Network, interfaces: Advice) -> Advice:
    """Set the address family if NCCL, with its interfaces set, would pick an address outside the network.

    NCCL uses the first address of an interface, IPv4 before IPv6.
    If another address of the same family comes first, no variable helps, and a note explains that.
    """
    common = interfaces.env.get(IFNAME, Setting(None, ""))
    values = {node: interfaces.per_node.get(node, {}).get(IFNAME, common).value for node in network.members}
    named = {node: value for node, value in values.items() if value}
    if not list(_outside(cluster, network, named, {})):
        return Advice({})
    six = any(":" in address.ip for addresses in network.members.values() for address in addresses)
    version = 6 if six else 4
    outside = list(_outside(cluster, network, named, {FAMILY: FAMILIES[version]}))
    if not outside:
        reason = f"{network.label} is IPv{version}, and NCCL would use another address of the same interface"
        return Advice({FAMILY: Setting(FAMILIES[version], reason)})
    first = f"NCCL uses the first address of an interface, and on {fold(outside)} that is not in {network.label}"
    return Advice({}, (f"{first}: no variable can change this",))


def _outside(cluster: Cluster, network: Network, values: Mapping[str, str], family: Mapping[str, str]) -> Iterator[str]:
    """Yield the nodes on which NCCL, with these values, would pick an address outside the network."""
    libraries, nics, own = cluster.facts(LoadedNcclFacts), cluster.facts(NicFacts), environments(cluster)
    for node, value in values.items():
        inside = {address.ip for address in network.members[node]}
        for release in releases_of(libraries.get(node)):
            settings = {**settings_in_force(own[node], release), IFNAME: value, **family, "NCCL_COMM_ID": ""}
            picked = nccl_choice(nics[node], settings, release).picked
            if picked is None or picked[1].ip not in inside:
                yield node
                break


def socket_threads(cluster: Cluster, network: Network) -> dict[str, Setting]:
    """Return NCCL's number of threads and sockets if all data goes over fast TCP and neither variable is set.

    By default NCCL's TCP transport uses one of each, too few for a fast network without RDMA.
    """
    drivers = {address.interface.driver for addresses in network.members.values() for address in addresses}
    known = cluster.facts(EnvironmentFacts).values()
    already_set = {name for environment in known for name in settings_in_force(environment, LINK_STATE_COUNTS)}
    loaded = len(cluster.facts(LoadedNcclFacts)) == len(cluster)
    tcp = over_tcp(cluster)
    rate = speed(network.members)
    if not loaded or not tcp or drivers & _TUNED_BY_NCCL or already_set & {THREADS, SOCKETS} or rate < FAST:
        return {}
    reason = f"all data goes over TCP at {rate // 1000} Gb/s, too fast for one thread with one socket"
    return {THREADS: Setting("4", reason), SOCKETS: Setting("4", reason)}
