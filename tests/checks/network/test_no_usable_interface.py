"""NC301: a node without a usable interface is named; a container's external interface is enough."""

from __future__ import annotations

from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.no_usable_interface import no_usable_interface

LO = Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536, addresses=(Address("127.0.0.1", 8, "host"),))


def nic(name: str, kind: Kind, ip: str = "", *, running: bool = True, uplink: bool = False) -> Interface:
    addresses = (Address(ip, 24),) if ip else ()
    return Interface(name, 2, kind, up=True, running=running, mtu=1500, addresses=addresses, uplink=uplink)


def node(*nics: Interface) -> dict[str, Facts]:
    """Return a node with these interfaces beside one that is well."""
    return {
        "n1": {NicFacts: NicFacts((LO, *nics))},
        "n2": {NicFacts: NicFacts((LO, nic("eth0", Kind.PHYSICAL, "10.1.0.9")))},
    }


def test_a_node_with_nothing_but_docker_and_a_dead_card_is_named() -> None:
    docker = nic("docker0", Kind.CONTAINER_BRIDGE, "172.17.0.1")
    dead = nic("eth0", Kind.PHYSICAL, "10.1.0.5", running=False)
    assert judge([no_usable_interface], node(docker, dead)).findings == [
        Finding("NC301", "no-usable-interface", Severity.ERROR, ("n1",),
                "no interface that a job could use",
                ("lo: loopback, up, 127.0.0.1", "docker0: container-bridge, up, 172.17.0.1",
                 "eth0: physical, up, no carrier, 10.1.0.5"), "ip -br address", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_about_cards_bonds_and_a_containers_only_external_interface() -> None:
    for good in (
        nic("eth0", Kind.PHYSICAL, "10.1.0.5"),
        nic("bond0", Kind.BOND, "10.1.0.5"),
        nic("ib0", Kind.INFINIBAND, "10.1.0.5"),
        nic("eth0", Kind.VETH, "10.244.1.7", uplink=True),
    ):
        assert judge([no_usable_interface], node(good)).findings == []


def test_a_single_node_needs_no_network_however_it_is_reached() -> None:
    alone = {"n1": node()["n1"]}
    assert [verdict.outcome for verdict in judge([no_usable_interface], alone).verdicts] == [Outcome.SKIPPED]
