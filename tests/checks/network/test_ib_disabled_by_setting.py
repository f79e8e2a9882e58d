"""NC331: a left-over line keeps NCCL off ports that every node has."""

from __future__ import annotations

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.ib_disabled_by_setting import ib_disabled_by_setting

from tests.logins import line_removed

from .settings import CONF, DARK, INFINIBAND, node

PORTS = (INFINIBAND,)


def test_disabled_infiniband_is_reported_with_its_place_and_the_line_that_removes_it() -> None:
    nodes = {
        "n1": node(ports=PORTS, NCCL_IB_DISABLE="1"),
        "n2": node("NCCL_IB_DISABLE=1", ports=PORTS),
        "n3": node(ports=PORTS),
    }
    told = "NCCL ignores its InfiniBand and RoCE ports and sends all data over TCP"
    assert judge([ib_disabled_by_setting], nodes).findings == [
        Finding("NC331", "ib-disabled-by-setting", Severity.WARNING, ("n1",),
                f"NCCL_IB_DISABLE=1 in the environment: {told}", (), line_removed("NCCL_IB_DISABLE"),
                summary="NCCL_IB_DISABLE=1 is set"),
        Finding("NC331", "ib-disabled-by-setting", Severity.WARNING, ("n2",),
                f"NCCL_IB_DISABLE=1 in {CONF}: {told}", (), f"sudo sed -i '/^NCCL_IB_DISABLE=/d' {CONF}",
                summary="NCCL_IB_DISABLE=1 is set"),
    ]  # fmt: skip


def test_sockets_that_are_asked_for_and_a_list_that_takes_no_port_count_as_much() -> None:
    nodes = {"n1": node(ports=PORTS, NCCL_NET="socket"), "n2": node(ports=PORTS, NCCL_IB_HCA="=mlx5_7")}
    told = [
        found.message.partition(" in the environment: ") for found in judge([ib_disabled_by_setting], nodes).findings
    ]
    assert [(setting, harm) for setting, _, harm in told] == [
        ("NCCL_NET=socket", "NCCL sends all data over TCP instead of its InfiniBand and RoCE ports"),
        ("NCCL_IB_HCA==mlx5_7", "it selects none of the Active ports (mlx5_0:1), and all data goes over TCP"),
    ]


def test_it_is_silent_where_nothing_is_switched_off() -> None:
    nodes = {
        "n1": node(ports=PORTS, NCCL_IB_DISABLE="0", NCCL_NET="IB", NCCL_NET_PLUGIN="none"),
        "n2": node(ports=PORTS, NCCL_IB_DISABLE="no", NCCL_IB_HCA="mlx5"),
    }
    judged = judge([ib_disabled_by_setting], nodes)
    assert (judged.findings, {one.outcome for one in judged.verdicts}) == ([], {Outcome.PASSED})


def test_it_is_silent_and_skipped_where_some_node_has_only_tcp() -> None:
    for other in (node(), node(ports=(DARK,))):
        judged = judge([ib_disabled_by_setting], {"n1": node(ports=PORTS, NCCL_IB_DISABLE="1"), "n2": other})
        assert (judged.findings, {one.outcome for one in judged.verdicts}) == ([], {Outcome.SKIPPED})
