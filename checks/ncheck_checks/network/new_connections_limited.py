"""New connections to a node are limited to a few per second

## What it finds
Nodes to which fewer than half of ten connections that begin at once are open within a second, from several other nodes,
and again when it is tried a second time. Links that lose packets otherwise are reported by packets-lost.

Also nodes of whose connections a part never gets an answer, while all others are quick: the same addresses, other
ports. What single connections of these nodes did is chance, and is not reported beside it.

## Why it matters
Firewalls that defend against floods drop new connections beyond a rate. NCCL, MPI and gloo open hundreds of connections
at once when a job starts: most of them wait for seconds and try again, and the start takes minutes or times out.

A bond (LACP) and routers with several paths choose the leg or the path by the ports of a connection. If one of them is
dead and is still chosen, ping and ssh may work while some of NCCL's connections never do: the job hangs at its start.

## What to type
`sudo nft list ruleset` or `sudo iptables -S` on the named node: look for "limit" and "hashlimit". Allow the addresses
of the other nodes before that rule.

Where a part never gets an answer: `cat /proc/net/bonding/bond0` shows the legs of a bond, `ip -s -s link` what each
interface dropped. A leg that is up on the node can be dead at the switch: compare its LACP state there, or unplug one
leg after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.links import Burst, LinkFacts
from ncheck.nccl.link_problems import ALSO, READS, lost_flows
from ncheck.network.losses import lossy


@cluster_check("NC366", Severity.ERROR, *READS, also=ALSO)
def new_connections_limited(cluster: Cluster) -> Iterator[Problem]:
    yield from lost_flows(cluster)
    known = cluster.facts(LinkFacts)
    with_losses = {(found.subnet, node) for found in lossy(known) for node in found.nodes}
    late: dict[tuple[str, str], dict[str, Burst]] = {}
    for node, facts in known.items():
        for burst in facts.bursts:
            if 2 * burst.late >= burst.begun and burst.target in known and not burst.of_flows:
                late.setdefault((burst.subnet, burst.target), {})[node] = burst
    for (subnet, target), bursts in late.items():
        if (subnet, target) not in with_losses and len(bursts) >= min(2, len(known) - 1):
            begun, behind = (sum(getattr(burst, part) for burst in bursts.values()) for part in ("begun", "late"))
            where = f" on {subnet}" if subnet else ""
            message = f"new connections to {target}{where} are slow: {behind} of {begun} were not open after 0.9 s"
            evidence = tuple(f"from {node}: {burst.late} of {burst.begun}" for node, burst in bursts.items())
            yield Problem(message, "sudo nft list ruleset", evidence, (target,), look=True)
