"""One verdict a node and check, whatever the facts and the checks do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from ncheck import Absent, Cluster, Inconclusive, NodeView, Problem, Severity, Unread, cluster_check, node_check, split
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.run import Crash, CrashFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Login
from ncheck.model.finding import Finding, Outcome, Verdict
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import Judgement, facts_wanted, judge


@dataclass(frozen=True)
class Colour:
    name: str


@dataclass(frozen=True)
class Weight:
    grams: int


@node_check("NC801", Severity.ERROR, Colour)
def node_is_red(node: NodeView) -> Iterator[Problem | Inconclusive]:
    if node[Colour].name == "red":
        yield Problem("it is red", "paint it")
    if node[Colour].name == "dim":
        yield Inconclusive("too dark to tell")


@cluster_check("NC802", Severity.WARNING, Colour, everywhere=True)
def colour_differs(cluster: Cluster) -> Iterator[Problem]:
    parted = split({name: colour.name for name, colour in cluster.facts(Colour).items()})
    if parted:
        yield Problem(parted.summary(), "paint them", nodes=parted.odd)


@cluster_check("NC803", Severity.ERROR, Colour, by_kind=True)
def colour_differs_within_a_kind(cluster: Cluster) -> Iterator[Problem]:
    parted = split({name: colour.name for name, colour in cluster.facts(Colour).items()})
    if parted:
        yield Problem(parted.summary(), "paint them", nodes=parted.odd)


@node_check("NC804", Severity.ERROR, Colour)
def check_is_broken(node: NodeView) -> Iterator[Problem]:
    raise ZeroDivisionError(node.name)


@node_check("NC805", Severity.ERROR, Colour)
def check_reads_too_much(node: NodeView) -> Iterator[Problem]:
    yield Problem(str(node[Weight].grams), "weigh it")


@node_check("NC808", Severity.ERROR, Colour)
def fix_is_none(node: NodeView) -> Iterator[Problem]:
    yield Problem(node.name, None)  # type: ignore[arg-type]


@node_check("NC809", Severity.ERROR, Colour)
def colour_to_type(node: NodeView) -> Iterator[Problem]:
    yield Problem("it has a colour", f"paint {node[Colour].name}", where=node.name)


def outcomes(judgement: Judgement) -> dict[str, tuple[str, str]]:
    return {verdict.nodes[0]: (verdict.outcome.value, verdict.reason) for verdict in judgement.verdicts}


def colours(**names: object) -> dict[str, Facts]:
    return {node: {Colour: Colour(v) if isinstance(v, str) else v} for node, v in names.items()}


def test_a_node_check_fails_passes_and_doubts_node_by_node() -> None:
    judgement = judge([node_is_red], colours(a="red", b="blue", c="dim"))
    assert judgement.verdicts == [
        Verdict("node-is-red", "NC801", ("a",), Outcome.FAILED, "it is red"),
        Verdict("node-is-red", "NC801", ("b",), Outcome.PASSED),
        Verdict("node-is-red", "NC801", ("c",), Outcome.UNKNOWN, "too dark to tell"),
    ]
    assert judgement.findings == [Finding("NC801", "node-is-red", Severity.ERROR, ("a",), "it is red", (), "paint it")]


def test_what_is_unread_is_unknown_what_is_absent_is_skipped_and_what_needs_root_says_so() -> None:
    nodes = colours(a=Unread("it hung"), b=Absent("no paint"), c=Unread("kernel log", needs_root=True))
    assert judge([node_is_red], nodes).verdicts == [
        Verdict("node-is-red", "NC801", ("a",), Outcome.UNKNOWN, "it hung"),
        Verdict("node-is-red", "NC801", ("b",), Outcome.SKIPPED, "no paint"),
        Verdict("node-is-red", "NC801", ("c",), Outcome.SKIPPED, "kernel log", needs_root=True),
    ]


def test_a_cluster_check_fails_the_odd_node_and_leaves_the_unread_one_unknown() -> None:
    judgement = judge([colour_differs], colours(a="blue", b="blue", c="red", d=Unread("it hung")))
    assert outcomes(judgement) == {
        "a": ("passed", ""),
        "b": ("passed", ""),
        "c": ("failed", "blue on [a-b], red on c (2 to 1)".replace("[a-b]", "a,b")),
        "d": ("unknown", "it hung"),
    }


def test_a_node_keeps_so_many_findings_of_a_check_and_what_is_not_listed_counts_as_its_gravest() -> None:
    def broken(node: NodeView) -> Iterator[Problem]:
        parts = int(node[Colour].name)
        for part in range(parts):
            yield Problem(f"{part}", "mend it", severity=Severity.INFO if part < parts - 1 else None)

    broken.__module__ = __name__
    judgement = judge([node_check("NC804", Severity.ERROR, Colour)(broken)], colours(a="64", b="66", c="70"))
    found = {node: [one for one in judgement.findings if one.nodes == (node,)] for node in "abc"}
    assert {node: len(own) for node, own in found.items()} == {"a": 64, "b": 65, "c": 65}
    assert found["b"][-1] == Finding(
        "NC804", "broken", Severity.ERROR, ("b",),
        "64 findings of this check are listed, and 2 more were found", (),
        "ncheck explain NC804", where="here", kind="look",
    )  # fmt: skip
    assert {outcome for outcome, _ in outcomes(judgement).values()} == {"failed"}


def test_a_finding_of_each_of_a_thousand_nodes_is_kept_also_where_one_node_is_in_them_all() -> None:
    def apart(cluster: Cluster) -> Iterator[Problem]:
        first, *others = cluster.names
        for node in others:
            yield Problem(f"{node} differs", "mend it", nodes=(first, node))

    apart.__module__ = __name__
    nodes = colours(**{f"n{number}": "red" for number in range(1001)})
    judgement = judge([cluster_check("NC804", Severity.ERROR, Colour)(apart)], nodes)
    assert [one.nodes for one in judgement.findings] == [("n0", f"n{number}") for number in range(1, 1001)]


def test_a_tie_names_both_sides_and_fails_all() -> None:
    judgement = judge([colour_differs], colours(a="blue", b="red"))
    assert [finding.nodes for finding in judgement.findings] == [("a", "b")]
    assert {outcome for outcome, _ in outcomes(judgement).values()} == {"failed"}


def test_what_others_have_fails_those_that_lack_it_where_it_is_asked_for_everywhere() -> None:
    judgement = judge([colour_differs], colours(a="blue", b="blue", c=Absent("no paint")))
    assert outcomes(judgement)["c"] == ("failed", "no paint, and a,b has it")
    assert [finding.nodes for finding in judgement.findings] == [("c",)]


def test_what_no_node_has_is_skipped_on_all() -> None:
    nodes = colours(a=Absent("no paint"), b=Absent("no paint"))
    assert {outcome for outcome, _ in outcomes(judge([colour_differs], nodes)).values()} == {"skipped"}


def test_nodes_are_compared_within_their_kind() -> None:
    def node(model: str, colour: str) -> Facts:
        return {Colour: Colour(colour), GpuFacts: GpuFacts((Gpu(0, model),), "550", "12.4", "nvml")}

    mixed = {"a": node("H100", "blue"), "b": node("H100", "blue"), "c": node("A100", "red"), "d": node("A100", "red")}
    judgement = judge([colour_differs_within_a_kind], mixed)
    assert {outcome for outcome, _ in outcomes(judgement).values()} == {"passed"}
    assert facts_wanted([colour_differs_within_a_kind]) == (Colour, GpuFacts)


def test_one_node_alone_has_none_to_differ_from() -> None:
    judgement = judge([colour_differs], colours(a="blue"))
    assert outcomes(judgement) == {"a": ("skipped", "only one node: nothing to compare")}


def test_a_node_that_was_compared_with_no_other_has_not_passed() -> None:
    judgement = judge([colour_differs], colours(a="blue", b=Unread("it hung"), c=Unread("it hung")))
    assert outcomes(judgement)["a"] == ("unknown", "no other node could be read to compare it with")


def test_a_node_is_not_compared_with_nodes_that_were_not_reached() -> None:
    def node(model: str, colour: str | None, *, reached: bool = True) -> Facts:
        gpus = GpuFacts((Gpu(0, model),), "550", "12.4", "nvml") if reached else Unread("not reached")
        held = Colour(colour) if colour else Unread("it hung" if reached else "not reached")
        return {LoginFacts: LoginFacts(Login(reached=reached)), GpuFacts: gpus, Colour: held}

    lost = node("H100", None, reached=False)
    alone = {"a": node("H100", "blue"), "b": lost, "c": lost}
    assert outcomes(judge([colour_differs], alone))["a"] == ("skipped", "no other node could be reached")
    two_kinds = {"a": node("H100", "blue"), "b": lost, "c": node("A100", "red"), "d": node("A100", "red")}
    assert outcomes(judge([colour_differs_within_a_kind], two_kinds)) == {
        "a": ("skipped", "no comparable node could be reached"), "b": ("unknown", "not reached"),
        "c": ("passed", ""), "d": ("passed", ""),
    }  # fmt: skip
    hangs = {"a": node("H100", "blue"), "b": lost, "c": node("H100", None)}
    assert outcomes(judge([colour_differs], hangs))["a"] == (
        "unknown", "no other node could be read to compare it with",
    )  # fmt: skip


def test_the_only_one_of_its_kind_is_compared_with_none_and_one_whose_kind_is_not_known_is_unknown() -> None:
    def node(model: str | None, colour: str) -> Facts:
        gpus = GpuFacts((Gpu(0, model),), "550", "12.4", "nvml") if model else Unread("it hung")
        return {Colour: Colour(colour), GpuFacts: gpus}

    two = {"a": node("H100", "blue"), "b": node("H100", "blue"), "c": node("A100", "red")}
    assert outcomes(judge([colour_differs_within_a_kind], two)) == {
        "a": ("passed", ""),
        "b": ("passed", ""),
        "c": ("skipped", "the only node of its kind: nothing to compare"),
    }
    dark = {**two, "d": node("A100", "red"), "e": node(None, "red")}
    assert outcomes(judge([colour_differs_within_a_kind], dark))["e"] == (
        "unknown", "its GPUs could not be read, so its kind is not known",
    )  # fmt: skip


def test_a_check_that_raises_is_crashed_and_the_others_run() -> None:
    judgement = judge([check_is_broken, node_is_red], colours(a="blue"))
    assert [(verdict.code, verdict.outcome) for verdict in judgement.verdicts] == [
        ("NC804", Outcome.CRASHED),
        ("NC801", Outcome.PASSED),
    ]
    crash = Crash("check-is-broken", "NC804", __name__, "ZeroDivisionError: a")
    assert judgement.crashes == {"a": (crash,)}


def test_a_check_that_exits_does_not_end_the_run() -> None:
    @node_check("NC806", Severity.ERROR, Colour)
    def check_exits(node: NodeView) -> Iterator[Problem]:
        raise SystemExit(node.name)

    assert outcomes(judge([check_exits], colours(a="blue"))) == {"a": ("crashed", "SystemExit: a")}


def test_a_check_of_crashes_runs_last_and_sees_them() -> None:
    @node_check("NC800", Severity.ERROR, CrashFacts)
    def crash_seen(node: NodeView) -> Iterator[Problem]:
        for crash in node[CrashFacts].crashes:
            yield Problem(crash.code, "mend it")

    judgement = judge([crash_seen, check_is_broken], colours(a="blue"))
    assert [finding.message for finding in judgement.findings] == ["NC804"]


def test_a_check_is_run_again_only_where_a_fact_that_it_declares_has_changed() -> None:
    run: list[str] = []

    @cluster_check("NC810", Severity.ERROR, Colour)
    def colours_are_seen(cluster: Cluster) -> Iterator[Problem]:
        run.append("colour")
        yield Problem("seen", "paint them", nodes=cluster.names[:1])

    @cluster_check("NC811", Severity.ERROR, Weight)
    def weights_are_seen(cluster: Cluster) -> Iterator[Problem]:
        run.append("weight")
        yield Problem("weighed", "weigh it")
        raise ZeroDivisionError([weight.grams for weight in cluster.facts(Weight).values()])

    checks, login = [colours_are_seen, weights_are_seen], LoginFacts(Login(reached=True))
    known: dict[str, Facts] = {
        node: {Colour: Colour("red"), Weight: Weight(1), LoginFacts: login} for node in ("a", "b")
    }  # fmt: skip
    heavier = {**known, "b": {**known["b"], Weight: Weight(2)}}
    lost = {**known, "b": {**known["b"], LoginFacts: LoginFacts(Login(reached=False))}}
    other = {"a": known["a"], "c": known["b"]}
    first, both = judge(checks, known), ["colour", "weight"]
    for later, again in ((known, []), (heavier, ["weight"]), (lost, both), (other, both)):
        run.clear()
        new = judge(checks, later, earlier=first)
        assert run == again
        anew = judge(checks, later)
        assert (new.verdicts, new.findings, new.crashes) == (anew.verdicts, anew.findings, anew.crashes)


def test_a_check_is_shown_only_what_it_declares() -> None:
    judgement = judge([check_reads_too_much], {"a": {Colour: Colour("red"), Weight: Weight(3)}})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.CRASHED]
    assert "does not declare" in judgement.verdicts[0].reason


@pytest.mark.parametrize(
    "name", ["a\nb", "a\r", "\x1b[31mred", "a\u2028b", "a\u202eb", "a\0b", "it's", '"', "a\x85b", "\ud800", "x" * 8000]
)
def test_a_fix_that_cannot_be_pasted_is_not_printed(name: str) -> None:
    """A plug-in's check, too, may take what a node says for a line to type."""
    (finding,) = judge([colour_to_type], {"a": {Colour: Colour(name)}}).findings
    assert (finding.fix, finding.where, finding.kind) == ("ncheck explain NC809", "here", "look")


@pytest.mark.parametrize("name", ["red", "'it is red'", "é; ls | head -1 > /dev/null"])
def test_a_fix_that_can_be_pasted_stays_word_for_word(name: str) -> None:
    (finding,) = judge([colour_to_type], {"a": {Colour: Colour(name)}}).findings
    assert (finding.fix, finding.where, finding.kind) == (f"paint {name}", "a", "fix")


def test_a_check_that_says_what_no_check_can_say_has_crashed() -> None:
    judgement = judge([fix_is_none], {"a": {Colour: Colour("red")}})
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.CRASHED]


@dataclass(frozen=True)
class Unmade:
    """A fact that no module makes."""


@node_check("NC812", Severity.ERROR, Unmade)
def node_reads_what_nothing_makes(node: NodeView) -> Iterator[Problem]:
    yield Problem(str(node[Unmade]), "make it")


@cluster_check("NC813", Severity.ERROR, Unmade)
def cluster_reads_what_nothing_makes(cluster: Cluster) -> Iterator[Problem]:
    yield from (Problem(name, "make it") for name in cluster.facts(Unmade))


@node_check("NC814", Severity.ERROR, Colour, also=(Unmade,))
def node_may_read_what_nothing_makes(node: NodeView) -> Iterator[Problem]:
    yield Problem(node[Colour].name, "paint it")


def test_a_fact_that_nothing_makes_is_unknown_and_never_health() -> None:
    nodes: dict[str, Facts] = {
        name: {Colour: Colour("blue"), LoginFacts: LoginFacts(Login(reached=True))} for name in "ab"
    }
    judgement = judge(
        [node_reads_what_nothing_makes, cluster_reads_what_nothing_makes, node_may_read_what_nothing_makes], nodes
    )
    nothing = "nothing makes Unmade: its module has no FACTS with it"
    assert [(one.nodes, one.outcome, one.reason) for one in judgement.joined[:2]] == [
        (("a", "b"), Outcome.UNKNOWN, nothing), (("a", "b"), Outcome.UNKNOWN, nothing),
    ]  # fmt: skip
    assert [(one.nodes, one.outcome) for one in judgement.joined[2:]] == [(("a", "b"), Outcome.CRASHED)]


def test_a_check_cannot_change_what_others_see() -> None:
    cluster = Cluster.of({"a": {Colour: Colour("red")}})
    with pytest.raises(TypeError):
        del cluster.facts(Colour)["a"]  # type: ignore[attr-defined]


def test_the_nodes_that_are_left_keep_their_order() -> None:
    cluster = Cluster.of({name: {Colour: Colour("red")} for name in "hgfedcba"})
    assert list(cluster.subset(["a", "c", "e", "g", "h"]).known) == ["h", "g", "e", "c", "a"]
