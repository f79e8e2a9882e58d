"""The address by which a server such as Ray or vLLM makes its node known to the others: whether they can use it."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address

from ncheck.facts.nics import Interface, NicFacts
from ncheck.hostlist import fold, quoted
from ncheck.network.subnets import subnet_addresses


def why_unusable(address: str, node: str, nodes: Mapping[str, NicFacts]) -> str:
    """Return why the others cannot use this as the address of this node, as it follows "which"; "" if they can."""
    try:
        ip = ip_address(address)
    except ValueError:
        return "is no address: Ray and vLLM know nodes by their addresses, not by names"
    if ip.is_loopback:
        return "leads every other node to itself" if len(nodes) > 1 else ""
    if isinstance(ip, IPv6Address) and ip.is_link_local:  # fe80::1%eth0 leads there where others have an eth0, too
        return "" if ip.scope_id else "is link-local: it leads nowhere without the name of an interface behind it"
    nic = interface_with(address, nodes[node])
    if nic is None:
        owners = [other for other, nics in nodes.items() if interface_with(address, nics)]
        return f"is the address of {fold(owners)}" if owners else "no interface of this node has"
    if len(nodes) > 1 and all(ip != ip_address(one.ip) for one in subnet_addresses(nodes[node])):
        return f"is the address of {nic.name} ({nic.kind.value}), where no other node reaches this one"
    return ""


def interface_with(address: str, nics: NicFacts) -> Interface | None:
    """Return a node's interface that has an address."""
    ip = ip_address(address)
    held = ((nic, one.ip.partition("%")[0]) for nic in nics.interfaces for one in nic.addresses)
    return next((nic for nic, own in held if ip_address(own) == ip), None)


def shown(address: str) -> str:
    """Return the address as it stands in a message; a name in quotes."""
    try:
        return str(ip_address(address))
    except ValueError:
        return quoted(address)
