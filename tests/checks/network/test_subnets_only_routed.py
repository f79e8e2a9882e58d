"""NC306: a cluster connected by routers only is reported, but is not a fault."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.subnets_only_routed import subnets_only_routed


def node(ip: str, prefix: int = 24, *, routed: bool = True) -> Facts:
    address = (Address(ip, prefix),)
    nic = Interface("eth0", 2, Kind.CLOUD, up=True, running=True, mtu=1460, addresses=address, default_route=routed)
    return {NicFacts: NicFacts((nic,)), IdentityFacts: Absent("not asked")}


def test_nodes_in_separate_subnets_with_routers_are_reported() -> None:
    lines = ("10.128.0.2/32 on n1", "10.128.0.3/32 on n2")
    assert judge([subnets_only_routed], {"n1": node("10.128.0.2", 32), "n2": node("10.128.0.3", 32)}).findings == [
        Finding("NC306", "subnets-only-routed", Severity.INFO, ("n1", "n2"),
                f"only routers connect the nodes: {', '.join(lines)}", lines, "tracepath n1",
                where="here", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_a_subnet_is_shared() -> None:
    assert judge([subnets_only_routed], {"n1": node("10.1.0.2"), "n2": node("10.1.0.3")}).findings == []


def test_it_is_silent_where_no_router_joins_them_which_is_another_check() -> None:
    nodes = {"n1": node("10.1.0.2", routed=False), "n2": node("10.2.0.3", routed=False)}
    assert judge([subnets_only_routed], nodes).findings == []
