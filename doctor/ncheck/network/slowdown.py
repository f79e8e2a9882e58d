"""What a job loses where it cannot use the fastest network: networks that lack nodes, and the one that is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.run import JobFacts
from ncheck.hostlist import fold
from ncheck.model.check import Problem
from ncheck.model.cluster import Cluster
from ncheck.network.link_faults import carrying
from ncheck.network.subnets import Parted, SubnetMembers, machines, parted_networks, shared, speed
from ncheck.parity import nodes_by_value

SLOWDOWN_FACTS = (InfinibandFacts, JobFacts)  # the facts that `slowdown` reads


def slowdown(cluster: Cluster, fast: SubnetMembers, subnet: str, left: SubnetMembers) -> str:
    """Return what the job loses if it uses this subnet (with the members that are left) and not the fast network.

    "" if it loses nothing that is known: a driver does not report its speed, RDMA carries the job's data, or the user
    requested an interface.
    """
    before, after = speed(fast), speed(left)
    requested = any(job.ifname for job in cluster.facts(JobFacts).values())
    if not 0 < after < before or requested or _rdma_everywhere(cluster):
        return ""
    return f"the plan uses {subnet} ({after / 1000:g} Gb/s), {before / after:.3g} times slower"


def lacking(cluster: Cluster, *, slower: bool) -> Iterator[Problem]:
    """Yield the networks in which nodes are missing: those that slow the job down, or the others.

    The check must declare NicFacts, IdentityFacts, LinkFacts and SLOWDOWN_FACTS.
    """
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    everywhere = shared(nodes)
    instead = next(iter(carrying(cluster.facts(LinkFacts), nodes)), "")
    for parted in parted_networks(nodes):
        loss = slowdown(cluster, parted.members, instead, everywhere[instead]) if instead else ""
        if bool(loss) is slower:
            yield from _problems(parted, loss)


def _problems(parted: Parted, loss: str) -> Iterator[Problem]:
    fast = speed(parted.members)
    where = parted.subnet + (f" ({fast / 1000:g} Gb/s)" if fast else "")
    for why, names in nodes_by_value(parted.missing).items():
        message = f"{where} connects {fold(parted.members)}, but not {fold(names)}: {why.reason}"
        yield Problem(
            f"{message}; {loss}" if loss else message, why.fix, nodes=names, look=why.look,
            summary=f"not in {parted.subnet}",
        )  # fmt: skip


def _rdma_everywhere(cluster: Cluster) -> bool:
    """Return whether every node has an Active HCA port: TCP then carries only the ranks' first connections."""
    ports: Mapping[str, InfinibandFacts] = cluster.facts(InfinibandFacts)
    active = [name for name, facts in ports.items() if any(port.state == "Active" for port in facts.ports)]
    return len(active) == len(cluster)
