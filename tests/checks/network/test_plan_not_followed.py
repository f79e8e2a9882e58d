"""NC324: with the plan's variables, NCCL picks another interface than planned."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.plan.planned_pick import PlannedPickFacts
from ncheck.steps.judge import judge
from ncheck_checks.network.plan_not_followed import plan_not_followed

from .picked import alone, nic, picks

ETH0, ETH1 = nic("eth0", 2), nic("eth1", 3)
PLAN = {"NCCL_SOCKET_IFNAME": "=eth0"}


def tried(pick: NcclPickFacts, conf: str = "", **variables: str) -> dict[str, Facts]:
    nodes = alone(ETH0, ETH1, conf=conf, **variables)
    return {"n1": {**nodes["n1"], PlannedPickFacts: PlannedPickFacts(pick, PLAN, ("eth0",))}}


def outcome(nodes: dict[str, Facts]) -> Outcome:
    return judge([plan_not_followed], nodes).verdicts[0].outcome


def test_another_interface_than_the_plans_is_named() -> None:
    assert judge([plan_not_followed], tried(picks("10.3.0.5"))).findings == [
        Finding("NC324", "plan-not-followed", Severity.ERROR, ("n1",),
                "with the plan's NCCL_SOCKET_IFNAME==eth0, NCCL picks eth1 (planned: eth0)",
                ("asked NCCL 2.28.3 itself",), "ip -br address", kind="look", summary="NCCL does not follow the plan"),
    ]  # fmt: skip


def test_what_weighs_more_than_the_plan_is_named_with_its_file() -> None:
    nodes = tried(picks("", error="Bootstrap : no socket interface found"), conf="NCCL_SOCKET_FAMILY=AF_INET6")
    (finding,) = judge([plan_not_followed], nodes).findings
    assert finding.message == (
        "with the plan's NCCL_SOCKET_IFNAME==eth0, NCCL stops: Bootstrap : no socket interface found (planned: eth0)"
    )
    assert finding.evidence == (
        "asked NCCL 2.28.3 itself", "NCCL_SOCKET_FAMILY=AF_INET6 in /etc/nccl.conf has an effect too",
    )  # fmt: skip
    assert finding.fix == "sudo sed -i '/^NCCL_SOCKET_FAMILY=/d' /etc/nccl.conf"


def test_an_address_that_no_interface_was_seen_to_have_is_not_the_plans() -> None:
    (finding,) = judge([plan_not_followed], tried(picks("10.9.9.9"))).findings
    assert finding.message == "with the plan's NCCL_SOCKET_IFNAME==eth0, NCCL picks 10.9.9.9 (planned: eth0)"


def test_the_planned_interface_at_a_link_local_address_is_not_what_was_planned() -> None:
    wire = replace(ETH0, addresses=(*ETH0.addresses, Address("fe80::1", 64, "link")))
    nodes = tried(replace(picks("fe80::1"), scope=2))
    nodes["n1"] = {**nodes["n1"], NicFacts: NicFacts((wire, ETH1))}
    (finding,) = judge([plan_not_followed], nodes).findings
    assert finding.message.endswith("NCCL picks eth0 at a link-local address (planned: eth0)")


def test_it_is_silent_where_the_plan_holds() -> None:
    assert outcome(tried(picks("10.2.0.5"))) is Outcome.PASSED


def test_where_nothing_was_tried_there_is_nothing_to_judge() -> None:
    nodes = alone(ETH0)
    nodes["n1"] = {**nodes["n1"], PlannedPickFacts: Absent("the plan sets nothing that NCCL reads")}
    assert outcome(nodes) is Outcome.SKIPPED
    assert outcome(tried(picks("", rendezvous="10.2.0.1:4444"))) is Outcome.SKIPPED


def test_an_answer_that_never_came_is_unknown() -> None:
    nodes = alone(ETH0)
    nodes["n1"] = {**nodes["n1"], PlannedPickFacts: Unread("NCCL did not answer within 10 s")}
    assert outcome(nodes) is Outcome.UNKNOWN
