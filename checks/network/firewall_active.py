"""A firewall stops new connections between the nodes

## What it finds
Nodes whose packet filter (nft or iptables rules at the input hook) surely drops or rejects new TCP connections from
other nodes to some of the ports that connections get, on an interface that a job may use. The rules are shown to root
only: without, a node is named where firewalld or ufw is active. A node is not named where the others did connect to
it. Rules for containers (Docker's FORWARD and NAT) and rules that cannot be told from here are passed over.

## Why it matters
NCCL, gloo and MPI listen on ports that the kernel picks (32768 to 60999 by default), and every node connects to every
other. Rejected, NCCL tries again for a minute and stops; dropped, each try takes two minutes, and the job hangs
without a word for more than an hour.

## What to type
Let the nodes' own network in. firewalld: `sudo firewall-cmd --permanent --zone=trusted --add-source=10.1.0.0/24`, then
`sudo firewall-cmd --reload`; ufw: `sudo ufw allow from 10.1.0.0/24`; bare nftables:
`sudo nft insert rule inet filter input ip saddr 10.1.0.0/24 accept`.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import ClusterView, Problem, Severity, cluster_check
from doctor.model.facts import FirewallFacts, LinkFacts, NetSettingsFacts, NicFacts
from doctor.reasoning.firewall_told import closed_nodes


@cluster_check("NC358", Severity.WARNING, FirewallFacts, NicFacts, also=(NetSettingsFacts, LinkFacts))
def firewall_active(cluster: ClusterView) -> Iterator[Problem]:
    settings, links = cluster.known(NetSettingsFacts), cluster.known(LinkFacts)
    for closed in closed_nodes(cluster.each(FirewallFacts), cluster.each(NicFacts), settings, links):
        yield Problem(closed.message, closed.fix, nodes=(closed.node,))
