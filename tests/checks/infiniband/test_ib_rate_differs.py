"""NC404: rates are compared port by port, and never between the cards of one node."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_rate_differs import ib_rate_differs


def node(**rates: float) -> Facts:
    ports = tuple(HcaPort(hca, 1, "Active", "LinkUp", rate, "InfiniBand") for hca, rate in rates.items())
    return {
        InfinibandFacts: InfinibandFacts(ports, "sysfs"),
        GpuFacts: Absent("no NVIDIA GPU"),
        LibraryFacts: LibraryFacts("", NO_HCA),
    }


def test_a_slow_port_is_named_and_ports_that_part_alike_are_one_finding() -> None:
    well, ill = node(mlx5_0=400, mlx5_1=400), node(mlx5_0=200, mlx5_1=200)
    assert judge([ib_rate_differs], {"n1": well, "n2": well, "n3": ill}).findings == [
        Finding("NC404", "ib-rate-differs", Severity.ERROR, ("n3",),
                "the rate of mlx5_0 port 1, mlx5_1 port 1 differs: 400 Gb/s on n[1-2], 200 Gb/s on n3 (2 to 1)", (),
                "sudo iblinkinfo", kind="look", summary="the rate of mlx5_0 port 1 differs"),
    ]  # fmt: skip


def test_two_nodes_that_differ_are_both_named() -> None:
    judgement = judge([ib_rate_differs], {"n1": node(mlx5_0=400), "n2": node(mlx5_0=100)})
    assert [finding.nodes for finding in judgement.findings] == [("n1", "n2")]


def test_nodes_that_name_their_ports_differently_are_compared_as_a_whole() -> None:
    judgement = judge([ib_rate_differs], {"n1": node(mlx5_0=400, mlx5_1=400), "n2": node(ibp3s0=400, ibp4s0=200)})
    assert [found.message for found in judgement.findings] == [
        "the rate of all ports differs: 2 x 400 Gb/s on n1, 1 x 200 Gb/s + 1 x 400 Gb/s on n2 (1 to 1)"
    ]


def test_an_active_port_without_a_rate_leaves_its_node_unknown() -> None:
    judgement = judge([ib_rate_differs], {"n1": node(mlx5_0=400), "n2": node(mlx5_0=0)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.UNKNOWN]


def test_it_is_silent_about_a_slower_storage_card_that_all_nodes_have() -> None:
    assert (
        judge([ib_rate_differs], {"n1": node(mlx5_0=400, mlx5_9=200), "n2": node(mlx5_0=400, mlx5_9=200)}).findings
        == []
    )


def test_it_is_silent_where_names_differ_and_rates_do_not() -> None:
    judgement = judge([ib_rate_differs], {"n1": node(mlx5_0=400), "n2": node(ibp3s0=400)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED]


def test_a_node_that_lacks_a_port_is_compared_by_the_others() -> None:
    well, ill = node(mlx5_0=400, mlx5_1=400), node(mlx5_0=400)
    judgement = judge([ib_rate_differs], {"n1": well, "n2": well, "n3": ill})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED] * 3


def test_names_that_are_infiniband_on_one_node_and_ethernet_on_another_are_not_compared() -> None:
    def virtual(infiniband: str, ethernet: str) -> Facts:
        ports = (
            HcaPort(infiniband, 1, "Active", "LinkUp", 200.0, "InfiniBand"),
            HcaPort(ethernet, 1, "Active", "LinkUp", 50.0, "Ethernet"),
        )
        return {**node(), InfinibandFacts: InfinibandFacts(ports, "sysfs")}

    nodes = {"n1": virtual("mlx5_0", "mlx5_1"), "n2": virtual("mlx5_1", "mlx5_0")}
    assert judge([ib_rate_differs], nodes).findings == []
