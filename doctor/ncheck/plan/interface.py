"""NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME: from what the nodes share to one value, or to none that is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck.facts.environment import IFNAME, EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.names import HostNameFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.model.plan import Setting
from ncheck.nccl.choice import (
    LINK_STATE_COUNTS,
    MOST_ENTRIES,
    Choice,
    choices,
    nccl_choice,
    releases_of,
    settings_in_force,
)
from ncheck.nccl.ifname import GLOO
from ncheck.nccl.named_interface import astray, lame, where
from ncheck.network.subnets import speed
from ncheck.parity import nodes_by_value
from ncheck.plan.advice import Advice
from ncheck.plan.hca import advise_hcas
from ncheck.plan.networks import Chosen, Network, choose, reached
from ncheck.plan.node_by_node import OWN, lines_to_type, merged, own_values
from ncheck.plan.sight import Sight

USES_GLOO = frozenset({"torch", "horovod", "paddle"})


Picks = Mapping[str, tuple[Choice, ...]]


def advise(sight: Sight) -> Advice:
    """Return the settings of NCCL and gloo for these nodes."""
    if len(sight.nodes) == 1:
        return Advice({IFNAME: Setting(None, "one node alone needs no network between nodes")})
    if unread := sight.unread(NicFacts):
        why = f"the interfaces of {fold(unread)} could not be read, so none can be named for all nodes"
        return _undecided(why, tuple(f"{node}: {reason}" for node, reason in unread.items()))
    picks = _picks(sight)
    chosen = _as_told(sight, sight.ifname) if sight.ifname else choose(sight, lambda one: _merit(sight, one, picks))
    if chosen.network is None:
        return _undecided(chosen.why, chosen.left_out, chosen.notes)
    interfaces = _nccl(sight, chosen.network, picks, chosen.left_out)
    family = advise_family(sight, chosen.network, interfaces)
    found = (interfaces, family, _gloo(sight, chosen.network), advise_hcas(sight))
    return Advice(
        {**{name: one for part in found for name, one in part.env.items()}, **socket_threads(sight, chosen.network)},
        (*chosen.notes, *(note for part in found for note in part.notes)),
        chosen.network,
        merged(*(part.per_node for part in found)),
    )


def _undecided(why: str, evidence: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> Advice:
    return Advice({IFNAME: Setting(None, why, evidence, decided=False)}, notes)


def _picks(sight: Sight) -> dict[str, tuple[Choice, ...]]:
    """Return what NCCL picks by itself, or by what is set already, on each node: its own answer where there is one."""
    libraries, answers = sight.known(LoadedNcclFacts), sight.known(NcclPickFacts)
    return {
        node: choices(nics, sight.environments[node], libraries.get(node), answers.get(node))
        for node, nics in sight.known(NicFacts).items()
    }


def _merit(sight: Sight, network: Network, picks: Picks) -> tuple[int | bool, ...]:
    """Weigh a network: with RDMA it is best right already or with the default route, else the fastest."""
    right = all(_meets(network, node, choice) for node in network.members for choice in picks[node])
    default = all(any(seat.interface.default_route for seat in held) for held in network.members.values())
    return (right, default, speed(network.members)) if sight.rdma else (speed(network.members), right, default)


def _as_told(sight: Sight, name: str) -> Chosen:
    """Return the network that the named interface leads to; None where some node has no use for that name."""
    nodes = sight.known(NicFacts)
    if troubles := lame(name, nodes):
        told = ", ".join(f"{why} on {fold(owners)}" for why, owners in nodes_by_value(troubles).items())
        return Chosen(None, f"--ifname {name}: {name} {told}; see ncheck explain NC330")
    network = Network(*where(name, nodes))
    if why := astray(name, nodes):
        return Chosen(network, notes=(f"--ifname {name}: {why}; see ncheck explain NC330",))
    state = reached(sight, network)
    return Chosen(network, notes=(f"--ifname {name}: {state.why}",) if state.whole is False else ())


def _nccl(sight: Sight, network: Network, picks: Picks, left_out: tuple[str, ...]) -> Advice:
    evidence = (*_evidence(network, picks), *left_out)
    if sight.ifname:
        return Advice({IFNAME: Setting(f"={sight.ifname}", f"--ifname names it; it leads to {network.told}", evidence)})
    rdma = sight.rdma  # asked once: it looks at every node
    wrong = tuple(node for node in network.members if not _right(network, node, picks[node], rdma=rdma))
    if not wrong:
        why = f"nothing to set: NCCL picks {network.told} on every node as it is"
        return Advice({IFNAME: Setting(None, why, evidence)})
    return _named(sight, network, f"{_uses(wrong, picks)}; the job belongs to {network.told}", evidence)


def _uses(wrong: tuple[str, ...], picks: Picks) -> str:
    used = nodes_by_value({node: _used(picks[node]) for node in wrong})
    return "as it is, NCCL would use " + ", ".join(f"{names} on {fold(nodes)}" for names, nodes in used.items())


def _named(sight: Sight, network: Network, reason: str, evidence: tuple[str, ...]) -> Advice:
    """Name the interface: by one exact name, by a list of exact names, or by a value of each node's own."""
    if network.names:
        return Advice({IFNAME: Setting(f"={network.names[0]}", reason, evidence)})
    names = {node: held[0].interface.name for node, held in network.members.items()}
    together = sorted(set(names.values()))
    if _one_each(sight, together):
        listed = f"{reason}; no node has two of these names"
        return Advice({IFNAME: Setting("=" + ",".join(together), listed, evidence)})
    values = {node: f"={name}" for node, name in names.items()}
    return Advice(
        {IFNAME: Setting(None, f"{reason}; no one value is right on all nodes: {OWN}", evidence)},
        _how(sight, values),
        per_node=own_values(IFNAME, values, reason),
    )


def _how(sight: Sight, values: Mapping[str, str]) -> tuple[str, ...]:
    """Say how the values get into a file of each machine, for a job that the plan's line does not start."""
    release = releases_of(next(iter(sight.known(LoadedNcclFacts).values()), None))[-1]
    return tuple(lines_to_type(IFNAME, values, sight.environments, release))


def _one_each(sight: Sight, names: list[str]) -> bool:
    """Tell whether no node has two of the names: there the kernel's order would decide, not the list's."""
    owned = ({nic.name for nic in nics.interfaces} for nics in sight.known(NicFacts).values())
    return len(names) <= MOST_ENTRIES and all(len(held.intersection(names)) == 1 for held in owned)


def _meets(network: Network, node: str, choice: Choice) -> bool:
    """Tell whether NCCL picks an address of the network; one that no interface was seen to have is none."""
    held = {seat.ip for seat in network.members[node]}
    return choice.picked is not None and not choice.stray and choice.picked[1].ip in held


def _right(network: Network, node: str, found: tuple[Choice, ...], *, rdma: bool) -> bool:
    """Tell whether ranks meet in the network and, without RDMA, data goes there and nowhere else."""
    inside = {seat.interface.name for seat in network.members[node]}
    within = all(nic.name in inside for choice in found for nic in choice.used)
    return (rdma or within) and all(_meets(network, node, choice) for choice in found)


def _used(found: tuple[Choice, ...]) -> str:
    return " and ".join(nic.name for nic in found[-1].used) or "no interface"


def _evidence(network: Network, picks: Picks) -> tuple[str, ...]:
    lines = {
        node: f"{'/'.join(seat.interface.name for seat in held)} leads to {network.told}; "
        f"NCCL picks {_told(picks[node][-1])}"
        for node, held in network.members.items()
    }
    return tuple(f"{line}: {fold(nodes)}" for line, nodes in nodes_by_value(lines).items())


def _told(choice: Choice) -> str:
    return f"{choice.stray or choice.name or 'none'} ({'; '.join((choice.why, *choice.answer))})"


def _gloo(sight: Sight, network: Network) -> Advice:
    """Name gloo's interface where a framework that uses it lives: one exact name, each node's own where they differ."""
    held = {name for python in sight.known(InterpreterFacts).values() for name in python.frameworks}
    if not held & USES_GLOO:
        return Advice({})
    if _gloo_is_right(sight, network):
        return Advice({GLOO: Setting(None, f"nothing to set: each host's own name leads to {network.told} as it is")})
    why = "gloo takes the address of the host's own name, often 127.0.1.1"
    if network.names:
        name = sight.ifname or network.names[0]
        return Advice({GLOO: Setting(name, f"{why}; {name} leads to {network.told} everywhere")})
    names = {node: seats[0].interface.name for node, seats in network.members.items()}
    return Advice(
        {GLOO: Setting(None, f"{why}; the names that lead to {network.told} differ: {OWN}")},
        per_node=own_values(GLOO, names, f"it leads to {network.told}"),
    )


def _gloo_is_right(sight: Sight, network: Network) -> bool:
    """Tell whether every host's own name is known to lead into the network first. Where it was not asked for, no."""
    known = {node: names.leads_to.addresses[:1] for node, names in sight.known(HostNameFacts).items()}
    seats = {node: {seat.ip for seat in held} for node, held in network.members.items()}
    return not sight.ifname and all(known.get(node) and known[node][0] in held for node, held in seats.items())


FAMILY = "NCCL_SOCKET_FAMILY"


FAMILIES = {4: "AF_INET", 6: "AF_INET6"}


def advise_family(sight: Sight, network: Network, interfaces: Advice) -> Advice:
    """Return the family that leads NCCL into the network by the interfaces that it was told; none where it gets there.

    Where another address of the same family comes first, no variable does it, and a note says so.
    """
    named = interfaces.env.get(IFNAME, Setting(None, ""))
    values = {node: interfaces.per_node.get(node, {}).get(IFNAME, named).value for node in network.members}
    told = {node: value for node, value in values.items() if value}
    if not list(_astray(sight, network, told, {})):
        return Advice({})
    version = 6 if any(":" in seat.ip for held in network.members.values() for seat in held) else 4
    found = {FAMILY: FAMILIES[version]}
    if not (astray := list(_astray(sight, network, told, found))):
        why = f"{network.told} is IPv{version}, and NCCL would take another address of the same interface"
        return Advice({FAMILY: Setting(FAMILIES[version], why)})
    note = f"NCCL takes the first address of an interface, and on {fold(astray)} that is not the one in {network.told}"
    return Advice({}, (f"{note}: no variable leads it there",))


def _astray(sight: Sight, network: Network, values: Mapping[str, str], family: Mapping[str, str]) -> Iterator[str]:
    """Yield the nodes on which NCCL would by these values pick an address outside the network."""
    libraries = sight.known(LoadedNcclFacts)
    for node, value in values.items():
        held, nics = {seat.ip for seat in network.members[node]}, sight.known(NicFacts)[node]
        for release in releases_of(libraries.get(node)):
            own = settings_in_force(sight.environments[node], release)
            settings = {**own, IFNAME: value, **family, "NCCL_COMM_ID": ""}
            picked = nccl_choice(nics, settings, release).picked
            if picked is None or picked[1].ip not in held:
                yield node
                break


THREADS, SOCKETS = "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"


FAST = 25000  # Mb/s: what one thread with one socket does not fill


_KNOWN_TO_NCCL = frozenset({"ena", "gve"})  # there it takes more by itself (NCCL source, net_socket.cc)


def socket_threads(sight: Sight, network: Network) -> dict[str, Setting]:
    """Return both variables where all data goes over fast TCP, and nobody has set either."""
    cards = {seat.interface.driver for held in network.members.values() for seat in held}
    environments = sight.known(EnvironmentFacts).values()
    own = {name for environment in environments for name in settings_in_force(environment, LINK_STATE_COUNTS)}
    loaded = len(sight.known(LoadedNcclFacts)) == len(sight.reached)
    tcp = not sight.rdma and not sight.unread(InfinibandFacts)
    if not loaded or not tcp or cards & _KNOWN_TO_NCCL or own & {THREADS, SOCKETS} or speed(network.members) < FAST:
        return {}
    rate = speed(network.members) // 1000
    why = f"all data goes by TCP at {rate} Gb/s, for which one thread with one socket is too slow"
    return {THREADS: Setting("4", why), SOCKETS: Setting("4", why)}
