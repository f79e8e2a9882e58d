"""Facts to verdicts: runs every selected check on every node, and never lets one of them end the run.

The rules for absent, unknown, needs-root and not-reached stand here once, so that no check has to know them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.run import Crash, CrashFacts
from ncheck.hostlist import fold, unfold
from ncheck.model.check import HERE, Check, NotApplicable, Problem, Said, unreadable
from ncheck.model.cluster import Cluster, Facts, FactType, NodeView
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Verdict
from ncheck.settings import Settings
from ncheck.text import typable


@dataclass
class Judgement:
    """What all checks said: one verdict a node and check, and the findings, in the order of the checks."""

    verdicts: list[Verdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    crashes: dict[str, tuple[Crash, ...]] = field(default_factory=dict)
    explaining: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # Check.explains to the codes of the checks


def facts_wanted(checks: Iterable[Check]) -> tuple[FactType, ...]:
    """Return every fact that some check declares, and the kind of GPU where a check is judged by kind."""
    wanted: dict[FactType, None] = {}
    for check in checks:
        wanted.update(dict.fromkeys((*check.reads, *check.also)))
        if check.by_kind:
            wanted[GpuFacts] = None
    return tuple(wanted)


def judge(checks: Sequence[Check], cluster: Cluster | Mapping[str, Facts]) -> Judgement:
    """Run the checks over the cluster (or over facts by node name). Checks of crashes come last."""
    known = cluster if isinstance(cluster, Cluster) else Cluster.of(cluster)
    judgement = Judgement(explaining=_explaining(checks))
    views = _Views(known)
    for check in (check for check in checks if CrashFacts not in check.reads):
        _Run(check, views, judgement).run()
    crashes: dict[str, Facts] = {
        name: {CrashFacts: CrashFacts(judgement.crashes.get(name, ()))} for name in known.names
    }
    views = _Views(replace(known, known={name: {**known.known[name], **crashes[name]} for name in known.names}))
    for check in (check for check in checks if CrashFacts in check.reads):
        _Run(check, views, judgement).run()
    return judgement


def _explaining(checks: Sequence[Check]) -> dict[str, tuple[str, ...]]:
    """Return the codes of the checks by what they explain."""
    codes: dict[str, tuple[str, ...]] = {}
    for check in checks:
        words = (check.explains,) if isinstance(check.explains, str) else check.explains
        for word in filter(None, words):
            codes[word] = (*codes.get(word, ()), check.code)
    return codes


@dataclass(frozen=True)
class _Views:
    """The cluster, and what was shown of it: checks that declare the same facts see the same one."""

    cluster: Cluster
    made: dict[tuple[FactType, ...], Cluster] = field(default_factory=dict)

    def of(self, declared: tuple[FactType, ...]) -> Cluster:
        if declared not in self.made:
            self.made[declared] = self.cluster.restricted(declared)
        return self.made[declared]


class _Run:
    """One check over all nodes."""

    def __init__(self, check: Check, views: _Views, judgement: Judgement) -> None:
        self.check = check
        self.judgement = judgement
        self.cluster = views.cluster
        self.view = views.of((*check.reads, *check.also))
        self.missing = {node.name: unreadable([node.facts[fact] for fact in check.reads]) for node in self.view}
        self.verdicts: dict[str, Verdict] = {}
        self.not_applicable: set[str] = set()

    def run(self) -> None:
        readable = [name for name, why in self.missing.items() if why is None]
        self._judged(readable)
        self._lacking(readable, self.missing)
        for name, why in self.missing.items():
            if name not in self.verdicts:
                self.verdicts[name] = self._verdict_without(name, why)
        self.judgement.verdicts += [self.verdicts[name] for name in self.cluster.names]

    def _judged(self, readable: list[str]) -> None:
        if judge_node := self.check.judge_node:
            for name in readable:
                self._shown([name], judge_node, self.view[name])
        elif judge_cluster := self.check.judge_cluster:
            for members in self._groups(readable).values():
                self._shown(members, judge_cluster, self.view.only(members))

    def _groups(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Part the nodes by kind, where the check is judged by kind."""
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(self._kind(name), []).append(name)
        return groups

    def _kind(self, name: str) -> str:
        """Name a node's kind. One whose GPUs could not be read belongs to the only kind there is, if there is one."""
        if not self.check.by_kind:
            return ""
        gpus = self.cluster.known[name][GpuFacts]
        if not isinstance(gpus, Unread):
            return " + ".join(gpus.models) if isinstance(gpus, GpuFacts) else ""
        kinds = {" + ".join(gpus.models) for gpus in self.cluster.facts(GpuFacts).values()}
        return kinds.pop() if len(kinds) == 1 else _KIND_UNREAD

    def _shown(self, names: list[str], judge: Callable[..., Iterable[Said]], view: NodeView | Cluster) -> None:
        """Let the check judge one view, and turn what it says into findings and verdicts."""
        if isinstance(view, Cluster) and len(self.cluster) == 1 and not self.check.alone:
            alone = "only one node: nothing to compare"
            self.verdicts[names[0]] = self._verdict(names[0], Outcome.SKIPPED, alone)
            return
        try:
            for word in list(judge(view)):
                self._say(word, word.nodes or tuple(names))
        except (Exception, SystemExit) as error:  # noqa: BLE001  a broken check ends no run: it is a verdict and NC004
            self._crashed(names, f"{type(error).__name__}: {error}")
            return
        for name in names:
            if name not in self.verdicts:
                self.verdicts[name] = self._well(name, view)

    def _well(self, name: str, view: NodeView | Cluster) -> Verdict:
        """Return the verdict where nothing is wrong: passed, unless the node was compared with no other."""
        if isinstance(view, NodeView) or self.check.alone or len(view) > 1:
            return self._verdict(name, Outcome.PASSED)
        others = {other: why for other, why in self.missing.items() if other != name}
        if unread := [other for other, why in others.items() if isinstance(why, Unread)]:
            lost = {other for other, held in self.cluster.facts(LoginFacts).items() if not held.login.reached}
            if not lost.issuperset(unread):
                reason = "no other node could be read to compare it with"
                return replace(self._verdict(name, Outcome.UNKNOWN, reason), others_unread=True)
            which = "no other node" if lost.issuperset(others) else "no comparable node"
            return self._verdict(name, Outcome.SKIPPED, f"{which} could be reached")
        if self._kind(name) == _KIND_UNREAD:
            return self._verdict(name, Outcome.UNKNOWN, "its GPUs could not be read, so its kind is not known")
        if None in others.values():
            return self._verdict(name, Outcome.SKIPPED, "the only node of its kind: nothing to compare")
        return self._verdict(name, Outcome.PASSED)

    def _say(self, word: Said, nodes: tuple[str, ...]) -> None:
        """Set the verdict of the nodes that a word is about: the gravest outcome counts, and its first reason stays."""
        outcome, reason = _meaning(word)
        if isinstance(word, NotApplicable):
            self.not_applicable.update(nodes)
        for name in nodes:
            earlier = self.verdicts.get(name)
            if earlier is None or _GRAVITY.index(outcome) < _GRAVITY.index(earlier.outcome):
                self.verdicts[name] = self._verdict(name, outcome, reason)
        if isinstance(word, Problem):
            check, evidence = self.check, tuple(map(bounded, word.evidence))
            if not typable(word.fix):  # text of a node is in it that no terminal and no shell should get
                word = replace(word, fix=f"ncheck explain {check.code}", where=HERE, look=True)
            finding = Finding(
                check.code, check.name, word.severity or check.severity, nodes, bounded(word.message), evidence,
                word.fix, where=word.where, kind="look" if word.look else "fix", summary=bounded(word.summary),
                see=self.judgement.explaining.get(word.follows, ()),  # conclude keeps those that found something
            )  # fmt: skip
            self.judgement.findings.append(finding)

    def _crashed(self, names: list[str], why: str) -> None:
        crash = Crash(self.check.name, self.check.code, self.check.module, why)
        for name in names:
            self.verdicts[name] = self._verdict(name, Outcome.CRASHED, why)
            self.judgement.crashes[name] = (*self.judgement.crashes.get(name, ()), crash)

    def _lacking(self, readable: list[str], missing: Mapping[str, Unread | Absent | None]) -> None:
        """Fail the nodes that lack what others have, where the check asks for it everywhere."""
        absent = {name: why.reason for name, why in missing.items() if isinstance(why, Absent)}
        having = [name for name in readable if name not in self.not_applicable]
        if self.check.everywhere and having and absent:
            lacking = tuple(absent)
            message = f"{absent[lacking[0]]}, and {fold(having)} has it"
            self._say(
                Problem(message, f"ncheck explain {self.check.code}", (), lacking, where=HERE, look=True), lacking
            )

    def _verdict(self, node: str, outcome: Outcome, reason: str = "") -> Verdict:
        return Verdict(self.check.name, self.check.code, node, outcome, bounded(reason))

    def _verdict_without(self, node: str, why: Unread | Absent | None) -> Verdict:
        """Return the verdict where a fact is not there: absent is skipped, needs-root is skipped, the rest unknown."""
        if isinstance(why, Absent):
            return self._verdict(node, Outcome.SKIPPED, why.reason)
        if isinstance(why, Unread) and why.needs_root:
            return replace(self._verdict(node, Outcome.SKIPPED, why.reason), needs_root=True)
        return self._verdict(node, Outcome.UNKNOWN, why.reason if why else "no verdict was reached")


def bounded(words: str) -> str:
    """Cut what is too long to read: a node may say a mebibyte where it should say a version."""
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."


_LONGEST = 8000  # characters: the words for a thousand nodes that are all different are shorter


_KIND_UNREAD = "unread"


_GRAVITY = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.SKIPPED)


def _meaning(word: Said) -> tuple[Outcome, str]:
    if isinstance(word, Problem):
        return Outcome.FAILED, word.message
    return (Outcome.SKIPPED, word.reason) if isinstance(word, NotApplicable) else (Outcome.UNKNOWN, word.reason)


def excused_pairs(checks: Sequence[Check], nodes: tuple[str, ...], settings: Settings) -> frozenset[tuple[str, str]]:
    """Return the (code, node) pairs that --ignore names: still judged and printed, and no longer counted."""
    pairs: set[tuple[str, str]] = set()
    for ignore in settings.ignore:
        named = set(unfold(ignore.nodes)) if ignore.nodes else set(nodes)
        codes = [check.code for check in checks if ignore.check.lower() in (check.code.lower(), check.name)]
        pairs.update((code, node) for code in codes for node in named)
    return frozenset(pairs)
