"""NC338: with RDMA on every node, what NCCL would use over TCP is for information."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.network.nccl_fallback_uses_virtual import nccl_fallback_uses_virtual

from .test_nccl_also_uses_virtual import ACTIVE, node, veth


def test_the_veth_is_named_as_what_a_fallback_would_use() -> None:
    one = node(1, veth(1), InfinibandFacts=ACTIVE)
    assert judge([nccl_fallback_uses_virtual], {"n1": one, "n2": node(2, InfinibandFacts=ACTIVE)}).findings == [
        Finding("NC338", "nccl-fallback-uses-virtual", Severity.INFO, ("n1",),
                "if NCCL fell back to TCP, it would also use veth3f9a1c2 (a link-local address)",
                ("NCCL uses eno1 10.0.0.1, veth3f9a1c2 fe80::1: n1",), "ip -br address", kind="look"),
    ]  # fmt: skip


def outcome(one: Facts, **changed: object) -> Outcome:
    nodes = {"n1": one, "n2": node(2, **{"InfinibandFacts": ACTIVE, **changed})}
    return judge([nccl_fallback_uses_virtual], nodes).verdicts[0].outcome


def test_it_is_silent_without_such_an_interface_and_where_tcp_carries_the_data() -> None:
    assert outcome(node(1, InfinibandFacts=ACTIVE)) is Outcome.PASSED
    with_veth = node(1, veth(1), InfinibandFacts=ACTIVE)
    assert outcome(with_veth, InfinibandFacts=Absent("no InfiniBand or RoCE device")) is Outcome.SKIPPED
    assert outcome(with_veth, InfinibandFacts=Unread("ibstat did not answer")) is Outcome.SKIPPED
    assert outcome(with_veth, NCCL_IB_DISABLE="1") is Outcome.SKIPPED
    assert outcome(node(1, veth(1), InfinibandFacts=ACTIVE, NCCL_SOCKET_IFNAME="=eno1")) is Outcome.PASSED
