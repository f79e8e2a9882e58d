"""--drop-bad: the run goes on with the nodes without errors, on what is known already."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.names import NameFacts, Resolved
from ncheck.facts.ssh_peers import PeerSsh, PeerSshFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Cause
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import BadNode, NodeSummary, Probe, Report
from ncheck.observer import Silent
from ncheck.pipeline import replay
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Skipped, Stage, Step
from ncheck.report.json import as_json
from ncheck.report.summary import headline, left_out
from ncheck.report.text import fold_findings
from ncheck.settings import Ignore, Settings
from ncheck.steps.bad_nodes import found_bad, to_drain
from ncheck.steps.registry import load_checks

FIXTURES = Path(__file__).parents[2] / "fixtures"
POLLING = Finding("NC402", "ib-port-polling", Severity.ERROR, ("b",), "mlx5_3 polls", (), "ibstat mlx5_3")
UNKNOWN = Verdict("gpu-count-differs", "NC501", ("c",), Outcome.UNKNOWN, "nvidia-smi hangs")


def replayed(cluster: str, **told: object) -> Report:
    settings = replace(Settings(launcher="mpirun", drop_bad=True), **told)  # type: ignore[arg-type]
    return replay(str(FIXTURES / cluster), settings, Silent())


def report(*findings: Finding, verdicts: tuple[Verdict, ...] = (), plan: LaunchPlan | None = None) -> Report:
    nodes = tuple(NodeSummary(name, reached=True) for name in ("a", "b", "c"))
    return Report(1, nodes, verdicts, findings, plan or LaunchPlan(), (), Probe(ran=False, reason=""), "1", 1.0, ())


def bad(one: Report, settings: Settings | None = None) -> dict[str, str]:
    found = found_bad(one, load_checks().select(()), settings or Settings())
    return {bad.node: bad.reason for bad in found}


def test_a_node_with_an_error_is_dropped_and_all_else_is_judged_without_it() -> None:
    judged = replayed("port-polling")
    assert list(judged.dropped) == ["gpu02"]
    assert judged.dropped["gpu02"].startswith("NC402 ib-port-polling: ")
    assert [node.name for node in judged.nodes] == ["gpu01", "gpu03", "gpu04"]
    assert {node for one in judged.verdicts for node in one.nodes} == {"gpu01", "gpu03", "gpu04"}
    assert (judged.exit_code, judged.findings) == (0, ())
    assert " -np 24 -H gpu01:8,gpu03:8,gpu04:8 " in judged.plan.lines["mpirun"]
    assert '"dropped": {"gpu02": "NC402' in as_json(judged)


def test_a_node_that_was_not_reached_is_dropped_with_its_cause() -> None:
    judged = replayed("one-node-down")
    assert judged.dropped == {"gpu03": "not reached: refused: connect to 10.20.0.13 port 22: Connection refused"}
    assert judged.exit_code == 0


@pytest.fixture
def two_nodes(tmp_path: Path) -> Path:
    """Return a recording of two nodes, of which gpu03 is down."""
    for position, name in enumerate(("gpu02", "gpu03")):
        recorded = json.loads((FIXTURES / "one-node-down" / f"{name}.json").read_text())
        (tmp_path / f"{name}.json").write_text(json.dumps({**recorded, "position": position, "of": 2}))
    return tmp_path


@pytest.mark.slow
def test_of_two_nodes_only_the_dead_one_is_dropped(two_nodes: Path) -> None:
    judged = replay(str(two_nodes), Settings(launcher="mpirun", drop_bad=True), Silent())
    assert list(judged.dropped) == ["gpu03"]
    assert [node.name for node in judged.nodes] == ["gpu02"]


def test_of_two_nodes_only_the_dead_one_is_bad(two_nodes: Path) -> None:
    judged = replay(str(two_nodes), Settings(), Silent())
    assert list(bad(judged)) == ["gpu03"]
    left = [verdict for verdict in judged.verdicts if "gpu02" in verdict.nodes]
    assert [verdict for verdict in left if verdict.outcome is Outcome.UNKNOWN] == []
    assert any(verdict.reason == "no other node could be reached" for verdict in left)
    assert judged.exit_code == 1
    text = headline(judged, fold_findings(judged.findings)).text
    assert text == "Not ready: gpu03: SSH refused on port 22; launch plan not usable"


def test_without_it_no_node_is_dropped() -> None:
    judged = replayed("port-polling", drop_bad=False)
    assert (judged.dropped, len(judged.nodes)) == ({}, 4)


def test_a_healthy_cluster_loses_nobody() -> None:
    assert replayed("healthy-4x8-h100").dropped == {}


def test_what_names_an_error_or_could_not_tell_is_bad_and_the_rest_is_not() -> None:
    assert bad(report(POLLING, verdicts=(UNKNOWN,))) == {
        "b": "NC402 ib-port-polling: mlx5_3 polls",
        "c": "NC501 gpu-count-differs unknown: nvidia-smi hangs",
    }


def test_with_force_what_could_not_be_told_does_no_harm_and_an_error_still_does() -> None:
    assert list(bad(report(POLLING, verdicts=(UNKNOWN,)), Settings(force=True))) == ["b"]


def test_what_is_ignored_makes_no_node_bad() -> None:
    settings = Settings(ignore=(Ignore("NC501", "c"),))
    assert bad(report(replace(POLLING, ignored=True), verdicts=(UNKNOWN,)), settings) == {}


def test_a_warning_makes_no_node_bad() -> None:
    assert bad(report(replace(POLLING, severity=Severity.WARNING))) == {}


def test_what_the_plan_itself_mends_makes_no_node_bad() -> None:
    astray = Finding("NC304", "nccl-would-pick-virtual", Severity.ERROR, ("a", "b", "c"), "docker0", (), "x")
    mends = LaunchPlan({"NCCL_SOCKET_IFNAME": Setting("=eth0", "docker0 is no way out")})
    assert (list(bad(report(astray))), bad(report(astray, plan=mends))) == (["a", "b", "c"], {})


def test_what_could_not_be_told_of_what_the_plan_mends_makes_no_node_bad_either() -> None:
    dark = replace(UNKNOWN, code="NC304", check="nccl-would-pick-virtual")
    mends = LaunchPlan({"NCCL_SOCKET_IFNAME": Setting("=eth0", "docker0 is no way out")})
    assert (list(bad(report(verdicts=(dark,)))), bad(report(verdicts=(dark,), plan=mends))) == (["c"], {})


def test_what_is_left_is_said_in_one_line_and_one_reason_once() -> None:
    told = left_out({"n07": "NC402 ib-port-polling: mlx5_3", "n09": "NC402 ib-port-polling: mlx5_3", "n12": "off"}, 16)
    assert told == "13 of 16 nodes, without n[07,09]: NC402 ib-port-polling: mlx5_3; n12: off"


@pytest.mark.parametrize("gone", ["c"])
def test_what_the_others_told_of_a_node_that_is_gone_goes_with_it(gone: str) -> None:
    broken = Link("10.0.0.1", gone, "10.0.0.3", "10.0.0.0/24", LinkCause.FILTERED)
    links = LinkFacts(
        (Reach("10.0.0.0/24", "10.0.0.1", 2, 1),), (broken,), frozenset({"b", gone})
    )  # fmt: skip
    peers = PeerSshFacts((PeerSsh("b", None), PeerSsh(gone, None)))
    known = NameFacts({"b": Resolved(("10.0.0.2",)), gone: Resolved(error="Name or service not known")})
    facts = {"a": {LinkFacts: links, PeerSshFacts: peers, NameFacts: known}, "b": {}, gone: {}}
    assert Cluster.of(facts).subset(["a", "b"]).known == {
        "a": {
            LinkFacts: LinkFacts((Reach("10.0.0.0/24", "10.0.0.1", 1, 1),), (), frozenset({"b"})),
            PeerSshFacts: PeerSshFacts((PeerSsh("b", None),)),
            NameFacts: NameFacts({"b": Resolved(("10.0.0.2",))}),
        },
        "b": {},
    }


def test_what_ran_with_a_node_that_is_left_out_says_nothing_of_the_others_alone() -> None:
    inside, pair, whole = (
        NodeResult(Step(round_, stage, Method.NCCL, group, (8,) * len(group), (8,)), ())
        for round_, stage, group in (
            (1, Stage.INSIDE, ("a",)),
            (2, Stage.PAIR, ("a", "b")),
            (3, Stage.ALL, tuple("abc")),
        )
    )
    later = Skipped(Step(4, Stage.SCALING, Method.NCCL, ("a", "c"), (8, 8), (8,)), "no time")
    facts: dict[str, Facts] = {
        name: {ProbeFacts: ProbeFacts((inside, pair, whole), (later,), "a note")} for name in "abc"
    }
    why = (
        "it ran with a node that is left out: list the others alone (--good-nodes FILE), and ncheck probe measures them"
    )
    assert Cluster.of(facts).subset(["a", "b"]).known["a"][ProbeFacts] == ProbeFacts(
        (inside, pair), (Skipped(whole.step, why),), "a note"
    )
    assert Cluster.of(facts).subset(["a", "b", "c"]).known["a"][ProbeFacts] == facts["a"][ProbeFacts]


def test_a_node_is_not_bad_because_nothing_was_measured() -> None:
    unmeasured = Verdict("all-reduce-failed", "NC701", ("b",), Outcome.UNKNOWN, "the time was over")
    assert bad(report(verdicts=(unmeasured,))) == {}
    slow = Finding("NC710", "node-slow", Severity.ERROR, ("b",), "it is slow", (), "nvidia-smi -q")
    assert bad(report(slow)) == {"b": "NC710 node-slow: it is slow"}


def test_a_consequence_makes_no_node_bad() -> None:
    slow = Finding("NC710", "node-slow", Severity.ERROR, ("b",), "it is slow", (), "nvidia-smi -q")
    whole = Finding(
        "NC721", "bandwidth-far-too-low", Severity.ERROR, ("a", "b", "c"), "164 of 350", (), "", see=("NC710",)
    )
    assert list(bad(report(slow, whole))) == ["b"]


def test_the_report_says_which_nodes_are_bad_and_whether_that_is_known() -> None:
    lost = NodeSummary("a", reached=False, cause="refused", detail="connect: Connection refused", peers_reach=False)
    one = replace(report(POLLING, verdicts=(UNKNOWN,)), nodes=(lost, *report().nodes[1:]))
    assert found_bad(one, load_checks().select(()), Settings()) == (
        BadNode("a", "not reached: refused: connect: Connection refused", (), reached=False, proved=True),
        BadNode("b", "NC402 ib-port-polling: mlx5_3 polls", ("NC402",), proved=True),
        BadNode("c", "NC501 gpu-count-differs unknown: nvidia-smi hangs", ("NC501",), unknown=True),
    )
    replayed_bad = [(bad.node, bad.codes, bad.reached) for bad in replayed("one-node-down", drop_bad=False).bad]
    assert replayed_bad == [("gpu03", ("NC111",), False)]
    assert replayed("healthy-4x8-h100").bad == ()


def test_a_fault_of_ncheck_or_of_a_plug_in_is_no_fault_of_a_node() -> None:
    broken = Finding("NC003", "plug-in-broken", Severity.ERROR, ("a", "b", "c"), "the plug-in x is broken", (), "")
    crashed = Finding("NC004", "check-crashed", Severity.ERROR, ("c",), "the check gpu-count-differs crashed", (), "")
    verdict = replace(UNKNOWN, outcome=Outcome.CRASHED, reason="ZeroDivisionError")
    found = found_bad(report(broken, crashed, verdicts=(verdict,)), load_checks().select(()), Settings())
    reason = "NC501 gpu-count-differs crashed: ZeroDivisionError"
    assert found == (BadNode("c", reason, ("NC501",), unknown=True),)


def drained(one: Report, settings: Settings | None = None) -> tuple[str, ...]:
    checks = load_checks().select(())
    settings = settings or Settings()
    return to_drain(replace(one, bad=found_bad(one, checks, settings)), checks, settings.max_drain)


@pytest.mark.slow
def test_of_all_errors_only_faults_of_the_hardware_take_a_node_from_the_scheduler() -> None:
    """An unknown host key here, a refused key of mine, somebody's port and my missing folder are among the others."""
    checks = load_checks().select(())
    errors = {
        check.code: drained(report(Finding(check.code, check.name, Severity.ERROR, ("b",), "m", (), "x")))
        for check in checks
    }
    assert errors == {check.code: ("b",) if check.hardware else () for check in checks}
    assert {errors[code] for code in ("NC117", "NC120", "NC316", "NC223", "NC205", "NC220", "NC003")} == {()}


def test_a_node_that_no_other_node_reaches_is_drained_and_none_that_only_this_machine_cannot_enter() -> None:
    def lost(cause: Cause, *, others: bool = True, by_peers: bool | None = None) -> Report:
        nodes = (NodeSummary("a", reached=others, cause="" if others else "refused"), NodeSummary("b", reached=False))
        return replace(report(), nodes=(nodes[0], replace(nodes[1], cause=cause.value, peers_reach=by_peers)))

    assert drained(lost(Cause.FILTERED, by_peers=False)) == ("b",)
    assert drained(lost(Cause.FILTERED, by_peers=True)) == drained(lost(Cause.FILTERED)) == ()
    # what Slurm itself could not start is seen by more than this machine; of all else, no other node was asked
    assert [cause for cause in Cause if drained(lost(cause))] == [Cause.STEP_NOT_STARTED]
    assert [cause for cause in Cause if drained(lost(cause, others=False, by_peers=None))] == []
