"""A firewall may block connections between nodes

## What it finds
Nodes with an input chain (nftables or iptables) that drops or rejects every new connection that no rule allows, as
firewalld, ufw and `policy drop` do. Only root can read the rules; without root, nodes on which firewalld or ufw is
active. A node is not named if other nodes connected to it during this run, because then its rules let them in.
Docker's FORWARD and NAT rules do not matter here.

## Why it matters
NCCL, gloo and MPI listen on ports that the kernel picks (32768 to 60999 by default), and every node connects to every
other node. If connections are rejected, NCCL retries for a minute and stops. If they are dropped, each attempt takes
two minutes, and the job hangs silently for more than an hour.

## What to type
Allow connections from the nodes' own network. firewalld:
`sudo firewall-cmd --permanent --zone=trusted --add-source=10.1.0.0/24`, then `sudo firewall-cmd --reload`; ufw:
`sudo ufw allow from 10.1.0.0/24`; nftables without a service:
`sudo nft insert rule inet filter input ip saddr 10.1.0.0/24 accept`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, Problem, Severity, Unread, cluster_check
from ncheck.facts.firewall import FirewallFacts, InputChain
from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.facts.net_settings import NetSettingsFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import networks

DEFAULT_PORTS = (32768, 60999)


@cluster_check("NC358", Severity.WARNING, FirewallFacts, NicFacts, also=(NetSettingsFacts, LinkFacts))
def firewall_active(cluster: Cluster) -> Iterator[Problem]:
    subnets = {subnet: nodes for subnet, nodes in networks(cluster.facts(NicFacts)).items() if ":" not in subnet}
    settings, connected = cluster.facts(NetSettingsFacts), _connected(cluster.facts(LinkFacts))
    for node, firewall in cluster.facts(FirewallFacts).items():
        subnet = next((subnet for subnet, nodes in subnets.items() if node in nodes), "")
        first, last = settings[node].ephemeral if node in settings else DEFAULT_PORTS
        needed = f"TCP ports {first} to {last} must be open between the nodes"
        if node in connected:
            continue
        if isinstance(firewall.chains, Unread):
            if firewall.services:
                message = f"{' and '.join(firewall.services)} is active and only root can read its rules: {needed}"
                yield Problem(message, _fix(firewall, None, subnet or "SUBNET"), nodes=(node,))
        elif subnet and (closed := [chain for chain in firewall.chains if chain.action != "accept"]):
            chain = closed[0]
            action = {"drop": "dropped", "reject": "rejected"}[chain.action]
            message = f"new connections that no rule allows are {action} ({chain.table}, chain {chain.name}): {needed}"
            yield Problem(message, _fix(firewall, chain, subnet), nodes=(node,))


def _connected(links: Mapping[str, LinkFacts]) -> set[str]:
    """Return the nodes to which others tried to connect, and all of these did."""
    tried = {node for facts in links.values() for node in facts.tried_to}
    failed = (
        link for facts in links.values() for link in facts.broken if not link.port and link.target in facts.tried_to
    )
    return tried - {link.target for link in failed if link.cause in (LinkCause.REFUSED, LinkCause.FILTERED)}


def _fix(firewall: FirewallFacts, chain: InputChain | None, subnet: str) -> str:
    if "firewalld" in firewall.services:
        return f"sudo firewall-cmd --permanent --zone=trusted --add-source={subnet} && sudo firewall-cmd --reload"
    if "ufw" in firewall.services:
        return f"sudo ufw allow from {subnet}"
    if chain is None or chain.table.startswith("iptables"):
        return f"sudo iptables -I INPUT -s {subnet} -j ACCEPT"
    family, _, table = chain.table.partition(" ")
    return f"sudo nft insert rule {quote(family)} {quote(table)} {quote(chain.name)} ip saddr {subnet} accept"
