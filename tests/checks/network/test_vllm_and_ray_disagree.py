"""NC343: vLLM asks Ray for a node by an address that Ray does not know."""

from __future__ import annotations

import pytest
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.vllm_and_ray_disagree import vllm_and_ray_disagree

from tests.checks.network.servers import server


def test_what_vllm_would_take_by_itself_is_compared_where_it_is_installed() -> None:
    """Ray was started on the fast network, VLLM_HOST_IP was not set (eugr/spark-vllm-docker#227)."""
    nodes = {"n1": server(1, ray="10.2.0.1", vllm="0.11.0"), "n2": server(2, ray="10.2.0.2")}
    assert judge([vllm_and_ray_disagree], nodes).findings == [
        Finding("NC343", "vllm-and-ray-disagree", Severity.WARNING, ("n1",),
                "Ray knows this node by 10.2.0.1, but VLLM_HOST_IP is unset, and vLLM would call this node 10.1.0.1",
                ("pid 40 raylet",), "ncheck plan nodes.txt --for vllm", where="here", kind="look",
                summary="vLLM and Ray call it by different addresses"),
    ]  # fmt: skip


@pytest.mark.parametrize(("node", "words"), [
    (server(1, ray="10.2.0.1", VLLM_HOST_IP="10.1.0.1"), "every login has VLLM_HOST_IP=10.1.0.1"),
    (server(1, ray="10.2.0.1", of_ray="gpu01"), "its own processes have VLLM_HOST_IP='gpu01'"),
    (server(1, ray="gpu01", VLLM_HOST_IP="10.1.0.1"), "every login has VLLM_HOST_IP=10.1.0.1"),
])  # fmt: skip
def test_a_variable_that_is_another_address_is_named(node: Facts, words: str) -> None:
    (found,) = judge([vllm_and_ray_disagree], {"n1": node}).findings
    assert found.message.partition(", but ")[2] == words


def test_where_they_agree_or_one_of_them_is_not_there_nothing_is_said() -> None:
    for node in (
        server(1, vllm="0.11.0", VLLM_HOST_IP="10.9.0.9"),
        server(1, ray="10.1.0.1", vllm="0.11.0"),
        server(1, ray="10.2.0.1", of_ray="10.2.0.1", vllm="0.11.0", VLLM_HOST_IP="10.2.0.1"),
        server(1, ray="fd00::1", of_ray="fd00:0::1", vllm="0.11.0"),
        server(1, ray="10.2.0.1"),
    ):
        assert judge([vllm_and_ray_disagree], {"n1": node}).findings == []


def test_in_a_container_with_the_nodes_network_a_login_says_nothing_of_vllm() -> None:
    """`docker run --network host` with Ray and vLLM in it: a login's variables and packages are not those there."""
    of_login = {"VLLM_HOST_IP": "10.1.0.1"}
    judged = judge([vllm_and_ray_disagree], {
        "unset": server(1, ray="10.2.0.1", vllm="0.11.0", contained=True, **of_login),
        "alike": server(2, ray="10.2.0.2", of_ray="10.2.0.2", vllm="0.11.0", contained=True, **of_login),
        "wrong": server(3, ray="10.2.0.3", of_ray="10.1.0.3", contained=True, **of_login),
    })  # fmt: skip
    assert [(found.nodes, found.message) for found in judged.findings] == [
        (("wrong",), "Ray knows this node by 10.2.0.3, but its own processes have VLLM_HOST_IP=10.1.0.3"),
    ]
    assert {one.nodes: (one.outcome, one.reason) for one in judged.verdicts if one.nodes != ("wrong",)} == {
        ("alike",): (Outcome.PASSED, ""),
        ("unset",): (Outcome.SKIPPED,
                     "Ray runs in a container, without VLLM_HOST_IP: which address vLLM takes there was not read"),
    }  # fmt: skip
