"""Slurm reserves a node for maintenance

## What it finds
Nodes in a reservation of Slurm that has the flag MAINT, and that begins within four hours (within a day: a warning;
later: information), or is active and excludes the user who runs ncheck. This machine asks Slurm once (`scontrol show
reservation`), not the nodes; a node is recognized by the name in the list or by its host name. Inside a Slurm job only
a reservation counts that begins before the job ends, and that is not the job's own. Where only an account or a group
may use an active reservation, it is a warning. Other reservations are not looked at, nor are nodes that someone drains:
nodes are drained to be tested. Slurm may hide reservations from those who may not use them (PrivateData=reservations).
Where Slurm does not answer, the check is skipped.

## Why it matters
When the reservation begins, the nodes are rebooted or taken apart. Slurm starts no job that would reach into it: a job
with a longer time limit stays pending (Reason=ReqNodeNotAvail). Nothing protects ranks that ssh or mpirun starts.

## What to type
Choose a time limit that ends before it begins, or leave the nodes out. On this machine, the times, nodes and users are
shown by `scontrol show reservation=NAME`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Cluster, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.facts.maintenance import Reservation, ReservationFacts
from ncheck.text import span, utc

SOON, DAY = 4 * 3600.0, 86400.0  # seconds


@cluster_check("NC660", Severity.ERROR, ReservationFacts, also=(IdentityFacts,), alone=True)
def reservation_ahead(cluster: Cluster) -> Iterator[Problem]:
    asked = cluster.facts(ReservationFacts)
    facts = next(iter(asked.values()))  # the same on every node
    identities = cluster.facts(IdentityFacts) if facts.reservations else {}
    names = {node: _names(node, identities.get(node)) for node in asked} if facts.reservations else {}
    for one in facts.reservations:
        nodes = tuple(node for node, known in names.items() if not one.nodes.isdisjoint(known))
        if not nodes or not _harms(one, facts):
            continue
        ahead = one.begins - facts.asked
        when = f"from {utc(one.begins)}, in {span(ahead)}," if ahead > 0 else f"since {utc(one.begins)}"
        yield Problem(
            f"Slurm reserves it for maintenance {when} until {utc(one.ends)}: {one.name}",
            f"scontrol show {quote('reservation=' + one.name)}",
            nodes=nodes,
            where=HERE,
            look=True,
            summary="Slurm has a reservation for maintenance",
            severity=_severity(one, ahead, facts),
        )


def _severity(one: Reservation, ahead: float, facts: ReservationFacts) -> Severity | None:
    """Return how grave it is where that is not an error: a job may end in time."""
    if ahead >= DAY:
        return Severity.INFO
    may_end = ahead >= SOON and not facts.job
    return Severity.WARNING if may_end or (ahead <= 0 and one.open_to_us is None) else None


def _harms(one: Reservation, facts: ReservationFacts) -> bool:
    """Tell whether a job that starts now would meet the reservation. Slurm keeps its own jobs out of one."""
    if one.ends <= facts.asked:
        return False
    if facts.job:
        return facts.job.ends is not None and one.begins < facts.job.ends and one.name != facts.job.reservation
    return one.begins > facts.asked or one.open_to_us is not True


def _names(node: str, identity: IdentityFacts | None) -> frozenset[str]:
    """Return what Slurm may call the node: its name or host name, whole, or the part before the first dot."""
    names = (node, identity.host_name if identity else "")
    parts = (name.partition(".")[0] for name in names)
    return frozenset((*names, *(part for part in parts if not part.isdecimal()))) - {""}
