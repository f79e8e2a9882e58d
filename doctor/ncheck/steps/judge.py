"""Facts to verdicts: runs every selected check on every node, and never lets one of them end the run.

The rules for absent, unknown, needs-root and not-reached stand here once, so that no check has to know them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ncheck.facts.login import LoginFacts
from ncheck.facts.run import Crash, CrashFacts
from ncheck.hostlist import fold, unfold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import HERE, Check, ClusterJudge, NodeJudge, NotApplicable, Problem, Said, kind_of
from ncheck.model.cluster import Cluster, Facts, FactType
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.text import typable

if TYPE_CHECKING:
    from ncheck.settings import Ignore


@dataclass
class Judgement:
    """What all checks said, in the order of the checks.

    `joined` has one verdict for each check, outcome and reason, with its nodes: each node is named once per check.
    """

    cluster: Cluster
    joined: list[Verdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    crashes: dict[str, tuple[Crash, ...]] = field(default_factory=dict)
    explaining: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # Check.explains to the codes of the checks

    @property
    def verdicts(self) -> list[Verdict]:
        """One verdict for each check and node."""
        of_node = {(one.code, node): replace(one, nodes=(node,)) for one in self.joined for node in one.nodes}
        codes = dict.fromkeys(one.code for one in self.joined)
        return [of_node[code, node] for code in codes for node in self.cluster.names]

    def take(self, check: Check, earlier: Judgement) -> None:
        """Add what a check said earlier."""
        self.joined += [one for one in earlier.joined if one.code == check.code]
        self.findings += [one for one in earlier.findings if one.code == check.code]
        for node, crashes in earlier.crashes.items():
            if own := tuple(one for one in crashes if one.code == check.code):
                self.crashes[node] = (*self.crashes.get(node, ()), *own)


def facts_wanted(checks: Iterable[Check]) -> tuple[FactType, ...]:
    """Return every fact that some check declares, and the kind of GPU where a check is judged by kind."""
    return tuple(dict.fromkeys(fact for check in checks for fact in check.facts))


def judge(
    checks: Sequence[Check],
    cluster: Cluster | Mapping[str, Facts],
    *,
    earlier: Judgement | None = None,
    every: Sequence[Check] = (),
) -> Judgement:
    """Run the checks over the cluster (or over facts by node name). Checks of crashes come last.

    A check that was run `earlier` over the same facts says the same, and is not run again. `every` are the checks of
    the whole run, where these are only some: a finding may refer to each.
    """
    known = cluster if isinstance(cluster, Cluster) else Cluster.of(cluster)
    judgement = Judgement(known, explaining=_explaining(every or checks))
    views, done = _Views(known), {one.code for one in earlier.joined} if earlier else set[str]()
    for check in (check for check in checks if CrashFacts not in check.reads):
        if earlier and check.code in done and _unchanged(check, earlier.cluster, known):
            judgement.take(check, earlier)
        else:
            _Judging(check, views, judgement).run()
    crashes: dict[str, Facts] = {
        name: {CrashFacts: CrashFacts(judgement.crashes.get(name, ()))} for name in known.names
    }
    views = _Views(replace(known, known={name: {**known.known[name], **crashes[name]} for name in known.names}))
    for check in (check for check in checks if CrashFacts in check.reads):
        _Judging(check, views, judgement).run()
    return judgement


def _unchanged(check: Check, earlier: Cluster, now: Cluster) -> bool:
    """Whether all that a verdict depends on is the same object as before: facts never change."""
    facts = (*facts_wanted([check]), LoginFacts)
    return earlier.nodes == now.nodes and all(
        earlier.known[name].get(fact) is now.known[name].get(fact) for name in now.names for fact in facts
    )


def _explaining(checks: Sequence[Check]) -> dict[str, tuple[str, ...]]:
    """Return the codes of the checks by what they explain."""
    codes: dict[str, tuple[str, ...]] = {}
    for check in checks:
        words = (check.explains,) if isinstance(check.explains, str) else check.explains
        for word in filter(None, words):
            codes[word] = (*codes.get(word, ()), check.code)
    return codes


class _Views:
    """The cluster, and what was shown of it: checks that declare the same facts see the same one."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._made: dict[frozenset[FactType], Cluster] = {}

    def of(self, declared: Iterable[FactType]) -> Cluster:
        declared = frozenset(declared)
        if declared not in self._made:
            self._made[declared] = self.cluster.restricted(declared)
        return self._made[declared]

    def missing(self, facts: Iterable[FactType]) -> Missing:
        """Return the nodes that lack one of these facts, and why; what could not be read outweighs what is absent."""
        found: Missing = {}
        for lacking in (part for fact in facts if (part := self._missing(fact))):
            unread = {name: why for name, why in lacking.items() if found and isinstance(why, Unread)}
            graver = {name: why for name, why in unread.items() if isinstance(found.get(name), Absent)}
            found = {**found, **lacking, **found, **graver} if found else lacking
        return found

    def _missing(self, fact: FactType) -> Missing:
        """Return the nodes that lack a fact; what no module of facts makes is unread on them all."""
        held, missing = self.cluster.facts(fact), self.cluster.missing(fact)
        if len(held) + len(missing) == len(self.cluster):
            return missing
        nothing = Unread(f"nothing makes {fact.__name__}: its module has no FACTS with it")
        return {name: missing.get(name, nothing) for name in self.cluster.names if name not in held}

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Each node's kind. One whose GPUs could not be read is of the only kind there is, if there is one."""
        from ncheck.facts.gpus import GpuFacts

        models = {name: " + ".join(gpus.models) for name, gpus in self.cluster.facts(GpuFacts).items()}
        found = set(models.values())
        unread = found.pop() if len(found) == 1 else _KIND_UNREAD
        known = self.cluster.known
        return {
            name: models.get(name, unread if isinstance(known[name][GpuFacts], Unread) else "")
            for name in self.cluster.names
        }


Missing = Mapping[str, Unread | Absent]


class _Judging:
    """One check over all nodes."""

    def __init__(self, check: Check, views: _Views, judgement: Judgement) -> None:
        self.check = check
        self.judgement = judgement
        self.views = views
        self.cluster = views.cluster
        self.view = views.of((*check.reads, *check.also))
        self.missing = views.missing(check.reads)
        self.verdicts: dict[str, Verdict] = {}  # without their nodes: what says the same is one object
        self.made: dict[tuple[Outcome, str, bool, bool], Verdict] = {}
        self.not_applicable: set[str] = set()
        self.listed: dict[str, int] = {}  # findings of each node
        self.unlisted: dict[str, list[Severity]] = {}  # of each node, of what was found beyond _MOST

    def run(self) -> None:
        names = self.cluster.names
        readable = [name for name in names if name not in self.missing] if self.missing else list(names)
        self._judged(readable)
        self._lacking(readable, self.missing)
        self._more()
        without: dict[int, Verdict] = {}  # many nodes lack a fact for one reason, which is one object
        for name in names if len(self.verdicts) < len(names) else ():
            if name not in self.verdicts:
                why = self.missing.get(name)
                self.verdicts[name] = without.get(id(why)) or without.setdefault(id(why), self._verdict_without(why))
        if len(set(map(id, self.verdicts.values()))) == 1:  # most checks say the same of all nodes
            self.judgement.joined.append(replace(self.verdicts[names[0]], nodes=names))
            return
        same: dict[int, list[str]] = {}
        for name in names:
            same.setdefault(id(self.verdicts[name]), []).append(name)
        self.judgement.joined += [replace(self.verdicts[nodes[0]], nodes=tuple(nodes)) for nodes in same.values()]

    def _judged(self, readable: list[str]) -> None:
        if self.check.judge_node:
            self._judged_by_itself(readable, self.check.judge_node)
        elif judge_cluster := self.check.judge_cluster:
            for members in self._groups(readable):
                self._compared(members, judge_cluster, self.view.only(frozenset(members)))

    def _judged_by_itself(self, names: list[str], judge: NodeJudge) -> None:
        """Let the check judge each node; of nodes whose facts are the same objects, it says the same but for names."""
        declared = (*self.check.reads, *self.check.also)
        by_facts: dict[tuple[int, ...], list[Said]] = {}
        passed = self._verdict(Outcome.PASSED)
        for name in names:
            try:
                facts = tuple(map(id, map(self.cluster.known[name].__getitem__, declared)))
                words = by_facts.get(facts)
                if words is None:
                    view = self.view[name]
                    words = list(judge(view))
                    if not view.named:
                        by_facts[facts] = words
                for word in words:
                    self._say(word, word.nodes or (name,))
            except (Exception, SystemExit) as error:  # noqa: BLE001  see _compared
                self._crashed([name], f"{type(error).__name__}: {error}")
                continue
            self.verdicts.setdefault(name, passed)

    def _groups(self, names: list[str]) -> list[list[str]]:
        """Part the nodes by kind, where the check is judged by kind."""
        if not self.check.by_kind:
            return [names] if names else []
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(self.views.kinds[name], []).append(name)
        return list(groups.values())

    def _compared(self, names: list[str], judge: ClusterJudge, view: Cluster) -> None:
        """Let the check compare nodes, and turn what it says into findings and verdicts."""
        if len(self.cluster) == 1 and not self.check.alone:
            alone = "only one node: nothing to compare"
            self.verdicts[names[0]] = self._verdict(Outcome.SKIPPED, alone)
            return
        try:
            for word in list(judge(view)):
                self._say(word, word.nodes or tuple(names))
        except (Exception, SystemExit) as error:  # noqa: BLE001  a broken check ends no run: it is a verdict and NC004
            self._crashed(names, f"{type(error).__name__}: {error}")
            return
        compared = self.check.alone or len(view) > 1
        if compared:
            self.verdicts = {**dict.fromkeys(names, self._verdict(Outcome.PASSED)), **self.verdicts}
        for name in names if not compared else ():
            if name not in self.verdicts:
                self.verdicts[name] = self._alone(name)

    def _alone(self, name: str) -> Verdict:
        """Return the verdict where nothing is wrong, and the node was compared with no other."""
        others = {other: self.missing.get(other) for other in self.cluster.names if other != name}
        if unread := [other for other, why in others.items() if isinstance(why, Unread)]:
            lost = {other for other, held in self.cluster.facts(LoginFacts).items() if not held.login.reached}
            if not lost.issuperset(unread):
                reason = "no other node could be read to compare it with"
                return self._verdict(Outcome.UNKNOWN, reason, others_unread=True)
            which = "no other node" if lost.issuperset(others) else "no comparable node"
            return self._verdict(Outcome.SKIPPED, f"{which} could be reached")
        if self.check.by_kind and self.views.kinds[name] == _KIND_UNREAD:
            return self._verdict(Outcome.UNKNOWN, "its GPUs could not be read, so its kind is not known")
        if None in others.values():
            return self._verdict(Outcome.SKIPPED, "the only node of its kind: nothing to compare")
        return self._verdict(Outcome.PASSED)

    def _say(self, word: Said, nodes: tuple[str, ...]) -> None:
        """Set the verdict of the nodes that this result names; the worst outcome wins, with the first reason for it."""
        outcome, reason = _meaning(word)
        if isinstance(word, NotApplicable):
            self.not_applicable.update(nodes)
        for name in nodes:
            earlier = self.verdicts.get(name)
            if earlier is None or _GRAVITY.index(outcome) < _GRAVITY.index(earlier.outcome):
                self.verdicts[name] = self._verdict(outcome, reason)
        if isinstance(word, Problem):
            check, evidence = self.check, tuple(map(bounded, word.evidence))
            severity = word.severity or check.severity
            if all(self.listed.get(name, 0) >= _MOST for name in nodes):
                for name in nodes:
                    self.unlisted.setdefault(name, []).append(severity)
                return
            self.listed.update((name, self.listed.get(name, 0) + 1) for name in nodes)
            if not typable(word.fix):  # text of a node is in it that no terminal and no shell should get
                word = replace(word, fix=f"ncheck explain {check.code}", where=HERE, look=True, do=False)
            finding = Finding(
                check.code, check.name, severity, nodes, bounded(word.message), evidence,
                word.fix, where=word.where, kind=kind_of(word), summary=bounded(word.summary),
                see=self.judgement.explaining.get(word.follows, ()),  # conclude keeps those that found something
            )  # fmt: skip
            self.judgement.findings.append(finding)

    def _more(self) -> None:
        """Say how many findings of a node are not listed: one that is hostile, or broken all over, may have thousands.

        What is not listed counts as the gravest of it: a node could hide it behind what is harmless.
        """
        check, look = self.check, f"ncheck explain {self.check.code}"
        for name, severities in self.unlisted.items():
            message = f"{_MOST} findings of this check are listed, and {len(severities)} more were found"
            gravest = min(severities, key=lambda severity: severity.rank)
            self.judgement.findings.append(
                Finding(check.code, check.name, gravest, (name,), message, (), look, where=HERE, kind="look")
            )

    def _crashed(self, names: list[str], why: str) -> None:
        crash = Crash(self.check.name, self.check.code, self.check.module, why)
        for name in names:
            self.verdicts[name] = self._verdict(Outcome.CRASHED, why)
            self.judgement.crashes[name] = (*self.judgement.crashes.get(name, ()), crash)

    def _lacking(self, readable: list[str], missing: Missing) -> None:
        """Fail the nodes that lack what others have, where the check asks for it everywhere."""
        absent = {name: why.reason for name, why in missing.items() if isinstance(why, Absent)}
        having = [name for name in readable if name not in self.not_applicable]
        if self.check.everywhere and having and absent:
            lacking = tuple(absent)
            message = f"{absent[lacking[0]]}, and {fold(having)} has it"
            self._say(
                Problem(message, f"ncheck explain {self.check.code}", (), lacking, where=HERE, look=True), lacking
            )

    def _verdict(
        self, outcome: Outcome, reason: str = "", *, needs_root: bool = False, others_unread: bool = False
    ) -> Verdict:
        key = outcome, bounded(reason), needs_root, others_unread
        if key not in self.made:
            self.made[key] = Verdict(self.check.name, self.check.code, (), *key)
        return self.made[key]

    def _verdict_without(self, why: Unread | Absent | None) -> Verdict:
        """Return the verdict where a fact is not there: absent is skipped, needs-root is skipped, the rest unknown."""
        if isinstance(why, Absent):
            return self._verdict(Outcome.SKIPPED, why.reason)
        if isinstance(why, Unread) and why.needs_root:
            return self._verdict(Outcome.SKIPPED, why.reason, needs_root=True)
        return self._verdict(Outcome.UNKNOWN, why.reason if why else "no verdict was reached")


def bounded(words: str) -> str:
    """Cut what is too long to read: a node may say a mebibyte where it should say a version."""
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."


_LONGEST = 8000  # characters: the words for a thousand nodes that are all different are shorter
_MOST = 64  # findings of one check on one node
_KIND_UNREAD = "unread"
_GRAVITY = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.SKIPPED)


def _meaning(word: Said) -> tuple[Outcome, str]:
    if isinstance(word, Problem):
        return Outcome.FAILED, word.message
    return (Outcome.SKIPPED, word.reason) if isinstance(word, NotApplicable) else (Outcome.UNKNOWN, word.reason)


def excused_pairs(
    checks: Sequence[Check], nodes: tuple[str, ...], ignores: Sequence[Ignore]
) -> frozenset[tuple[str, str]]:
    """Return the (code, node) pairs that --ignore names: still judged and printed, and no longer counted."""
    pairs: set[tuple[str, str]] = set()
    for ignore in ignores:
        named = set(unfold(ignore.nodes)) if ignore.nodes else set(nodes)
        codes = [check.code for check in checks if ignore.check.lower() in (check.code.lower(), check.name)]
        pairs.update((code, node) for code in codes for node in named)
    return frozenset(pairs)
