"""What was wrong in an earlier report, and what came of it (--failed-of): gone is what its check proves to be gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Protocol

from ncheck.errors import InventoryError
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Outcome, Verdict
from ncheck.model.node import Node
from ncheck.model.report import EarlierProblem, LookedAgain, Report
from ncheck.text import printable


class Judged(Protocol):
    """A verdict, of this run or of a file."""

    @property
    def code(self) -> str: ...
    @property
    def nodes(self) -> tuple[str, ...]: ...
    @property
    def outcome(self) -> str: ...


@dataclass(frozen=True)
class Earlier:
    """What was wrong in the earlier report, by the code of the check.

    failed: The nodes that a finding named.
    unknown: The nodes of which the check was unknown, and no finding says why none was.
    passed: The nodes that passed it; of `about_peers`, all that answered.
    names: What each check is called.
    follow: The checks whose findings follow from those of others: they are no problems of their own.
    compare: The checks that say nothing of a node alone: one of those that passed must be there again, and pass.
    about_peers: The checks of what nodes see of each other, or that compare those of one kind: all must be there again.
    nodes: Those that are looked at again; None is all.
    as_deep: Whether this run looks as deep as the earlier one (--level, and its settings).
    """

    path: str
    time: str
    failed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unknown: Mapping[str, frozenset[str]] = field(default_factory=dict)
    passed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    follow: frozenset[str] = frozenset()
    compare: frozenset[str] = frozenset()
    about_peers: frozenset[str] = frozenset()
    nodes: frozenset[str] | None = None
    as_deep: bool = True

    def among(self, listed: tuple[Node, ...]) -> tuple[Node, ...]:
        """Return the nodes of a list that are looked at again. Raises InventoryError where it has none of them."""
        if self.nodes is None:
            return listed
        kept = tuple(node for node in listed if node.name in self.nodes)
        bad = frozenset[str]().union(*self.failed.values(), *self.unknown.values())
        if not any(node.name in bad for node in kept):
            raise InventoryError(
                f"--failed-of {printable(self.path)}: this list has none of the nodes that failed: {fold(bad)}"
            )
        return kept

    def held(self, verdicts: Iterable[Verdict], nodes: Collection[str]) -> Iterator[Verdict]:
        """Yield the verdicts of a run on these nodes; one that is no proof that a problem is gone is unknown."""
        found = list(verdicts)
        passed = by_code(found, Outcome.PASSED)
        for one in found:
            if one.code not in self.names or one.outcome not in (Outcome.PASSED, Outcome.SKIPPED):
                yield one
                continue
            compared = self._compared(one.code, passed.get(one.code, frozenset()), nodes)
            whys: dict[str, list[str]] = {}
            for node in one.nodes:
                whys.setdefault(self._no_proof(one, node, compared=compared), []).append(node)
            for why, part in whys.items():
                kept = replace(one, nodes=tuple(part))
                yield replace(kept, outcome=Outcome.UNKNOWN, reason=why, needs_root=False) if why else kept
        for code in sorted(self.names.keys() - {one.code for one in found}):
            if here := tuple(node for node in nodes if node in self._nodes_of(code)):
                why = "it was not passed before, and there is no such check now"
                yield Verdict(self.names[code], code, here, Outcome.UNKNOWN, why)

    def _compared(self, code: str, passed: Collection[str], nodes: Collection[str]) -> bool:
        """Whether a check that compares nodes had those to compare with that it had before."""
        before = self.passed.get(code, frozenset())
        if code in self.about_peers:
            return before.issubset(nodes)
        if code not in self.compare:
            return True
        return not before.isdisjoint(passed) if before else self._nodes_of(code).issubset(nodes)

    def _no_proof(self, verdict: Verdict, node: str, *, compared: bool) -> str:
        """Return why the node may still have the problem; "" if it does not, or never had it."""
        failed = node in self.failed.get(verdict.code, ())
        if failed and verdict.outcome is Outcome.SKIPPED:
            return f"it failed before, and was not checked now: {verdict.reason}"
        if node in self.unknown.get(verdict.code, ()) and verdict.outcome is Outcome.SKIPPED and not self.as_deep:
            return f"it was unknown before, and was not checked now, by other options: {verdict.reason}"
        if node in self._nodes_of(verdict.code) and not compared:
            return "it was not passed before, and the nodes that it was compared with are not checked now"
        return ""

    def _nodes_of(self, code: str) -> frozenset[str]:
        return self.failed.get(code, frozenset()) | self.unknown.get(code, frozenset())

    def again(self, report: Report) -> LookedAgain:
        """Return what came of each problem."""
        here = {node.name for node in report.nodes}
        mute = {node.name for node in report.nodes if not node.examined}
        now = {outcome: by_code(report.verdicts, outcome) for outcome in Outcome}
        order = [node.name for node in report.nodes]
        compare, problems = self.compare | self.about_peers, []
        for code in sorted(self.names.keys() - self.follow):
            before = self._nodes_of(code)
            failing = now[Outcome.FAILED].get(code, frozenset())
            well = now[Outcome.PASSED].get(code, frozenset()) | now[Outcome.SKIPPED].get(code, frozenset())
            remains = failing if code in self.compare else failing & before
            gone = (well & before) - mute if remains <= before else frozenset[str]()
            problems.append(EarlierProblem(
                code, self.names[code],
                nodes=tuple(sorted(before)),
                failed=tuple(sorted(self.failed.get(code, ()))),
                compared_with=tuple(sorted(self.passed.get(code, ()))) if code in compare else (),
                gone=tuple(node for node in order if node in gone),
                remains=tuple(node for node in order if node in remains),
                unknown=tuple(node for node in order if node in before - gone - remains),
                unlisted=tuple(sorted(before - here)),
            ))  # fmt: skip
        return LookedAgain(self.time, tuple(problems))


def by_code(verdicts: Iterable[Judged], outcome: Outcome) -> dict[str, frozenset[str]]:
    """Return the nodes of which each check says so, by its code."""
    found: dict[str, frozenset[str]] = {}
    for one in verdicts:
        if one.outcome == outcome:
            found[one.code] = found.get(one.code, frozenset()).union(one.nodes)
    return found
