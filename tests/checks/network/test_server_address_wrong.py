"""NC341: the address that vLLM and SGLang give to other nodes."""

from __future__ import annotations

import pytest
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.server_address_wrong import server_address_wrong

from tests.checks.network.servers import server
from tests.logins import line_removed


def test_one_value_on_all_nodes_is_right_on_one_of_them() -> None:
    nodes = {f"n{number}": server(number, VLLM_HOST_IP="10.1.0.1") for number in (1, 2)}
    assert judge([server_address_wrong], nodes).findings == [
        Finding("NC341", "server-address-wrong", Severity.WARNING, ("n2",),
                "every login has VLLM_HOST_IP=10.1.0.1, which is the address of n1", ("set in ~/.bashrc, line 1",),
                line_removed("VLLM_HOST_IP"), summary="VLLM_HOST_IP is wrong"),
    ]  # fmt: skip


@pytest.mark.parametrize(("address", "why"), [
    ("127.0.0.1", "leads every other node to itself"),
    ("172.17.0.1", "is the address of docker0 (container-bridge), where no other node reaches this one"),
    ("10.9.0.1", "no interface of this node has"),
    ("0.0.0.0", "no interface of this node has"),  # noqa: S104  nothing is bound
    ("fe80::1", "is link-local: it leads nowhere without the name of an interface behind it"),
    ("gpu01", "is no address: Ray and vLLM know nodes by their addresses, not by names"),
])  # fmt: skip
def test_an_address_that_leads_nowhere_is_said_with_the_reason(address: str, why: str) -> None:
    nodes = {"n1": server(1, SGLANG_HOST_IP=address), "n2": server(2)}
    quoted = f"'{address}'" if address == "gpu01" else address
    assert [found.message for found in judge([server_address_wrong], nodes).findings] == [
        f"every login has SGLANG_HOST_IP={quoted}, which {why}"
    ]


def test_each_nodes_own_address_is_right_whatever_its_version_and_so_is_any_for_one_node_alone() -> None:
    for own in ("10.1.0.{}", "10.2.0.{}", "fd00:0::{}", "fe80::{}%eth0"):
        nodes = {f"n{number}": server(number, VLLM_HOST_IP=own.format(number)) for number in (1, 2)}
        assert judge([server_address_wrong], nodes).findings == []
    assert judge([server_address_wrong], {"n1": server(1, VLLM_HOST_IP="127.0.0.1")}).findings == []
