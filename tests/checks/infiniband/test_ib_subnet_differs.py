"""NC413: the same rail in different subnets."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_subnet_differs import ib_subnet_differs

from .fabric import PASSED, SKIPPED, messages, node, outcomes, port

OTHER = "fe80:0000:0000:0001"


def test_a_port_with_another_subnet_prefix_is_named() -> None:
    well, ill = node(port("mlx5_0"), port("mlx5_1")), node(port("mlx5_0"), port("mlx5_1", prefix=OTHER))
    assert judge([ib_subnet_differs], {"n1": well, "n2": well, "n3": ill}).findings == [
        Finding("NC413", "ib-subnet-differs", Severity.ERROR, ("n3",),
                "mlx5_1 port 1: in different subnets: fe80::, SM LID 1 on n[1-2], fe80:0:0:1::, SM LID 1 on n3"
                " (2 to 1)",
                (), "sudo iblinkinfo", kind="look", summary="mlx5_1 port 1 is in another subnet"),
    ]  # fmt: skip


def test_another_subnet_manager_is_another_subnet() -> None:
    assert messages(judge, ib_subnet_differs, node(port()), node(port(sm_lid=7))) == [
        (
            "mlx5_0 port 1: in different subnets: fe80::, SM LID 1 on n1, fe80::, SM LID 7 on n2 (1 to 1)",
            ("n1", "n2"),
        )
    ]


def test_nodes_that_name_their_hcas_differently_are_compared_where_each_has_one_subnet() -> None:
    one, other, two = node(port("mlx5_0")), node(port("ibp1", prefix=OTHER)), node(port("a"), port("b", prefix=OTHER))
    assert messages(judge, ib_subnet_differs, one, one, other) == [
        ("all ports: in different subnets: fe80::, SM LID 1 on n[1-2], fe80:0:0:1::, SM LID 1 on n3 (2 to 1)", ("n3",))
    ]
    assert outcomes(judge, ib_subnet_differs, one, one, two) == [PASSED, PASSED, PASSED]


def test_it_is_silent_about_rails_with_subnets_of_their_own_and_ports_that_nccl_does_not_use() -> None:
    rails = node(port("mlx5_0"), port("mlx5_1", prefix=OTHER, sm_lid=9))
    assert outcomes(judge, ib_subnet_differs, rails, rails) == [PASSED, PASSED]
    down = node(port("mlx5_0"), port("mlx5_1", prefix="fe80:0000:0000:0009", sm_lid=0, state="Down"))
    assert outcomes(judge, ib_subnet_differs, rails, down) == [PASSED, PASSED]
    kept = node(port("mlx5_0"), port("mlx5_1", sm_lid=3), NCCL_IB_HCA="=mlx5_0")
    assert outcomes(judge, ib_subnet_differs, rails, kept) == [PASSED, PASSED]
    assert outcomes(judge, ib_subnet_differs, node(port("a", "Ethernet")), node(port("a", "Ethernet"))) == [
        SKIPPED,
        SKIPPED,
    ]
