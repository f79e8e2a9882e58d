"""TCP alone, measured between real hosts: who is slow is named, and every byte goes by the plan's interface."""

from __future__ import annotations

from collections.abc import Iterable

from tests.skips import cannot

from . import faults, hosts
from .conftest import why_not
from .hosts import Lab
from .node import Node
from .probing import IDLE, met, named, probed, sent, told
from .wiring import TwoBridges

MESH = "32768-60999"  # the ports that the kernel picks for listeners
MOVED = 6 * 2**20  # bytes: 1 MiB, a warm-up and five repeats


def pace(nodes: Iterable[Node], rate: str) -> None:
    """Let their links carry so much, far below what two busy cores do: the figures are then the links' alone."""
    for node in nodes:
        node.sh(f"tc qdisc add dev eth0 root tbf rate {rate} burst 64kb latency 300ms")


def test_healthy_hosts_are_measured_in_pairs_over_the_interface_that_the_plan_means_and_no_other(wide_lab: Lab) -> None:
    run = probed(wide_lab, "--probe", "tcp", "--sizes", "1M", select="NC7")

    measured = {outcome for (code, _), outcome in run.verdicts().items() if code.startswith("NC7")}
    assert measured <= {"passed", "skipped"}, run.report["findings"]
    assert (told(run)["ran"], told(run)["means"], told(run)["launcher"]) == (True, "tcp", "agents")
    assert met(run) == set(wide_lab.names)
    assert all(row["measured"] > 0 and row["failed"] == "" for row in run.report["measurements"])
    assert {row["by"] for row in run.report["measurements"]} == {"sockets, no library"}
    assert not any("NCCL" in row["what"] for row in run.report["measurements"])
    planned, others = sent(run, planned=True), sent(run, planned=False)
    assert {*planned} == {(node.name, node.nics[0]) for node in wide_lab.nodes}
    assert min(planned.values()) > MOVED
    assert max(others.values(), default=0) < IDLE


def test_the_host_behind_a_slow_interface_is_named_after_a_second_partner(lab: Lab) -> None:
    slow = lab.nodes[2]
    pace((node for node in lab.nodes if node is not slow), "160mbit")
    pace([slow], "20mbit")

    run = probed(lab, "--probe", "tcp", select="NC7")

    assert named(run, "NC713") == [slow.name], run.report["findings"]
    (worst,) = (row["protocol"] for row in run.report["measurements"] if ": the worst of" in row["what"])
    assert (worst["repeats"], worst["wanted"]) == (3, 5), "there was no time for more"
    assert "node03 is slow with every partner through eth0: " in run.finding("NC713")["message"]
    assert run.finding("NC713")["severity"] == "warning"
    partners = {node for pair in told(run)["pairs"] if slow.name in pair["nodes"] for node in pair["nodes"]}
    assert len(partners - {slow.name}) >= 2


def test_a_host_that_lets_no_connection_in_is_named_by_those_who_met_it_and_leaves_nothing(lab: Lab) -> None:
    deaf = lab.nodes[2]
    pace(lab.nodes, "160mbit")
    faults.firewall(deaf, f"tcp dport {MESH} {faults.SYN} drop")

    run = probed(lab, "--probe", "tcp", "--mesh", "none", select="NC7")

    assert run.exit_code == 1
    assert named(run, "NC701") == [deaf.name], run.report["findings"]
    told_of = run.finding("NC701")
    assert "failed on node03: node[02,04] cannot connect to it, but can connect to others: " in told_of["message"]
    assert (told_of["where"], told_of["kind"], told_of["fix"]) == (deaf.name, "look", "sudo nft list ruleset")
    assert {line.split(": ")[0] for line in told_of["evidence"]} == {"node02", "node04"}
    assert named(run, "NC713") == [deaf.name], run.report["findings"]
    assert met(run) == {"node01", "node02", "node04"}
    failed = [row["failed"] for row in run.report["measurements"] if row["failed"]]
    assert failed
    assert all("filtered: 10.77.0.3 port " in words and "no answer within 5 s" in words for words in failed)


def test_where_the_mesh_has_found_the_way_barred_nothing_is_measured(lab: Lab) -> None:
    faults.firewall(lab.nodes[2], f"tcp dport {MESH} {faults.SYN} drop")

    run = probed(lab, "--probe", "tcp")

    assert run.exit_code == 1
    assert told(run)["ran"] is False
    assert told(run)["reason"] == "fix NC311 first"


def test_a_slow_cable_between_two_switches_is_the_boundary_and_no_host_is_named_and_a_fast_one_is_nothing() -> None:
    if why := why_not():
        cannot(why)
    wiring = TwoBridges(half=3)
    with hosts.lab(6, wiring) as two:
        groups = "left=node[01-03];right=node[04-06]"
        pace(two.nodes, "160mbit")

        well = probed(two, "--probe", "tcp", "--groups", groups, select="NC7")

        assert {one["code"] for one in well.report["findings"]} == set(), well.report["findings"]
        assert well.verdicts()["NC736", "node01"] == "passed"
        assert told(well)["rounds"] == 2, "a healthy cluster is asked nothing more"

        for end in wiring.trunk:
            two.head(
                "tc", "qdisc", "add", "dev", end, "root", "tbf", "rate", "24mbit", "burst", "64kb", "latency", "300ms"
            )
        sick = probed(two, "--probe", "tcp", "--groups", groups, select="NC7")

    assert sick.failed() == {"NC736": {*two.names}}, sick.report["findings"]
    found = sick.finding("NC736")
    assert found["message"].startswith("slow between left (node[01-03]) and right (node[04-06]): ")
    assert (found["severity"], found["fix"], found["where"]) == ("warning", "tracepath -n node06", "node01")
    assert (sick.exit_code, sick.report["bad"]) == (0, [])
