"""What every report for people says: the headline, the findings in order, the totals, the meaning of the exit code."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ncheck.errors import EXIT_CLEAN, EXIT_INTERRUPTED
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Cause
from ncheck.model.finding import Outcome, Severity, Verdict
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import NodeSummary, Report, RunPart, State
from ncheck.model.state import matters, state_of, unknown_by_cause
from ncheck.model.system import System
from ncheck.parity import nodes_by_value
from ncheck.report import text as words
from ncheck.report.language import tr
from ncheck.report.listing import topic_of
from ncheck.report.text import FoldedFinding, counted, grouped
from ncheck.text import export_line

BAD, DOUBTFUL, WARNED, WELL = "bad", "doubtful", "warned", "well"
_KINDS = {
    State.READY: WELL, State.WARNED: WARNED, State.ONLY_WITH_PLAN: WARNED, State.NOT_READY: BAD,
    State.NOT_VERIFIED: DOUBTFUL, State.INTERRUPTED: DOUBTFUL,
}  # fmt: skip

_PROBLEMS = 20  # of an earlier report, by name
_CULPRITS, _CAUSES = 4, 2  # groups of nodes in the headline, and causes of each
_SELECTED = 8  # words of --select by name
_NAMED = 4  # of them in the headline, which names all or none

_LONGEST_REASON = 300  # characters of why a node was left out: a node's own words may be in it


@dataclass(frozen=True)
class Headline:
    """The answer in one sentence, which begins with its state, as words_of_state() says it."""

    state: State
    words: str
    details: tuple[str, ...]

    @property
    def text(self) -> str:
        details = tr("; ").join(self.details)
        if self.state is State.INTERRUPTED:
            return tr("{state} {details}", state=self.words, details=details)
        return tr("{state}: {details}", state=self.words, details=details)

    @property
    def kind(self) -> str:
        """How good it is, for signs and colours: one of BAD, DOUBTFUL, WARNED, WELL."""
        return _KINDS[self.state]


def headline(report: Report, findings: Sequence[FoldedFinding]) -> Headline:
    """Return the state, the culprits with their causes, and whether the launch plan can be used."""
    state = state_of(report)
    return Headline(state, words_of_state(report, state), (*_details(report, findings, state),))


def words_of_state(report: Report, state: State) -> str:
    """Return "Ready"; after a run of some checks "Only NC4, NC5 checked", because the cluster may not be ready."""
    if not report.select or state not in (State.READY, State.WARNED):
        return tr(state.value)
    some = only(report) if len(report.select) <= _NAMED else tr("only some checks ran")
    text = some[0].upper() + some[1:]
    return text if state is State.READY else tr("{text}, with warnings", text=text)


def _details(report: Report, findings: Sequence[FoldedFinding], state: State) -> Sequence[str]:
    relevant = [one for one in findings if not one.ignored and matters(one.severity, report.fail_on)]
    errors = [one for one in relevant if one.severity is Severity.ERROR]
    others = [one for one in relevant if one.severity is not Severity.ERROR]
    lost = unexplained(report, findings)
    dropped = [left_out(report.dropped, len({*report.dropped, *(node.name for node in report.nodes)}))]
    rest = [*_again(report), *(dropped if report.dropped else ()), *_milder(report)]
    causes = [one for one in errors if one.counts] or [one for one in relevant if one.counts] or errors
    if state is State.INTERRUPTED:
        nodes = words.count(len(report.nodes), "node")
        answered = tr("{number} of {nodes} answered", number=sum(node.reached for node in report.nodes), nodes=nodes)
        culprits = _culprits([one for one in errors if one.counts])
        found = [tr("found so far: {culprits}", culprits=tr("; ").join(culprits))] if culprits else []
        after = tr("after {seconds} s: {answered}", seconds=f"{report.seconds:.1f}", answered=answered)
        return [after, *found, *rest]
    if state is State.ONLY_WITH_PLAN:
        return [*_culprits([one for one in errors if one.counts]), *rest]
    rest = [
        *_alone(report),
        *_cpus_only(report),
        *python_not_judged(report),
        *_plan(report, errors=bool(errors)),
        *rest,
    ]
    unknown = _unknown(unknown_by_cause(report)[0])
    if state is State.NOT_READY:
        named = set(map(id, causes))
        parts = [*_culprits(causes), *counted(one for one in others if one.counts and id(one) not in named).problems]
        return [*parts, *lost, *unknown, *rest]
    if state is State.READY:
        return [_passed(report), *rest]
    found = [*lost, *unknown, *_culprits([one for one in others if one.counts])]
    nothing = [tr("no check passed")] if state is State.NOT_VERIFIED and not found else []
    return [*found, *nothing, *rest]


def _culprits(causes: Sequence[FoldedFinding]) -> list[str]:
    """Return "gpu02: mlx5_5 has no link", the worst first; what there is no room for is counted."""
    nodes_of_cause: dict[str, dict[str, None]] = {}
    for finding in sorted(causes, key=urgency):
        nodes_of_cause.setdefault(finding.summary, {}).update(dict.fromkeys(finding.nodes))
    causes_of: dict[tuple[str, ...], list[str]] = {}
    for cause, nodes in nodes_of_cause.items():
        causes_of.setdefault(tuple(nodes), []).append(cause)
    named = [_on(nodes, words.joined(same, _CAUSES)) for nodes, same in causes_of.items()]
    more = len(named) - _CULPRITS
    return named if more <= 0 else [*named[:_CULPRITS], tr("{number} more", number=more)]


def _on(nodes: Sequence[str], what: str) -> str:
    return tr("{nodes}: {what}", nodes=words.node_set(nodes), what=what)


def unexplained(report: Report, findings: Iterable[FoldedFinding]) -> list[str]:
    """Return the nodes that were not reached and that no finding names, by cause."""
    errors = (one for one in findings if one.severity is Severity.ERROR and not one.ignored)
    named = set(nodes_of(errors))
    lost = [node for node in report.nodes if not node.reached and node.name not in named]
    return [_on(nodes, why) for why, nodes in grouped({node.name: unreached(node) for node in lost})]


def unreached(node: NodeSummary) -> str:
    """Return "unreachable (refused)", or "not tried": then nothing is known of the node."""
    if node.cause == Cause.NOT_TRIED.value:
        return tr("not tried")
    return tr("unreachable ({cause})", cause=words.line(node.cause) or tr("cause unknown"))


def _unknown(verdicts: Sequence[Verdict]) -> list[str]:
    """Return "6 checks unknown on node04"."""
    checks = words.count(len({verdict.code for verdict in verdicts}), "check")
    nodes = words.node_set(names_in(verdicts))
    return [tr("{checks} unknown on {nodes}", checks=checks, nodes=nodes)] if verdicts else []


def names_in(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """Return the nodes of verdicts, each once."""
    return tuple(checks_of(verdicts))


def checks_of(verdicts: Iterable[Verdict]) -> Counter[str]:
    """Return the number of checks of each node that these verdicts are about."""
    return Counter(node for verdict in verdicts for node in verdict.nodes)


def _alone(report: Report) -> list[str]:
    return [tr("this machine alone")] if [node.transport for node in report.nodes] == ["local"] else []


def _cpus_only(report: Report) -> list[str]:
    return [tr("no GPU on any node, so only CPU checks ran")] if report.cpus_only else []


def python_not_judged(report: Report) -> list[str]:
    """Return that no framework was found to judge, and what to type; or nothing."""
    typed = report.name_python
    return [tr("not judged: the Python of the job (here: {command})", command=typed)] if typed else []


def _plan(report: Report, *, errors: bool) -> list[str]:
    if not report.plan.made:
        return []
    if report.plan.blockers:
        return [tr("launch plan not usable")]
    return [tr("launch plan usable once this is fixed") if errors else tr("launch plan usable")]


def _again(report: Report) -> list[str]:
    """Return how many problems of an earlier report are gone."""
    if report.again is None:
        return []
    problems = report.again.problems
    if not problems:
        return [tr("nothing had failed in the earlier report, so all was checked")]
    gone, earlier = sum(one.is_gone for one in problems), words.count(len(problems), "earlier problem")
    return [tr("{gone} of {problems} gone", gone=gone, problems=earlier)]


def looked_again(report: Report) -> Iterator[str]:
    """Yield what came of an earlier report: which problems are gone, which remain, and which are not known."""
    if report.again is None or not report.again.problems:
        return
    problems = report.again.problems
    parts = {
        tr("remain"): [(one, one.remains) for one in problems],
        tr("unknown"): [(one, one.unknown) for one in problems],
        tr("not in the list now"): [(one, one.unlisted) for one in problems],
        tr("gone"): [(one, one.gone) for one in problems if one.is_gone],
    }
    listed = {
        word: [
            tr("{problem} on {nodes}", problem=f"{one.code} {one.check}", nodes=words.node_set(nodes))
            for one, nodes in part
            if nodes
        ]
        for word, part in parts.items()
    }
    said = tr("; ").join(
        tr("{label}: ", label=word) + words.joined(named, _PROBLEMS) for word, named in listed.items() if named
    )
    gone, named = sum(one.is_gone for one in problems), words.count(len(problems), "problem")
    time = words.line(report.again.time).replace("T", " ", 1)
    yield tr("{gone} of {problems} of {time} gone; {said}", gone=gone, problems=named, time=time, said=said)


def _milder(report: Report) -> list[str]:
    settings = words.line(", ".join(report.milder))
    return [tr("{settings} by the ncheck.toml of this folder", settings=settings)] if settings else []


def _passed(report: Report) -> str:
    """Return "23 checks passed, 4 skipped"."""
    every = {verdict.code for verdict in report.verdicts}
    passed = {verdict.code for verdict in report.verdicts if verdict.outcome is Outcome.PASSED}
    checks = words.count(len(passed), "check")
    skipped = len(every - passed)
    if not skipped:
        return tr("{checks} passed", checks=checks)
    return tr("{checks} passed, {number} skipped", checks=checks, number=skipped)


def caveats(report: Report) -> Iterator[str]:
    """Yield what limits everything else in the report."""
    yield from looked_again(report)
    if report.recorded:
        recorded = [node.name for node in report.nodes if node.recorded]
        some = 0 < len(recorded) < len(report.nodes)
        on = tr("Recorded data on {nodes}, not live.", nodes=words.node_set(recorded))
        yield on if some else tr("Recorded data, not live.")


def left_out(bad: Mapping[str, str], total: int) -> str:
    """Return "15 of 16 nodes, without node07: NC402 ...". Nodes that are left out for one reason share it."""
    reasons = tr("; ").join(_on(nodes, words.line(reason)[:_LONGEST_REASON]) for reason, nodes in grouped(dict(bad)))
    nodes = words.count(total, "node")
    return tr("{number} of {nodes}, without {reasons}", number=total - len(bad), nodes=nodes, reasons=reasons)


def origin(report: Report) -> Iterator[str]:
    """Yield "ncheck 0.1.0", "6 nodes: gpu[01-06], 5 reached", "only NC4 checked", and when and by what it was made."""
    names = [node.name for node in report.nodes]
    reached = sum(node.reached for node in report.nodes)
    yield f"ncheck {report.version}"
    listed = tr("{number}: {nodes}", number=words.count(len(names), "node"), nodes=words.node_set(names))
    yield tr("{listed}, {number} reached", listed=listed, number=reached) if reached < len(names) else listed
    if report.level not in ("", "standard"):
        beside = ", ".join(report.beside_level)
        level = words.line(report.level)
        yield (
            tr("level {level} but {beside}", level=level, beside=words.line(beside))
            if beside
            else tr("level {level}", level=level)
        )
    if report.select:
        yield only(report)
    if report.time:
        yield words.line(report.time).replace("T", " ", 1)
    if report.command:
        yield f"{words.line(report.user)}@{words.line(report.host)}: {words.line(report.command)}"


def only(report: Report) -> str:
    """Return "only NC4, NC5 checked", of a run of some checks."""
    return tr("only {checks} checked", checks=words.joined(tuple(map(words.line, report.select)), _SELECTED))


def by_topic(findings: Iterable[FoldedFinding]) -> dict[str, list[FoldedFinding]]:
    """Return the findings under their headings: the topic with the worst first, ignored findings last."""
    topics: dict[str, list[FoldedFinding]] = {}
    for finding in sorted(findings, key=urgency):
        topics.setdefault(topic_of(finding.code), []).append(finding)
    return topics


def urgency(finding: FoldedFinding) -> tuple[bool, int, bool, str]:
    """Return what findings are sorted by, the worst first."""
    return finding.ignored, finding.severity.rank, bool(finding.see), finding.code


def consequences(
    findings: Sequence[FoldedFinding], *, elsewhere: bool = False
) -> dict[FoldedFinding, list[FoldedFinding]]:
    """Return what follows from each cause, at the first of its causes. `elsewhere`: only what names further nodes."""
    causes_of: dict[str, set[str]] = {}
    for one in findings:
        causes_of.setdefault(one.code, set()).update(one.see)
    following: dict[FoldedFinding, list[FoldedFinding]] = {}
    for one in findings:
        if not one.see or one.ignored:
            continue
        codes: set[str] = set()
        left = set(one.see)
        while left:  # a consequence of a consequence
            codes |= left
            left = {code for known in left for code in causes_of.get(known, ())} - codes
        causes = [cause for cause in findings if cause.code in codes and not cause.see]
        if not causes:
            continue
        if not elsewhere or not {node for cause in causes for node in cause.nodes}.issuperset(one.nodes):
            shared = [cause for cause in causes if not set(cause.nodes).isdisjoint(one.nodes)]
            following.setdefault((shared or causes)[0], []).append(one)
    return following


def read_more(findings: Sequence[FoldedFinding]) -> str:
    """Return what to type to read of the worst finding, and to let it pass; "" where nothing is wrong."""
    worst = min(
        (one for one in findings if one.counts and one.severity is not Severity.INFO), key=urgency, default=None
    )
    if worst is None:
        return ""
    nodes = fold(worst.nodes)
    which = f"{worst.code}={nodes}" if worst.nodes and len(nodes) <= words.LONGEST_SET else worst.code
    ignored = f"--ignore {shlex.quote(words.line(which))}"
    return tr("to read more: {explained}; to let it pass: {ignored}", explained=worst.page, ignored=ignored)


def nodes_of(findings: Iterable[FoldedFinding]) -> tuple[str, ...]:
    """Return all nodes of the findings, each once."""
    return tuple(dict.fromkeys(node for finding in findings for node in finding.nodes))


def node_topics(report: Report) -> dict[str, dict[str, str]]:
    """Return topic -> node -> what the node has, such as GPUs or NCCL, for the nodes that were reached."""
    lines = {node: _lines(system) for system in report.systems for node in system.nodes}
    topics: dict[str, dict[str, str]] = {}
    for node in report.nodes:
        for topic, line in lines.get(node.name, {}).items() if node.reached else ():
            topics.setdefault(topic, {})[node.name] = line
    return topics


def _lines(system: System) -> dict[str, str]:
    """Say each topic that was asked for; what is absent or unknown says so."""
    ports = (
        f"{'EFA ' if port.link_layer == 'EFA' else ''}{f'{port.rate:g} Gb/s ' if port.rate else ''}{port.state}"
        for port in system.ports or ()
    )
    wires = (f"{wire.name} {wire.network}" for wire in system.interfaces or () if wire.network)
    gpus = (
        tr(", ").join((_times(system.gpus.models), tr("driver {version}", version=system.gpus.driver)))
        if system.gpus
        else ""
    )
    lines = (
        ("GPUs", "gpus", gpus),
        ("NCCL", "nccl", tr("{version} from {path}", version=system.nccl, path=system.nccl_path)),
        ("MPI", "mpi", f"{system.mpi} {system.mpi_version}"),
        ("Horovod", "horovod", system.horovod),
        ("InfiniBand", "ports", _times(Counter(ports))),
        ("network", "interfaces", ", ".join(wires) or tr("none usable")),
    )
    missing = {
        **dict.fromkeys(system.absent, tr("none")),
        **{key: tr("unknown: {reason}", reason=why) for key, why in system.unknown.items()},
    }
    by_topic = {
        topic: missing.get(key, line if getattr(system, key) is not None else None) for topic, key, line in lines
    }
    return {topic: line for topic, line in by_topic.items() if line is not None}


def _times(counts: Mapping[str, int]) -> str:
    return " + ".join(f"{count} x {name}" for name, count in counts.items())


def interpreter(node: NodeSummary) -> str:
    """Return the job's interpreter, and its container if there is one."""
    python = node.interpreter or tr("unknown")
    return tr("{python}, in {container}", python=python, container=node.container) if node.container else python


def plan_settings(plan: LaunchPlan) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield each variable: the lines that set it, or none and a sentence instead; and the reason."""
    for name, setting in plan.env.items():
        own = {node: values[name].value or "" for node, values in plan.per_node.items() if name in values}
        exports = nodes_by_value(own) if setting.value is None else {setting.value: ()}
        lines = [(export_line(words.line(name), words.line(value)), nodes) for value, nodes in exports.items()]
        state = tr("leave it unset") if setting.decided else tr("undecided")
        typed = tuple(f"{line}  # on {words.node_set(nodes)}" if nodes else line for line, nodes in lines)
        if setting.pin and not typed:
            yield (), _unset(name, setting), ""
        else:
            sentence = tr("{name}: {state}", name=words.line(name), state=state)
            yield typed, "" if typed else sentence, setting.reason


def pins(plan: LaunchPlan) -> Iterator[str]:
    """Yield the variables that are not needed, with the assignment that makes sure of what happens without them."""
    return (_unset(name, setting) for name, setting in plan.env.items() if setting.value is None and setting.pin)


def _unset(name: str, setting: Setting) -> str:
    """Return "NCCL_SOCKET_IFNAME: not needed, NCCL picks bond0; to pin it: NCCL_SOCKET_IFNAME==bond0"."""
    return tr(
        "{name}: {reason}; to pin it: {name}={pin}",
        name=words.line(name),
        reason=words.line(setting.reason),
        pin=words.line(setting.pin),
    )


def reasons_to_set(plan: LaunchPlan) -> Iterator[tuple[str, str]]:
    """Yield the variables that the plan sets for one reason, and the reason."""
    values = {name for settings in plan.per_node.values() for name, one in settings.items() if one.value is not None}
    set_to = {name: one.reason for name, one in plan.env.items() if one.value is not None or name in values}
    for reason, names in nodes_by_value(set_to).items():
        yield words.line(", ".join(names)), words.line(reason)


def blocked(plan: LaunchPlan) -> str:
    """Return "not usable: fix NC111 and NC402 first", or nothing."""
    codes = tuple(dict.fromkeys(one.code for one in plan.blockers if one.code))
    if not plan.blockers or not plan.made:
        return ""
    if not codes:
        return tr("not usable: what it depends on is unknown")
    return tr("not usable: fix {codes} first", codes=words.joined(codes, _CULPRITS))


def totals(report: Report, findings: Sequence[FoldedFinding]) -> tuple[str, ...]:
    """Return "2 errors, 0 warnings · 468 verdicts: 2 failed, ... · 0.1 s", in its three parts."""
    outcomes = tr(", ").join(_outcomes(report))
    verdicts = words.count(sum(len(verdict.nodes) for verdict in report.verdicts), "verdict")
    listed = tr("{verdicts}: {outcomes}", verdicts=verdicts, outcomes=outcomes)
    return str(counted(findings)), listed, tr("{seconds} s", seconds=f"{report.seconds:.1f}")


_SHORTEST = 0.05  # seconds of a part that is printed


def timeline(report: Report) -> str:
    """Return "2.1 s: start 0.3, log in 0.1, questions 0.7 (slowest: nccl 0.3 s on n2), measured 0.4"; "" if unknown."""
    parts = tr(", ").join(_part(one) for one in report.timeline if one.seconds >= _SHORTEST)
    return tr("{seconds} s: {parts}", seconds=f"{report.seconds:.1f}", parts=parts) if parts else ""


def _part(part: RunPart) -> str:
    asked = part.question_seconds >= _SHORTEST
    question, seconds = words.line(part.question), f"{part.question_seconds:.1f}"
    slowest = tr("slowest: {question} {seconds} s on {node}", question=question, seconds=seconds, node=part.node)
    late, longest = words.node_set(list(part.late)), f"{max(part.late.values(), default=0.0):.1f}"
    waited = tr("{nodes} made the others wait {seconds} s", nodes=late, seconds=longest)
    notes = tr("; ").join([*([slowest] if asked else []), *([waited] if part.late else [])])
    took = f"{tr(part.part)} {part.seconds:.1f}"
    return tr("{what} ({note})", what=took, note=notes) if notes else took


def _outcomes(report: Report) -> Iterator[str]:
    """Yield "2 failed", "5 info", "111 not run (unreachable)", "12 skipped (3 need root: --sudo)"."""
    counts = counts_of_outcomes(report)
    root = sum(len(verdict.nodes) for verdict in report.verdicts if verdict.needs_root)
    mute = any(node.reached and not node.examined for node in report.nodes)
    not_run = tr("unreachable, or no agent started") if mute else tr("unreachable")
    need_root = tr("{number} need root: {how}", number=root, how=root_by(report))
    notes = {SKIPPED: need_root if root else "", NOT_RUN: not_run}
    for word, number in counts.items():
        what = tr("{number} {outcome}", number=number, outcome=tr(word))
        note = notes.get(word)
        yield tr("{what} ({note})", what=what, note=note) if note else what


def root_by(report: Report) -> str:
    """Return how to get the rights that checks need. Root in a container lacks them, and so does sudo there."""
    reached = [node for node in report.nodes if node.reached]
    return tr("on the host, outside of the container") if all(node.container for node in reached) else "--sudo"


INFO, NOT_RUN, SKIPPED = "info", "not run", Outcome.SKIPPED.value
OUTCOMES = (Outcome.FAILED.value, INFO, Outcome.CRASHED.value, NOT_RUN, Outcome.UNKNOWN.value, SKIPPED,
            Outcome.PASSED.value)  # fmt: skip


def counts_of_outcomes(report: Report) -> dict[str, int]:
    """Return the number of verdicts by outcome, the worst first: the one count of every format."""
    counts: Counter[str] = Counter()
    for word, verdict in by_outcome(report):
        counts[word] += len(verdict.nodes)
    return {word: counts[word] for word in OUTCOMES if counts[word]}


def by_outcome(report: Report) -> Iterator[tuple[str, Verdict]]:
    """Yield each verdict with a word of OUTCOMES, as people understand it: what is only worth knowing did not fail, and
    what was unreachable is not unknown check by check.
    """
    noted = {(finding.code, node) for finding in report.findings for node in finding.nodes
             if finding.severity is Severity.INFO and not finding.ignored}  # fmt: skip
    lost = {node.name for node in report.nodes if not node.examined}
    for verdict in report.verdicts:
        apart: set[str] = set()
        if verdict.outcome is Outcome.FAILED:
            apart = {node for node in verdict.nodes if (verdict.code, node) in noted}
        elif verdict.outcome is Outcome.UNKNOWN:
            apart = lost.intersection(verdict.nodes)
        if not apart:
            yield verdict.outcome.value, verdict
            continue
        word = INFO if verdict.outcome is Outcome.FAILED else NOT_RUN
        yield word, replace(verdict, nodes=tuple(node for node in verdict.nodes if node in apart))
        if len(apart) < len(verdict.nodes):
            rest = tuple(node for node in verdict.nodes if node not in apart)
            yield verdict.outcome.value, replace(verdict, nodes=rest)


def exit_code_meaning(report: Report) -> str:
    """Return the exit code with its reason, such as "exit code 0: clean"."""
    return tr("exit code {code}: {meaning}", code=report.exit_code, meaning=_meaning(report))


def _meaning(report: Report) -> str:
    rule = f"--fail-on {','.join(report.fail_on) or 'none'}"
    unknown = any(verdict.outcome is Outcome.UNKNOWN for verdict in report.verdicts)
    findings = [finding for finding in report.findings if not finding.ignored]
    if report.exit_code == EXIT_INTERRUPTED:
        return tr("interrupted")
    if report.exit_code == EXIT_CLEAN and report.verdicts and state_of(report) is State.NOT_VERIFIED and not unknown:
        return tr("nothing failed, and no check passed")
    if report.exit_code == EXIT_CLEAN:
        nothing = tr("nothing above counts as a failure ({rule})", rule=rule)
        return nothing if findings or unknown else tr("clean")
    if any(finding.severity.value in report.fail_on for finding in findings) or not unknown:
        return tr("the findings above count as failures ({rule})", rule=rule)
    return tr("unknown results count as failures ({rule})", rule=rule)
