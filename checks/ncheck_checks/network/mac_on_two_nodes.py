"""Two nodes have the same hardware address

## What it finds
Nodes whose interfaces in one network have the same hardware (MAC) address, as virtual machines that were cloned do.
Interfaces that share their parent's address by design (ipvlan) are not compared.

## Why it matters
A switch sends packets for a hardware address to the port where it saw it last. The two nodes take each other's packets:
connections hang now and then, and transfers are slow, while every node looks healthy by itself.

## What to type
`ip -br link` on the named nodes; then give one of them another address, in its network configuration or in that of the
virtual machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, fold
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.network.subnets import machines, networks


@cluster_check("NC367", Severity.ERROR, NicFacts, also=(IdentityFacts,))
def mac_on_two_nodes(cluster: Cluster) -> Iterator[Problem]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    reported: set[str] = set()
    for subnet, members in networks(nodes).items():
        owners: dict[str, dict[str, SubnetAddress]] = {}
        for node, addresses in members.items():
            for address in addresses:
                nic = address.interface
                if nic.mac.strip("0:") and nic.driver != "ipvlan" and nic.mac not in reported:
                    owners.setdefault(nic.mac, {}).setdefault(node, address)
        for mac, holders in owners.items():
            if len(holders) > 1:
                reported.add(mac)  # one finding per address, also where IPv4 and IPv6 both show it
                evidence = tuple(f"{node}: {holder.interface.name} {holder.ip}" for node, holder in holders.items())
                fix = f"ip link show dev {quote(next(iter(holders.values())).interface.name)}"
                message = f"{fold(holders)} have the same hardware address in {subnet}, {mac}"
                yield Problem(message, fix, evidence, tuple(holders), look=True)
