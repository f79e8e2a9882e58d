"""NCCL_SOCKET_FAMILY: of an interface that was named NCCL takes the first address, IPv4 before IPv6."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from doctor.advice.advice import Advice
from doctor.advice.networks import Network
from doctor.advice.sight import Sight
from doctor.hostlist import fold
from doctor.model.facts import LoadedNcclFacts, NicFacts
from doctor.model.plan import Setting
from doctor.nccl.choice import IFNAME, nccl_choice, releases_of, settings_in_force

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
