"""NC314: small messages pass and large ones do not, and no other subnet carries."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.links import LinkCause
from ncheck.model.cluster import Facts
from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.network.path_mtu_hole import path_mtu_hole

from .linked import ALL, Broken, Dialler, cluster, name, ways

HOLE = {**ways([2], ALL, LinkCause.LARGE_LOST), **ways(ALL, [2], LinkCause.LARGE_LOST_BACK)}
MEANING = "no other subnet is known to connect all nodes, so a job hangs at its first large message"


def nodes(broken: Broken, mtus: Mapping[int, int]) -> dict[str, Facts]:
    """Return four nodes on one subnet whose interfaces have these MTUs, by node."""
    return {name(number): Dialler(number, 4, {1: broken}, {1: mtus.get(number, 1500)}).facts() for number in ALL}


def test_the_node_that_sends_what_is_too_large_is_named_with_both_mtus_and_the_one_to_set() -> None:
    (finding,) = judge([path_mtu_hole], nodes(HOLE, {2: 9000})).findings
    assert finding.nodes == ("n2",)
    assert finding.message == (
        "large packets from n2 are lost on 10.1.0.0/24, to every other node: small packets pass "
        f"(MTU 9000 on n2, 1500 on n1); {MEANING}"
    )
    assert (finding.where, finding.fix) == ("n2", "sudo ip link set dev eth1 mtu 1500")
    assert len(finding.evidence) == 6


def test_where_both_ends_have_one_mtu_the_hole_lies_between_and_a_ping_shows_it() -> None:
    everywhere = ways(ALL, ALL, LinkCause.LARGE_LOST)
    (finding,) = judge([path_mtu_hole], nodes(everywhere, dict.fromkeys(ALL, 9000))).findings
    assert finding.nodes == ("n1", "n2", "n3", "n4")
    assert finding.message == (
        "large packets are lost on 10.1.0.0/24 between all nodes: small packets pass "
        f"(MTU 9000 at both ends: something between them has a smaller one); {MEANING}"
    )
    assert (finding.where, finding.fix) == ("n1", "ping -c 3 -M do -s 8972 -I 10.1.0.1 10.1.0.2")


def test_packets_lost_on_the_way_back_are_reported_in_that_direction() -> None:
    (finding,) = judge([path_mtu_hole], nodes(ways([3], [4], LinkCause.LARGE_LOST_BACK), {})).findings
    assert finding.message.startswith("large packets from n4 to n3 are lost on 10.1.0.0/24")
    assert (finding.where, finding.fix) == ("n4", "ping -c 3 -M do -s 1472 -I 10.1.0.4 10.1.0.3")


def test_it_is_silent_where_mtus_differ_and_everything_passes() -> None:
    verdicts = judge([path_mtu_hole], nodes({}, {2: 9000})).verdicts
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}


def test_it_is_silent_where_the_hole_is_in_a_network_that_no_job_needs() -> None:
    verdicts = judge([path_mtu_hole], cluster({1: {}, 2: HOLE})).verdicts
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}
