"""NC627: containers that published a port and kept their own network; pods that route to each other are healthy."""

from __future__ import annotations

from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.host.container_network_isolated import container_network_isolated


def node(ip: str, reached: int = 0, broken: int = 0, *, container: bool = True) -> Facts:
    nic = Interface(
        "eth0", 5, Kind.VETH if container else Kind.PHYSICAL, up=True, running=True, mtu=1500,
        addresses=(Address(ip, 16),), uplink=container,
    )  # fmt: skip
    reaches = (Reach("", ip, reached + broken, reached),) if reached + broken else ()
    links = tuple(Link(ip, "other", "10.0.0.1", "", LinkCause.FILTERED) for _ in range(broken))
    return {NicFacts: NicFacts((nic,)), LinkFacts: LinkFacts(reaches, links), IdentityFacts: Absent("not asked")}


def outcomes(**nodes: Facts) -> list[Outcome]:
    return [one.outcome for one in judge([container_network_isolated], nodes).verdicts]


def test_a_container_that_reaches_nobody_is_named() -> None:
    nodes = {"a": node("10.0.0.1", 1, container=False), "b": node("172.17.0.2", broken=1)}
    assert judge([container_network_isolated], nodes).findings == [
        Finding("NC627", "container-network-isolated", Severity.ERROR, ("b",),
                "b is a container with a network of its own (172.17.0.2), and reaches no other node", (),
                "start the container again with --network=host --ipc=host",
                kind="do",
                summary="a container's network reaches no other node"),
    ]  # fmt: skip


def test_two_containers_with_the_same_address_are_both_named() -> None:
    assert outcomes(a=node("172.17.0.2"), b=node("172.17.0.2")) == [Outcome.FAILED] * 2


def test_pods_that_reach_each_other_are_healthy_and_machines_skipped() -> None:
    assert outcomes(a=node("10.244.1.7", 1), b=node("10.244.2.9", 1)) == [Outcome.PASSED] * 2
    assert (
        outcomes(a=node("10.244.1.7", broken=1), b=node("10.244.2.9", broken=1)) == [Outcome.PASSED] * 2
    )  # a firewall
    machines = {name: node(f"10.0.0.{at}", broken=1, container=False) for at, name in enumerate("ab")}
    assert outcomes(**machines) == [Outcome.SKIPPED] * 2


def test_links_that_there_was_no_time_to_try_say_nothing() -> None:
    untried = (Link("172.17.0.2", "other", "10.0.0.1", "", LinkCause.UNTRIED),)
    late = {**node("172.17.0.2"), LinkFacts: LinkFacts((Reach("", "172.17.0.2", 1, 0),), untried)}
    assert outcomes(a=late, b=node("10.0.0.1", container=False)) == [Outcome.PASSED, Outcome.SKIPPED]


def test_without_links_only_containers_with_one_address_are_judged() -> None:
    silent = {LinkFacts: Absent("no other node listens")}
    one, other = ({**node(ip), **silent} for ip in ("172.17.0.2", "172.17.0.3"))
    assert outcomes(a=one, b=other) == [Outcome.SKIPPED] * 2
    assert outcomes(a=one, b=one) == [Outcome.FAILED] * 2
    unread = {**other, LinkFacts: Unread("no answer")}
    assert outcomes(a=one, b=unread) == [Outcome.SKIPPED, Outcome.UNKNOWN]


def test_one_container_that_is_listed_twice_is_not_two() -> None:
    silent: Facts = {
        LinkFacts: Absent("no other node listens"),
        IdentityFacts: IdentityFacts("a", "boot", "net:[1]", 0),
    }
    assert outcomes(a={**node("172.17.0.2"), **silent}, b={**node("172.17.0.2"), **silent}) == [Outcome.SKIPPED] * 2
