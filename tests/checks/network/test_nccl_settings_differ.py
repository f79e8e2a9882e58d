"""NC335: a variable of NCCL's is set on some nodes only, or otherwise."""

from __future__ import annotations

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_settings_differ import nccl_settings_differ

from tests.logins import line_changed

from .settings import node


def test_a_node_with_a_setting_of_its_own_is_named_with_the_line_that_takes_it_away() -> None:
    nodes = {"n1": node(), "n2": node(), "n3": node("NCCL_BUFFSIZE=8388608")}
    assert judge([nccl_settings_differ], nodes).findings == [
        Finding("NC335", "nccl-settings-differ", Severity.WARNING, ("n3",),
                "NCCL_BUFFSIZE differs: not set on n[1-2], 8388608 on n3 (2 to 1)", (),
                "sudo sed -i '/^NCCL_BUFFSIZE=/d' /etc/nccl.conf", summary="NCCL_BUFFSIZE differs"),
    ]  # fmt: skip


def test_a_node_that_lacks_a_setting_is_named_with_the_line_that_sets_it() -> None:
    nodes = {"n1": node("NCCL_IB_TC=106"), "n2": node("NCCL_IB_TC=106"), "n3": node()}
    in_files = judge([nccl_settings_differ], nodes).findings
    nodes = {"n1": node(NCCL_IB_TC="106"), "n2": node(NCCL_IB_TC="106"), "n3": node(NCCL_IB_TC="0")}
    in_shells = judge([nccl_settings_differ], nodes).findings
    assert [(found.nodes, found.fix) for found in (*in_files, *in_shells)] == [
        (("n3",), "echo NCCL_IB_TC=106 | sudo tee -a /etc/nccl.conf"), (("n3",), line_changed("NCCL_IB_TC", "106")),
    ]  # fmt: skip


def test_it_is_silent_about_what_is_each_nodes_own_and_about_one_value_in_two_places() -> None:
    nodes = {
        "n1": node("NCCL_IB_TC=106", NCCL_HOSTID="a", NCCL_SOCKET_IFNAME="=eno1", NCCL_DEBUG="INFO"),
        "n2": node(NCCL_IB_TC="106", NCCL_HOSTID="b", NCCL_SOCKET_IFNAME="=eth0", NCCL_IB_HCA="=mlx5_0"),
    }
    judged = judge([nccl_settings_differ], nodes)
    assert (judged.findings, {one.outcome for one in judged.verdicts}) == ([], {Outcome.PASSED})
