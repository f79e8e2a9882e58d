"""NC422: names in NCCL_IB_HCA that a node does not have."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.hca_list_does_not_fit import hca_list_does_not_fit

from tests.logins import line_removed

from .fabric import FAILED, PASSED, SKIPPED, node, outcomes, port

LIST = "=mlx5_0,mlx5_1"
TWO = (port("mlx5_0"), port("mlx5_1"))


def test_a_node_with_other_names_is_named_even_alone() -> None:
    assert judge([hca_list_does_not_fit], {"n1": node(port("ibp24s0"), NCCL_IB_HCA=LIST)}).findings == [
        Finding("NC422", "hca-list-does-not-fit", Severity.ERROR, ("n1",),
                "NCCL_IB_HCA==mlx5_0,mlx5_1 in the environment selects none of the Active ports: ibp24s0:1", (),
                line_removed("NCCL_IB_HCA"), summary="NCCL_IB_HCA does not fit"),
    ]  # fmt: skip


def test_a_node_with_fewer_fitting_names_than_the_others_is_named() -> None:
    well, ill = node(*TWO, NCCL_IB_HCA=LIST), node(port("mlx5_0"), port("mlx5_2"), NCCL_IB_HCA=LIST)
    assert outcomes(judge, hca_list_does_not_fit, well, well, ill) == [PASSED, PASSED, FAILED]


def test_it_is_silent_where_a_port_is_down_or_the_list_fits_or_is_not_set() -> None:
    well, lost = node(*TWO, NCCL_IB_HCA=LIST), node(port("mlx5_0"), port("mlx5_1", state="Down"), NCCL_IB_HCA=LIST)
    assert outcomes(judge, hca_list_does_not_fit, well, well, lost, node(*TWO)) == [PASSED, PASSED, PASSED, SKIPPED]
    assert outcomes(judge, hca_list_does_not_fit, node(port(state="Down"), NCCL_IB_HCA=LIST)) == [SKIPPED]
    assert outcomes(judge, hca_list_does_not_fit, node(*TWO, NCCL_IB_HCA="^mlx5_1")) == [PASSED]
