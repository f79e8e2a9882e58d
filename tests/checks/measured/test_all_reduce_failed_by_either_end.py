"""NC701: a connection that does not come about is told by the end that dials, and may be the fault of the other one."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Login
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Stage, Step
from ncheck.steps.judge import judge
from ncheck_checks.measured.all_reduce_failed import all_reduce_failed

from .results import broken, late, step, well

ECHO = "{} gave up; its own result has the reason"
LETS_NOT_THROUGH = "something between the nodes, such as a firewall, blocks their connections"
NOBODY_KNOWS = "; either end of the connection may be at fault"
EVERY_WAY = "ncheck nodes.txt --mesh all --probe none"


def filtered(one: Step, node: str, to: str) -> NodeResult:
    """Return the part of a node whose connection vanished on the way."""
    return broken(one, words(node, to), at=f"connecting to {to}")


def words(node: str, to: str) -> str:
    return f"filtered: {ip(to)} port 41234 from {ip(node)}: no answer within 5 s"


def gave_up(one: Step, other: str) -> NodeResult:
    return broken(one, ECHO.format(other), at=f"waiting for {other} to connect")


def ip(node: str) -> str:
    return f"10.1.0.{node[1:]}"


def pair(number: int, *group: str) -> Step:
    return step(number, *group, method=Method.TCP)


def found(**results: tuple[NodeResult, ...]) -> list[Finding]:
    """Judge nodes that each have addresses of their own, and one that all have."""
    shared = Interface("docker0", 3, Kind.CONTAINER_BRIDGE, up=True, running=True, mtu=1500,
                       addresses=(Address("172.17.0.1", 16),))  # fmt: skip
    nodes: dict[str, Facts] = {}
    for node, parts in results.items():
        wire = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500,
                         addresses=(Address(ip(node), 24), Address(f"fd00::{node[1:]}", 64)))  # fmt: skip
        nodes[node] = {
            ProbeFacts: ProbeFacts(parts),
            NicFacts: NicFacts((wire, shared)),
            LoginFacts: LoginFacts(Login(reached=True, port=22, user="train")),
        }
    return judge([all_reduce_failed], nodes).findings


# Four nodes, each with two partners: n3 has n4 and n2.
AB, CD, AD, BC = pair(1, "n1", "n2"), pair(1, "n3", "n4"), pair(2, "n1", "n4"), pair(2, "n2", "n3")


def test_who_lets_nobody_in_is_named_by_the_words_of_those_who_came_through_with_others() -> None:
    findings = found(
        n1=(well(AB), well(AD)), n2=(well(AB), filtered(BC, "n2", "n3")), n3=(gave_up(CD, "n4"), gave_up(BC, "n2")),
        n4=(filtered(CD, "n4", "n3"), well(AD)),
    )  # fmt: skip
    assert findings == [
        Finding("NC701", "all-reduce-failed", Severity.ERROR, ("n3",),
                "the TCP transfer between two nodes failed on n3: n[2,4] cannot connect to it, "
                "but can connect to others: " + LETS_NOT_THROUGH,
                (f"n4: {words('n4', 'n3')}", f"n2: {words('n2', 'n3')}"), "sudo nft list ruleset",
                where="n3", kind="look", summary="all-reduce failed"),
    ]  # fmt: skip


def test_who_can_connect_to_nobody_is_named_by_its_own_words() -> None:
    (finding,) = found(
        n1=(well(AB), well(AD)), n2=(well(AB), gave_up(BC, "n3")),
        n3=(filtered(CD, "n3", "n4"), filtered(BC, "n3", "n2")), n4=(gave_up(CD, "n3"), well(AD)),
    )  # fmt: skip
    assert (finding.nodes, finding.where, finding.fix) == (("n3",), "n3", "sudo nft list ruleset")
    assert finding.message == (
        f"the TCP transfer between two nodes failed in connecting to n4 on n3: {LETS_NOT_THROUGH}; "
        "n[2,4] only lost the connection"
    )


def test_of_two_nodes_alone_nothing_tells_which_is_to_blame() -> None:
    (finding,) = found(n1=(filtered(AB, "n1", "n2"),), n2=(gave_up(AB, "n1"),))
    assert (finding.nodes, finding.fix, finding.evidence) == (("n1", "n2"), EVERY_WAY, (f"n1: {words('n1', 'n2')}",))
    assert finding.message == (
        f"the TCP transfer between two nodes failed in connecting to n2 on n[1-2]: {LETS_NOT_THROUGH}{NOBODY_KNOWS}"
    )


def test_a_way_between_nodes_that_both_come_through_with_others_blames_neither() -> None:
    (finding,) = found(
        n1=(well(AB), well(AD)), n2=(well(AB), filtered(BC, "n2", "n3"), well(pair(3, "n2", "n4"))),
        n3=(gave_up(BC, "n2"), well(CD)), n4=(well(CD), well(AD), well(pair(3, "n2", "n4"))),
    )  # fmt: skip
    assert (finding.nodes, finding.fix) == (("n2", "n3"), EVERY_WAY)
    assert finding.message.endswith(NOBODY_KNOWS)


def test_one_partner_alone_bears_no_witness() -> None:
    (finding,) = found(
        n1=(well(AB), well(AD)), n2=(well(AB),), n3=(gave_up(CD, "n4"),), n4=(filtered(CD, "n4", "n3"), well(AD))
    )
    assert finding.nodes == ("n3", "n4")


def test_partners_that_came_through_with_nobody_bear_no_witness() -> None:
    """All nodes filter, or what is between them."""
    (finding,) = found(
        n1=(filtered(AB, "n1", "n2"), filtered(AD, "n1", "n4")), n2=(gave_up(AB, "n1"), filtered(BC, "n2", "n3")),
        n3=(filtered(CD, "n3", "n4"), gave_up(BC, "n2")), n4=(gave_up(CD, "n3"), gave_up(AD, "n1")),
    )  # fmt: skip
    assert (finding.nodes, finding.fix) == (("n1", "n2", "n3", "n4"), EVERY_WAY)


def nccl(to: str, why: str) -> str:
    return f"n9:61:62 [0] NCCL WARN socketPollConnect: connect to {to}<35561> returned {why}, exceeded error retry"


def test_in_a_step_of_many_the_address_tells_who_is_the_other_end() -> None:
    """As the pairs had it, and the sum of all nodes once more: by IPv4 and by IPv6."""
    whole = step(3, "n1", "n2", "n3", "n4", stage=Stage.ALL)
    one, other, last = step(1, "n1", "n2"), step(1, "n3", "n4"), step(2, "n1", "n4")
    findings = found(
        n1=(well(one), well(last), broken(whole, "system error", nccl("fd00::3", "Connection timed out"))),
        n2=(well(one), broken(whole, "system error", nccl("10.1.0.3", "Connection timed out"))),
        n3=(late(other), late(whole)),
        n4=(broken(other, "system error", nccl("10.1.0.3", "Connection timed out")), well(last), late(whole)),
    )
    assert [finding.nodes for finding in findings] == [("n3",)]
    assert findings[0].message.startswith("the all-reduce between two nodes and 1 more failed on n3: n[1-2,4] cannot ")


def test_a_step_of_many_by_itself_names_both_ends_where_an_address_tells_them() -> None:
    whole = step(1, "n1", "n2", "n3", stage=Stage.ALL)
    refused = broken(whole, "system error", nccl("10.1.0.3", "Connection refused"))
    (finding,) = found(n1=(refused,), n2=(late(whole),), n3=(late(whole),))
    assert (finding.nodes, finding.fix) == (("n1", "n3"), EVERY_WAY)
    (finding,) = found(n1=(broken(whole, "system error", nccl("10.9.9.9", "Connection timed out")),),
                       n2=(late(whole),), n3=(late(whole),))  # fmt: skip
    assert finding.nodes == ("n1",)
    assert finding.message.endswith(f"; n[2-3] only lost the connection{NOBODY_KNOWS}")


def test_a_node_that_names_a_surer_cause_of_its_own_is_asked_first() -> None:
    files = "n3:77:78 [0] socket.cc:163 NCCL WARN socketTryAccept: Accept failed: Too many open files"
    one = step(1, "n1", "n3")
    (finding,) = found(
        n1=(broken(one, "system error", nccl("10.1.0.3", "Connection refused")),),
        n3=(broken(one, "system error", files),),
    )
    assert (finding.nodes, finding.fix) == (
        ("n3",), "put into the script of the job, before it starts the ranks: ulimit -n 131072"
    )  # fmt: skip


def test_what_ranks_of_gloo_wait_for_names_the_other_ends() -> None:
    whole = step(1, "n1", "n2", "n3", "n4", stage=Stage.ALL, method=Method.GLOO)
    waits = "filtered: 10.1.0.3 port 41234 from 10.1.0.1, 10.1.0.4 port 41235 from 10.1.0.1: no answer within 30 s"
    (finding,) = found(n1=(broken(whole, waits),), n2=(late(whole),), n3=(late(whole),), n4=(late(whole),))
    assert finding.nodes == ("n1", "n3", "n4")
    assert finding.message.endswith(f"; n2 only lost the connection{NOBODY_KNOWS}")
