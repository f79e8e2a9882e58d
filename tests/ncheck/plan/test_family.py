"""The family of addresses: named only where NCCL would take the wrong one of a named interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nics import Address, NicFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.plan import Setting
from ncheck.plan.advice import Advice
from ncheck.plan.variables import advise

from .links import linked
from .test_choice import node

V4, V6 = "10.1.0.0/24", "2001:db8::/64"


def host(number: int, *more: Address, **variables: str) -> Facts:
    """Make a node whose one card has an IPv4 and an IPv6 address, and those beside them."""
    facts = node(f"eth0 10.1.0.{number}", environment=EnvironmentFacts(variables, {}))
    lo, eth0 = facts[NicFacts].interfaces  # type: ignore[attr-defined]
    addresses = (*eth0.addresses, *more, Address(f"2001:db8::{number}", 64))
    return {**facts, NicFacts: NicFacts((lo, replace(eth0, addresses=addresses)))}


def advised(*facts: Facts, dead: Sequence[str] = ()) -> Advice:
    nodes = linked({f"n{number}": held for number, held in enumerate(facts, 1)}, dead)
    return advise(Cluster.of(nodes))


def test_where_ipv6_alone_carries_nccl_is_told_so() -> None:
    made = advised(host(1), host(2), dead=[V4])
    assert made.env["NCCL_SOCKET_IFNAME"].value == "=eth0"
    assert made.env["NCCL_SOCKET_FAMILY"] == Setting(
        "AF_INET6", f"{V6} is IPv6, and NCCL would use another address of the same interface"
    )


def test_a_family_that_somebody_set_and_that_leads_astray_is_set_right() -> None:
    made = advised(*(host(number, NCCL_SOCKET_FAMILY="AF_INET6") for number in (1, 2)), dead=[V6])
    assert made.env["NCCL_SOCKET_FAMILY"].value == "AF_INET"


def test_a_second_address_of_one_family_cannot_be_named_and_a_note_says_so() -> None:
    made = advised(*(host(number, Address(f"10.9.0.{number}", 24)) for number in (1, 2)), dead=[V4, V6])
    assert "NCCL_SOCKET_FAMILY" not in made.env
    assert made.notes[-1] == (
        "NCCL uses the first address of an interface, and on n[1-2] that is not in 10.9.0.0/24: "
        "no variable can change this"
    )


def test_where_nccl_gets_there_no_family_is_set() -> None:
    assert "NCCL_SOCKET_FAMILY" not in advised(host(1), host(2), dead=[V6]).env
    assert "NCCL_SOCKET_FAMILY" not in advised(host(1), host(2)).env
