"""NC411: HCAs that a job sees and cannot open."""

from __future__ import annotations

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.uverbs_not_accessible import uverbs_not_accessible

DENIED, GONE = "Permission denied", "No such file or directory"
PASSED, SKIPPED, FAILED = Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED


def node(layer: str = "InfiniBand", state: str = "Active", **devices: str) -> Facts:
    ports = tuple(HcaPort(hca, 1, state, "LinkUp", 200.0, layer) for hca in devices)
    return {
        LibraryFacts: LibraryFacts("", NO_HCA, devices or NO_HCA),
        InfinibandFacts: InfinibandFacts(ports, "sysfs") if ports else NO_HCA,
    }


def outcomes(*nodes: Facts) -> list[Outcome]:
    verdicts = judge([uverbs_not_accessible], {f"n{number}": facts for number, facts in enumerate(nodes)}).verdicts
    return [verdict.outcome for verdict in verdicts]


def test_a_node_that_opens_none_is_named_even_alone() -> None:
    assert judge([uverbs_not_accessible], {"n1": node(mlx5_0=DENIED, mlx5_1=DENIED)}).findings == [
        Finding("NC411", "uverbs-not-accessible", Severity.ERROR, ("n1",),
                "NCCL cannot open 2 of 2 HCAs: mlx5_0, mlx5_1: Permission denied", (), "ls -l /dev/infiniband",
                kind="look", summary="HCAs cannot be opened"),
    ]  # fmt: skip


def test_a_node_that_opens_fewer_than_the_others_is_named() -> None:
    well, ill = node(mlx5_0="", mlx5_1=""), node(mlx5_0="", mlx5_1=GONE)
    assert outcomes(well, well, ill) == [PASSED, PASSED, FAILED]


def test_it_is_silent_where_each_container_was_given_one_of_several() -> None:
    assert outcomes(node(mlx5_0="", mlx5_1=GONE), node(mlx5_0=GONE, mlx5_1="")) == [PASSED, PASSED]


def test_roce_counts_where_another_node_can_open_it() -> None:
    closed, opened = node("Ethernet", mlx5_0=DENIED), node("Ethernet", mlx5_0="")
    assert outcomes(closed, closed) == [SKIPPED, SKIPPED]
    assert outcomes(closed, opened) == [FAILED, PASSED]


def test_a_port_that_is_down_is_no_device_that_does_not_open() -> None:
    well = node(mlx5_0="", mlx5_1="")
    ports = (
        HcaPort("mlx5_0", 1, "Active", "LinkUp", 200.0, "InfiniBand"),
        HcaPort("mlx5_1", 1, "Down", "Polling", 10, ""),
    )
    assert outcomes(well, well, {**well, InfinibandFacts: InfinibandFacts(ports, "sysfs")}) == [PASSED, PASSED, PASSED]


def test_a_port_that_is_down_and_a_node_without_hcas_need_no_device() -> None:
    assert outcomes(node(state="Down", mlx5_0=DENIED), node(), node(mlx5_0="")) == [SKIPPED, SKIPPED, PASSED]


def test_it_is_silent_about_adapters_that_are_no_network_of_nccl_s_own() -> None:
    assert outcomes(node("Unspecified", rdmap0s6=DENIED), node("Unspecified", rdmap0s6="")) == [SKIPPED, SKIPPED]
