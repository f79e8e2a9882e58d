"""NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME: from what the nodes share to one value, or to none that is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote

from doctor.advice.nccl_choice import Choice, choices
from doctor.advice.sight import Sight
from doctor.hostlist import fold
from doctor.model.facts import (
    EnvironmentFacts,
    IdentityFacts,
    InterpreterFacts,
    LoadedNcclFacts,
    NcclPickFacts,
    NicFacts,
)
from doctor.model.plan import Setting
from doctor.parity import gathered
from doctor.subnets import Seat, Seats, apart, common_names, machines, seats, shared, speed

USES_GLOO = frozenset({"torch", "horovod", "paddle"})
Picks = Mapping[str, tuple[Choice, ...]]


@dataclass(frozen=True)
class Network:
    """Where the job's TCP goes. `subnet` is "" where the nodes share none and routers join them."""

    subnet: str
    members: Seats

    @property
    def names(self) -> tuple[str, ...]:
        """The interface names that lead there on every node."""
        return common_names(self.members)

    @property
    def first_names(self) -> frozenset[str]:
        """The name of the first interface there on each node."""
        return frozenset(held[0].interface.name for held in self.members.values())

    @property
    def told(self) -> str:
        return self.subnet or "the default route"


@dataclass(frozen=True)
class Advice:
    """The settings, what could not be decided, and the network that was chosen: None where there is none to choose.

    `per_node`: see LaunchPlan.
    """

    env: Mapping[str, Setting]
    notes: tuple[str, ...] = ()
    network: Network | None = None
    per_node: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)


def advise(sight: Sight) -> Advice:
    """Return the settings of NCCL and gloo for these nodes."""
    if len(sight.nodes) == 1:
        return _nothing("one node alone needs no network between nodes")
    if unread := sight.unread(NicFacts):
        why = f"the interfaces of {fold(unread)} could not be read, so none can be named for all nodes"
        return _nothing(why, tuple(f"{node}: {reason}" for node, reason in unread.items()))
    picks = _picks(sight)
    network = _network(sight, picks)
    if network is None:
        return _nothing("no subnet is common to all nodes: see ncheck explain NC305")
    setting, notes = _nccl(sight, network, picks)
    return Advice({"NCCL_SOCKET_IFNAME": setting, **_gloo(sight, network)}, notes, network)


def _nothing(why: str, evidence: tuple[str, ...] = ()) -> Advice:
    return Advice({"NCCL_SOCKET_IFNAME": Setting(None, why, evidence)})


def _picks(sight: Sight) -> dict[str, tuple[Choice, ...]]:
    """Return what NCCL picks by itself, or by what is set already, on each node."""
    environments, libraries = sight.known(EnvironmentFacts), sight.known(LoadedNcclFacts)
    answers, unset = sight.known(NcclPickFacts), EnvironmentFacts({}, {})
    return {
        node: choices(nics, environments.get(node, unset), libraries.get(node), answers.get(node))
        for node, nics in sight.known(NicFacts).items()
    }


def _network(sight: Sight, picks: Picks) -> Network | None:
    """Choose the subnet: with RDMA one that is right already or has the default route, else the fastest."""
    identities = sight.known(IdentityFacts)
    nodes = machines({node: (nics, identities.get(node)) for node, nics in sight.known(NicFacts).items()})
    found = [Network(subnet, members) for subnet, members in shared(nodes).items()]
    if found:
        rdma = sight.rdma
        return max(found, key=lambda network: _merit(network, picks, rdma=rdma))
    lying = apart(nodes)
    return Network("", {node: _default_seats(nics) for node, nics in nodes.items()}) if lying and lying.routed else None


def _merit(network: Network, picks: Picks, *, rdma: bool) -> tuple[int | bool, ...]:
    right = all(_meets(network, node, choice) for node in network.members for choice in picks[node])
    default = all(any(seat.interface.default_route for seat in held) for held in network.members.values())
    return (right, default, speed(network.members)) if rdma else (speed(network.members), right, default)


def _default_seats(nics: NicFacts) -> tuple[Seat, ...]:
    return tuple(seat for seat in seats(nics) if seat.interface.default_route)


def _nccl(sight: Sight, network: Network, picks: Picks) -> tuple[Setting, tuple[str, ...]]:
    rdma = sight.rdma  # asked once: it looks at every node
    wrong = tuple(node for node in network.members if not _right(network, node, picks[node], rdma=rdma))
    evidence = _evidence(network, picks)
    if not wrong:
        return Setting(None, f"nothing to set: NCCL picks {network.told} on every node as it is", evidence), ()
    astray = gathered({node: _used(picks[node]) for node in wrong})
    uses = ", ".join(f"{names} on {fold(nodes)}" for names, nodes in astray.items())
    reason = f"as it is, NCCL would use {uses}; the job belongs to {network.told}"
    if network.names:
        return Setting(f"={network.names[0]}", reason, evidence), ()
    names = {node: held[0].interface.name for node, held in network.members.items()}
    together = sorted(set(names.values()))
    if _one_each(sight, together):
        return Setting("=" + ",".join(together), f"{reason}; no node has two of these names", evidence), ()
    why = f"{reason}; no one value is right on all nodes: see the notes"
    return Setting(None, why, evidence), _node_by_node(names)


def _node_by_node(names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        f"NCCL_SOCKET_IFNAME on {fold(nodes)}: echo {quote(f'NCCL_SOCKET_IFNAME=={name}')} >> ~/.nccl.conf"
        for name, nodes in gathered(names).items()
    )


def _one_each(sight: Sight, names: list[str]) -> bool:
    """Tell whether no node has two of the names: there the kernel's order would decide, not the list's."""
    owned = ({nic.name for nic in nics.interfaces} for nics in sight.known(NicFacts).values())
    return all(len(held.intersection(names)) == 1 for held in owned)


def _meets(network: Network, node: str, choice: Choice) -> bool:
    return choice.picked is not None and choice.picked[1].ip in {seat.ip for seat in network.members[node]}


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
        f"NCCL picks {picks[node][-1].name or 'none'} ({picks[node][-1].why})"
        for node, held in network.members.items()
    }
    return tuple(f"{line}: {fold(nodes)}" for line, nodes in gathered(lines).items())


def _gloo(sight: Sight, network: Network) -> dict[str, Setting]:
    """Name gloo's interface where a framework that uses it lives and one exact name is right on all nodes."""
    held = {name for python in sight.known(InterpreterFacts).values() for name in python.frameworks}
    if not network.names or not held & USES_GLOO:
        return {}
    name = network.names[0]
    why = f"gloo takes the address of the host's own name, often 127.0.1.1; {name} leads to {network.told} everywhere"
    return {"GLOO_SOCKET_IFNAME": Setting(name, why)}
