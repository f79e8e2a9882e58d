"""The lookup of a node's name takes seconds

## What it finds
Nodes on which the lookup of the name of a listed node takes 4 s or more: as a rule the first name server of
/etc/resolv.conf does not answer, and the resolver asks the next one after 5 s.

## Why it matters
Each program that connects by name waits as long, each time: ssh, mpirun, torchrun's rendezvous, every rank. Together
they may wait longer than the launcher does.

## What to type
`time getent ahosts NAME` shows how long it takes, and `cat /etc/resolv.conf` which name servers are asked. Remove the
one that does not answer (with systemd-resolved: `resolvectl status`), or put the nodes' names into /etc/hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.names import NameFacts

SLOW = 4.0  # seconds; the resolver's own limit for one name server is 5


@cluster_check("NC340", Severity.WARNING, NameFacts)
def name_lookup_slow(cluster: Cluster) -> Iterator[Problem]:
    slow: dict[str, tuple[str, bool, str]] = {}
    for node, facts in cluster.facts(NameFacts).items():
        name, slowest = max(facts.names.items(), key=lambda one: one[1].seconds, default=("", None))
        if slowest is not None and slowest.seconds >= SLOW:
            slow[node] = f"{slowest.seconds:.0f} s", slowest.late, name
    for (seconds, late, name), nodes in nodes_by_value(slow).items():
        took = f"did not end within {seconds}" if late else f"took {seconds}"
        yield Problem(
            f"the lookup of {name} {took}: a name server may not answer",
            f"time getent ahosts {quote(name)}; cat /etc/resolv.conf",
            nodes=nodes, look=True, summary="slow name lookups",
        )  # fmt: skip
