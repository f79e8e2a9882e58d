"""The line that leads NCCL into a subnet: a name where that does it."""

from __future__ import annotations

from ncheck.facts.nics import Address, Interface
from ncheck.nccl.picks import line_into
from ncheck.network.subnets import SubnetAddress, SubnetMembers
from ncheck.parse.interface_names import Kind

V4, V6 = "10.1.0.0/24", "2001:db8::/64"
HOSTS = {V4: "10.1.0.{}", V6: "2001:db8::{}"}


def everywhere(*subnets: str) -> dict[str, SubnetMembers]:
    """Return two nodes with one card that has an address in each of the subnets."""
    found: dict[str, SubnetMembers] = {subnet: {} for subnet in subnets}
    for node in (1, 2):
        addresses = tuple(Address(HOSTS[subnet].format(node), 64 if subnet == V6 else 24) for subnet in subnets)
        eth0 = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=addresses)
        for subnet, address in zip(subnets, addresses, strict=True):
            found[subnet][f"n{node}"] = (SubnetAddress(eth0, address.ip, subnet),)
    return found


def test_a_name_leads_into_the_subnet_of_its_first_address() -> None:
    assert line_into(everywhere(V4, V6), V4) == "export NCCL_SOCKET_IFNAME='=eth0'"
    assert line_into(everywhere(V6), V6) == "export NCCL_SOCKET_IFNAME='=eth0'"


def test_into_ipv6_behind_ipv4_the_plan_leads_which_names_the_family_too() -> None:
    assert line_into(everywhere(V4, V6), V6) == "ncheck plan nodes.txt --for env"
