"""The name of a node leads to a dead address beside the right one

## What it finds
Names of listed nodes that a node resolves to several addresses, of which one does not answer there and belongs to no
listed node, while another one answers: most often an old line of /etc/hosts. It is a warning where programs try the
right address first.

## Why it matters
Programs try the addresses of a name in the order of the resolver: each connection to a dead one lasts until its time is
over, seconds or minutes, and a program that takes the first address alone never arrives. glibc sorts the addresses: the
dead one may be tried last here and first on the next node.

## What to type
The line of the finding removes the line of /etc/hosts. Without one, the address comes from DNS:
`getent ahosts NAME` shows what programs get.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Fix, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.names import NameFacts, Resolved, SilentAddress
from ncheck.facts.nics import NicFacts


@cluster_check("NC339", Severity.ERROR, NameFacts, NicFacts)
def name_leads_nowhere(cluster: Cluster) -> Iterator[Problem]:
    found: dict[str, list[tuple[str, Resolved, SilentAddress]]] = {}
    for node, facts in cluster.facts(NameFacts).items():
        if rows := [(name, resolved, one) for name, resolved in facts.names.items() for one in resolved.silent]:
            found[node] = rows
    if not found:
        return
    nics = cluster.facts(NicFacts).values()
    own = {address.ip for one in nics for nic in one.interfaces for address in nic.addresses}
    dead = {node: tuple(row for row in rows if row[2].ip not in own) for node, rows in found.items()}
    for group, nodes in nodes_by_value(dead).items():
        for name, resolved, one in group:
            yield _problem(name, resolved, one, nodes)


def _problem(name: str, resolved: Resolved, one: SilentAddress, nodes: tuple[str, ...]) -> Problem:
    silent = {address.ip for address in resolved.silent}
    right = next(ip for ip in resolved.addresses if ip not in silent)
    first = resolved.addresses.index(one.ip) < resolved.addresses.index(right)
    line = f" (/etc/hosts, line {one.line})" if one.line else ""
    fix = Fix(f"getent ahosts {quote(name)}", look=True)
    if one.line:
        start = one.ip.replace(".", "[.]")
        fix = Fix(f"sudo sed -i --follow-symlinks '{one.line}{{/^[[:space:]]*{start}[[:space:]]/d}}' /etc/hosts")
    return Problem(
        f"{name} resolves to {one.ip}{line}, which does not answer and is no listed node's; {right} answers"
        + ("" if first else ", and is tried first"),
        fix.line,
        nodes=nodes,
        look=fix.look,
        summary="a name leads to a dead address",
        severity=None if first else Severity.WARNING,
    )
