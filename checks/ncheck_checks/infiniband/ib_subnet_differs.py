"""InfiniBand ports are in different subnets

## What it finds
Active InfiniBand ports that NCCL uses whose subnet differs from that of the same port on other nodes: another subnet
prefix (the first half of GID 0), or another subnet manager (the LID in "SM lid"). If nodes name their HCAs differently,
only nodes with all ports in one subnet are compared. Ports of one node may be in different subnets: rails often are.
Ports that InfiniBand routers reach (GID 1 has an FLID) are not compared.

## Why it matters
NCCL connects the same port of each pair of nodes. Ports of different subnets have no path to each other without an
InfiniBand router: the connection is set up over TCP, then ends with "Got completion with error 12" (retries exceeded)
or "ibv_modify_qp failed with Connection timed out". Common causes: a cable in the wrong switch, two subnet managers.

## What to type
`sudo iblinkinfo` on the named nodes, and with `-C HCA -P PORT` for one port, shows the switch behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.hcas import HcaFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.hca import is_routed, ports_of_job, subnet_prefix
from ncheck.nccl.hca_ports import differing, only_one


@cluster_check(
    "NC413", Severity.ERROR, InfinibandFacts, HcaFacts, also=(EnvironmentFacts, LoadedNcclFacts), next_step="ticket"
)
def ib_subnet_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    ports = {
        node: [port for port in own if port.link_layer == "InfiniBand"] for node, own in ports_of_job(cluster).items()
    }
    details = cluster.facts(HcaFacts)
    subnets = {node: {port.place: _subnet(port, details[node]) for port in own} for node, own in ports.items() if own}
    infiniband = cluster.facts(InfinibandFacts)
    for node in infiniband.keys() - subnets.keys():
        yield NotApplicable("no Active InfiniBand port", (node,))
    known = {node: infiniband[node] for node in subnets}
    for parted, places in differing(known, subnets, only_one).items():
        yield Problem(
            f"{', '.join(places)}: in different subnets: {parted.summary()}",
            "sudo iblinkinfo",
            nodes=parted.odd,
            look=True,
            summary=f"{places[0]} is in another subnet",
        )


def _subnet(port: HcaPort, details: HcaFacts) -> str:
    """Return "fe80::, SM LID 1"; "" where it is not known (NC412 reports a port without a subnet manager), or where
    subnets are joined by routers.
    """
    gids = details.of(*port.place).gids
    prefix = subnet_prefix(gids)
    return f"{prefix}, SM LID {port.sm_lid}" if prefix and port.sm_lid and not is_routed(gids) else ""
