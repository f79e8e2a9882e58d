"""NC401: a port is down where it should be up; spare ports and idle cards harm nobody."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.infiniband.ib_port_down import ib_port_down

UP, OFF = ("Active", "LinkUp"), ("Down", "Disabled")
BY_HAND = "sudo ibportstate -C mlx5_1 -P 1 -D 0 1 enable"


def port(hca: str, state: tuple[str, str] = UP, pci: str = "", layer: str = "InfiniBand") -> HcaPort:
    return HcaPort(hca, 1, *state, 400.0, layer, pci=pci)


def node(*ports: HcaPort) -> Facts:
    return {
        InfinibandFacts: InfinibandFacts(ports, "sysfs"),
        GpuFacts: Absent("no NVIDIA GPU"),
        LibraryFacts: LibraryFacts("", NO_HCA),
    }


def dual(second: tuple[str, str] = OFF) -> Facts:
    """Make a card with two ports, as mlx5 shows it: two functions of one slot."""
    return node(port("mlx5_0", pci="0000:3b:00.0"), port("mlx5_1", second, pci="0000:3b:00.1"))


def outcomes(judgement: Judgement) -> list[Outcome]:
    return [verdict.outcome for verdict in judgement.verdicts]


def test_a_port_that_is_active_on_the_other_nodes_is_named() -> None:
    well, ill = node(port("mlx5_0"), port("mlx5_1")), node(port("mlx5_0"), port("mlx5_1", OFF))
    judgement = judge([ib_port_down], {"n1": well, "n2": well, "n3": ill})
    assert judgement.findings == [
        Finding("NC401", "ib-port-down", Severity.ERROR, ("n3",), "mlx5_1 port 1: down",
                ("mlx5_1 port 1: Down, Disabled on n3",), BY_HAND, summary="mlx5_1 is down"),
    ]  # fmt: skip
    assert outcomes(judgement) == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]


def test_a_roce_port_is_woken_by_its_interface() -> None:
    def roce(state: tuple[str, str]) -> Facts:
        return node(*(replace(port(name, state, layer="Ethernet"), netdev="ens1") for name in ("mlx5_0", "mlx5_1")))

    (finding,) = judge([ib_port_down], {"n1": roce(UP), "n2": roce(UP), "n3": roce(OFF)}).findings
    assert (finding.nodes, finding.message, finding.fix) == (
        ("n3",), "mlx5_0 port 1, mlx5_1 port 1: down", "sudo ip link set ens1 up",
    )  # fmt: skip


def test_of_two_nodes_the_one_with_the_port_down_is_named() -> None:
    judgement = judge([ib_port_down], {"n1": dual(UP), "n2": dual(OFF)})
    assert [finding.nodes for finding in judgement.findings] == [("n2",)]


def test_the_same_port_down_on_two_of_five_nodes_is_one_finding() -> None:
    well, ill = node(port("mlx5_0"), port("mlx5_1")), node(port("mlx5_0"), port("mlx5_1", OFF))
    judgement = judge([ib_port_down], {"n1": well, "n2": ill, "n3": well, "n4": ill, "n5": well})
    assert [finding.nodes for finding in judgement.findings] == [("n2", "n4")]


def test_nodes_with_every_port_down_are_all_named() -> None:
    dead = node(port("mlx5_0", OFF), port("mlx5_1", OFF))
    judgement = judge([ib_port_down], {"n1": dead, "n2": dead})
    assert [(found.nodes, found.message) for found in judgement.findings] == [
        (("n1", "n2"), "mlx5_0 port 1, mlx5_1 port 1: down"),
    ]


def test_one_node_alone_is_judged_by_its_own_cards() -> None:
    assert outcomes(judge([ib_port_down], {"n1": node(port("mlx5_0"), port("mlx5_1", OFF))})) == [Outcome.FAILED]
    assert outcomes(judge([ib_port_down], {"n1": dual()})) == [Outcome.PASSED]


def test_a_node_that_could_not_be_read_is_unknown() -> None:
    unread: Facts = {
        InfinibandFacts: Unread("ibstat failed"),
        GpuFacts: Absent("no NVIDIA GPU"),
        LibraryFacts: LibraryFacts("", NO_HCA),
    }
    assert outcomes(judge([ib_port_down], {"n1": node(port("mlx5_0")), "n2": unread})) == [
        Outcome.PASSED,
        Outcome.UNKNOWN,
    ]


def test_it_is_silent_about_a_second_port_that_nobody_cabled() -> None:
    assert judge([ib_port_down], {"n1": dual(), "n2": dual(), "n3": dual()}).findings == []


def test_it_is_silent_about_a_second_port_that_one_node_alone_has_cabled() -> None:
    assert judge([ib_port_down], {"n1": dual(UP), "n2": dual(), "n3": dual()}).findings == []


def test_it_is_silent_about_ethernet_ports_that_are_down_alike() -> None:
    idle = node(port("mlx5_0"), port("mlx5_1", OFF, layer="Ethernet"))
    assert judge([ib_port_down], {"n1": idle, "n2": idle}).findings == []


def test_it_is_silent_about_an_ethernet_cable_in_another_port_of_the_card() -> None:
    first = node(port("irdma0", layer="Ethernet"), port("irdma1", OFF, layer="Ethernet"))
    second = node(port("irdma0", OFF, layer="Ethernet"), port("irdma1", layer="Ethernet"))
    assert judge([ib_port_down], {"n1": first, "n2": second}).findings == []
    both = node(port("irdma0", layer="Ethernet"), port("irdma1", layer="Ethernet"))
    assert [found.nodes for found in judge([ib_port_down], {"n1": both, "n2": both, "n3": second}).findings] == [
        ("n3",)
    ]


def test_it_is_silent_about_a_polling_port_which_has_its_own_check() -> None:
    well, ill = node(port("mlx5_0")), node(port("mlx5_0", ("Down", "Polling")))
    assert judge([ib_port_down], {"n1": well, "n2": well, "n3": ill}).findings == []
