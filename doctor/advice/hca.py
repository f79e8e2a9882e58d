"""NCCL_IB_HCA and NCCL_IB_GID_INDEX: only where what NCCL does by itself, all Active ports, would be wrong."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.advice.advice import Advice
from doctor.advice.fabric import Fabric, fabric
from doctor.advice.node_by_node import OWN, lines_to_type, merged, own_values
from doctor.advice.sight import Sight
from doctor.hostlist import fold
from doctor.model.facts import EnvironmentFacts, HcaPort, InfinibandFacts, LoadedNcclFacts
from doctor.model.plan import Setting
from doctor.nccl.choice import LINK_STATE_COUNTS, release_of, settings_in_force
from doctor.nccl.gid import AUTOMATIC_GID, ipv4_index
from doctor.nccl.hca_list import active, listed, taken
from doctor.reasoning.parity import gathered

HCA, GID = "NCCL_IB_HCA", "NCCL_IB_GID_INDEX"


def advise_hcas(sight: Sight) -> Advice:
    """Return the settings of the ports; none at all where not every node has an Active one."""
    if not sight.rdma:
        return Advice({})
    found = fabric(sight)
    if not all(found.kept.values()):  # no port of some node would be left: nothing can be said of what they are for
        return Advice({})
    ports, gids = _ports(sight, found), _gids(sight, found)
    return Advice(
        {**ports.env, **gids.env}, (*ports.notes, *gids.notes), per_node=merged(ports.per_node, gids.per_node)
    )


def _set_already(sight: Sight, variable: str) -> dict[str, str]:
    environments = sight.known(EnvironmentFacts)
    found = {node: settings_in_force(own, LINK_STATE_COUNTS).get(variable, "") for node, own in environments.items()}
    return {node: value for node, value in found.items() if value}


def _ports(sight: Sight, found: Fabric) -> Advice:
    own = _set_already(sight, HCA)
    held = sight.known(InfinibandFacts)
    used = {node: taken(own.get(node, ""), held[node].ports) for node in held}
    if own and all(used.values()):
        return Advice({})  # somebody has chosen, and it leads somewhere
    wrong = [node for node, ports in used.items() if not ports or set(ports) - set(found.kept[node])]
    if not wrong:
        return Advice({})
    evidence = tuple(_left_out(found))
    reason = f"NCCL would use all Active ports on {fold(wrong)}, and not all are the job's"
    values = {node: listed(ports) for node, ports in found.kept.items()}
    together = listed(port for ports in found.kept.values() for port in ports)
    if all(set(taken(together, held[node].ports)) == set(active(found.kept[node])) for node in held):
        return Advice({HCA: Setting(together, reason, evidence)}, evidence)
    release = _releases(sight)[-1] if _releases(sight) else LINK_STATE_COUNTS
    return Advice(
        {HCA: Setting(None, f"{reason}; the names differ: {OWN}", evidence)},
        (*evidence, *lines_to_type(HCA, values, sight.environments, release)),
        per_node=own_values(HCA, values, reason),
    )


def _left_out(found: Fabric) -> list[str]:
    """Say of the Active ports that are not the job's why, ports of one reason on the same nodes together."""
    owners: dict[tuple[str, str], dict[str, None]] = {}
    for node, ports in found.left_out.items():
        for port, why in ports.items():
            owners.setdefault((port.name, why), {})[node] = None
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, why), nodes in owners.items():
        alike.setdefault((why, fold(nodes)), []).append(name)
    return [f"{', '.join(names)} left out on {nodes}: {why}" for (why, nodes), names in alike.items()]


def _releases(sight: Sight) -> list[tuple[int, ...]]:
    return sorted(release_of(one.version) for one in sight.known(LoadedNcclFacts).values())


def _gids(sight: Sight, found: Fabric) -> Advice:
    """Name the GID of RoCE v2 with the IPv4 address to an NCCL that would take the table's first one."""
    known, kept = sight.known(LoadedNcclFacts), found.kept
    old = [node for node in kept if node in known and () < release_of(known[node].version) < AUTOMATIC_GID]
    roce = all(port.link_layer == "Ethernet" for ports in kept.values() for port in ports)
    if not roce or len(old) < len(kept) or _set_already(sight, GID):
        return Advice({})
    indexes = {node: _index(active(ports)) for node, ports in kept.items()}
    version = known[old[0]].version
    if unclear := [node for node, index in indexes.items() if index is None]:
        why = f"NCCL {version} needs RoCE v2's GID index, and on {fold(unclear)} no one index is right for all ports"
        return Advice({GID: Setting(None, f"{why}; NCCL 2.21 finds it by itself", decided=False)}, (f"{GID}: {why}",))
    if set(indexes.values()) == {0}:
        return Advice({})
    return _named(sight, {node: str(index) for node, index in indexes.items()}, version)


def _named(sight: Sight, values: Mapping[str, str], version: str) -> Advice:
    why = f"NCCL {version} takes GID 0 by itself; RoCE v2 with the IPv4 address is at"
    groups = gathered(values)
    if len(groups) == 1:
        index = next(iter(groups))
        return Advice({GID: Setting(index, f"{why} {index}")})
    told = ", ".join(f"{index} on {fold(nodes)}" for index, nodes in groups.items())
    return Advice(
        {GID: Setting(None, f"{why} {told}: {OWN}")},
        tuple(lines_to_type(GID, values, sight.environments, release_of(version))),
        per_node=own_values(GID, values, why),
    )


def _index(ports: tuple[HcaPort, ...]) -> int | None:
    """Return the one index at which all ports have it, None where there is none."""
    found = {ipv4_index(port) for port in ports}
    return found.pop() if len(found) == 1 else None
