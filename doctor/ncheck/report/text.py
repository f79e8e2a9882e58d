"""Text of a report: cleaned for a terminal, counted, and folded where several nodes have the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ncheck.expression import expression
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import HERE
from ncheck.model.finding import DO, Finding, Severity, Verdict
from ncheck.model.next_step import Action, NextStep
from ncheck.model.plan import Blocker
from ncheck.model.report import Report
from ncheck.report.language import marked, tr, translation

# "\x1b[31mred", "\x9b1m", "\x1b]0;title\x07", "\x1b(B": what a terminal would obey
_ESCAPE = expression(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f]).{0,256}?(?:\x07|\x1b\\|\x9c|$)"  # OSC and the like, to the end
    r"|\x1b[ -/]*[0-~]?"  # all others
)

LONGEST_SET = 48  # characters of a node set before it is cut
_SIZES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20))
_MANY = 100


def line(text: str) -> str:
    """Return the text on one line, without escapes; control, invisible and bidirectional characters become `?`."""
    return _visible(" ".join(_ESCAPE.sub("", text).split()))


def why(reason: str, blockers: Sequence[Blocker] = ()) -> str:
    """Return why something was not done, in the language of the report where the catalogue has it as a whole.

    `blockers`: of the launch plan, which may be that reason.
    """
    codes = ", ".join(dict.fromkeys(one.code for one in blockers if one.code))
    if codes and reason == f"fix {codes} first":
        return tr("fix {codes} first", codes=codes)
    return line(tr(reason))


def lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text, each cleaned in the same way; spaces inside a line are kept."""
    return tuple(_visible(_ESCAPE.sub("", one).expandtabs()) for one in text.splitlines())


def _visible(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def size(number: int) -> str:
    """Return "80 GiB", "1.86 TiB": three digits, so that nodes of one model have one text."""
    unit, size = next(((unit, size) for unit, size in _SIZES if number >= size), _SIZES[-1])
    value = number / size
    return f"{value:.0f} {unit}" if value >= _MANY else f"{value:.3g} {unit}"


def count(number: int, noun: str) -> str:
    """Return "1 check" or "3 checks"; a language whose catalogue has the plural needs no other form."""
    several = f"{{number}} {noun}s"
    return f"{number} {noun}" if number == 1 and not translation(several) else tr(several, number=number)


def node_set(names: Collection[str], longest: int = LONGEST_SET) -> str:
    """Return the names folded, such as node[01-16]. A set that is too long is cut, with the number of its nodes.

    What is on no node is on the machine that runs ncheck.
    """
    folded = line(fold(names)) if names else tr("this machine")
    if len(folded) <= longest:
        return folded
    cut = folded[:longest].rsplit(",", 1)[0]
    bracket = "]" if cut.rfind("[") > cut.rfind("]") else ""
    return tr("{cut} ({number} nodes)", cut=f"{cut},...{bracket}", number=len(names))


def joined(items: Sequence[str], most: int) -> str:
    """Return up to `most` items as a list, and the number of the others: "a, b and 3 more"."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else tr("{shown} and {number} more", shown=shown, number=len(items) - most)


_OWN_NAME = "\0"  # stands for the name of a finding's only node while texts are compared

_WORD = expression(r"[\w-]+(?:\.[\w-]+)*")  # "node01", "gpu-17.cluster", "10.0.0.7"


@dataclass(frozen=True)
class FoldedFinding:
    """One finding as it is shown. `example` is the node that `fix` is written for, if the fix names each node.

    `title`: that of the check's page, in a report of another language than the message; else "".
    """

    code: str
    check: str
    severity: Severity
    ignored: bool
    nodes: tuple[str, ...]
    message: str
    evidence: tuple[str, ...]
    fix: str
    see: tuple[str, ...] = ()
    example: str = ""
    where: str = ""
    kind: str = "fix"
    summary: str = ""
    ask: bool = False
    title: str = ""
    page: str = ""
    next: NextStep = NextStep(Action.LOOK)

    @property
    def counts(self) -> bool:
        """Whether it is a cause of its own: neither ignored nor a consequence of another finding."""
        return not self.ignored and not self.see

    @property
    def sentence(self) -> str:
        """The message on one line; after the title, where there is one."""
        message = line(self.message)
        return tr("{title}: {message}", title=self.title, message=message) if self.title else message

    @property
    def label(self) -> str:
        """The word before its code: "error", "warning", "info", "ignored"; a consequence is no further error."""
        return "ignored" if self.ignored else "consequence" if self.see else self.severity.value


@dataclass(frozen=True)
class Counts:
    """The one count of a report, in every format: causes by severity; consequences and what is ignored apart.

    A node that is unreachable is one error, however many checks it leaves without an answer.
    """

    errors: int
    warnings: int
    infos: int
    consequences: int
    ignored: int

    @property
    def problems(self) -> tuple[str, ...]:
        """What there is of errors and warnings: "2 errors", "1 warning"."""
        pairs = ((self.errors, "error"), (self.warnings, "warning"))
        return tuple(count(number, noun) for number, noun in pairs if number)

    def __str__(self) -> str:
        parts = [count(self.errors, "error"), count(self.warnings, "warning")]
        parts += [count(self.infos, "info finding")] if self.infos else []
        parts += [count(self.consequences, "consequence")] if self.consequences else []
        parts += [tr("{number} ignored", number=self.ignored)] if self.ignored else []
        return tr(", ").join(parts)


def counted(findings: Iterable[FoldedFinding]) -> Counts:
    """Count folded findings."""
    labels = Counter(finding.label for finding in findings)
    return Counts(*(labels[word] for word in ("error", "warning", "info", "consequence", "ignored")))


def counts_of(report: Report) -> Counts:
    """Count the findings of a report."""
    return counted(fold_findings(report.findings))


@dataclass(frozen=True)
class FoldedVerdicts:
    """Checks with the same outcome, for the same reason, on the same nodes."""

    reason: str
    checks: tuple[str, ...]
    nodes: tuple[str, ...]


def fold_findings(findings: Iterable[Finding]) -> tuple[FoldedFinding, ...]:
    """Join findings of one check that differ in nothing but the name of their own node."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.code, finding.severity, finding.ignored, finding.see, _nameless(finding, finding.message))
        fix = (_nameless(finding, finding.fix), _nameless(finding, finding.where), finding.kind, finding.ask,
               finding.next.action)  # fmt: skip
        groups.setdefault((*key, *fix), []).append(finding)
    return tuple(_folded(group) for group in groups.values())


def _folded(group: Sequence[Finding]) -> FoldedFinding:
    first = group[0]
    nodes = tuple(node for finding in group for node in finding.nodes)
    message, example = first.message, ""
    if len(group) > 1:
        message = _nameless(first, message).replace(_OWN_NAME, node_set(nodes))
        example = first.nodes[0] if _OWN_NAME in _nameless(first, first.fix) else ""
    return FoldedFinding(
        first.code, first.check, first.severity, first.ignored, nodes, message, _evidence(group), first.fix,
        first.see, example, first.where, first.kind, _summary(first), first.ask, line(translation(first.title)),
        first.page,
        replace(first.next, nodes=tuple(node for finding in group for node in finding.next.nodes)),
    )  # fmt: skip


def _summary(finding: Finding) -> str:
    """Return the problem in a few words: the check's own, or the message if it is short, else the title of its page.

    In another language it is the title.
    """
    if translated := translation(finding.title):
        return line(translated)
    if finding.summary or (len(finding.message) <= _SHORT and not any(map(finding.message.count, finding.nodes[:1]))):
        return line(finding.summary or finding.message)
    first = finding.title.partition(" ")[0]
    if first in _PROPER or first[1:] != first[1:].lower():
        return line(finding.title)
    return line(finding.title[:1].lower() + finding.title[1:]) or finding.check.replace("-", " ")


_PROPER = ("Horovod", "Open", "Slurm")  # begin a title, and keep their capital as NCCL does
_SHORT = 40  # characters of a message that fits into a headline


def fix_label(finding: FoldedFinding | Blocker) -> str:
    """Return what a fix is and where to type it: "fix on gpu04", "look here"; of a sentence only where: "on gpu04".

    Of a command that only root may type: "ask the admin of gpu04 to run".
    """
    if finding.where == HERE:
        return tr(_HERE[finding.kind])
    example = finding.example if isinstance(finding, FoldedFinding) else ""
    place = line(finding.where or example) or node_set(finding.nodes)
    if finding.ask:
        return tr(_ASK[finding.kind], place=place)
    return tr(_ON[finding.kind], place=place)


_HERE = {"fix": marked("fix here"), "look": marked("look here"), DO: marked("here")}
_ON = {"fix": marked("fix on {place}"), "look": marked("look on {place}"), DO: marked("on {place}")}
_ASK = {
    "fix": marked("ask the admin of {place} to run"),
    "look": marked("ask the admin of {place} to run, and what it shows"),
    DO: marked("ask the admin of {place} to run, and what it shows"),
}


_STEPS: Mapping[Action, str] = {
    Action.RESTART: marked("restart the job"),
    Action.RESTART_WITHOUT: marked("restart the job without {nodes}"),
    Action.FIX_FIRST: marked("fix this first"),
    Action.STOP: marked("do not restart: the same would happen again"),
    Action.REBOOT: marked("reboot {nodes}"),
    Action.DRAIN: marked("drain {nodes}"),
    Action.RESET_GPU: marked("reset the GPU of {nodes}"),
    Action.TICKET: marked("open a ticket for {nodes}"),
    Action.LOOK: marked("look further before you restart"),
}


def padded(cell: str, width: int) -> str:
    """Return the text with spaces after it, so many columns wide."""
    from rich.cells import cell_len

    return cell + " " * (width - cell_len(cell))


def next_line(step: NextStep) -> str:
    """Return a step in one line: "next: restart the job without gpu07 (95% sure)"."""
    nodes = node_set(step.nodes) if step.nodes else tr("the node")  # that the evidence does not name
    return tr("next: {step} ({sure} sure)", step=tr(_STEPS[step.action], nodes=nodes), sure=f"{step.confidence:.0%}")


def next_of(finding: FoldedFinding) -> str:
    """Return the next step of a finding in one line; "" where its fix says it already: "fix on gpu04", "look here"."""
    return "" if finding.next.action in (Action.FIX_FIRST, Action.LOOK) else next_line(finding.next)


def so_also(finding: FoldedFinding) -> str:
    """Return a consequence in one line."""
    nodes = node_set(finding.nodes)
    return tr("so also {what}", what=f"{finding.code} {finding.check}  {nodes}  {finding.sentence}")


def body_of(finding: FoldedFinding, following: Iterable[FoldedFinding] = ()) -> tuple[str, ...]:
    """Return what stands below the message: the evidence, the fix, the next step, and what follows from it."""
    evidence = [f"  {one}" for text in finding.evidence for one in lines(text)]
    fix = [f"{fix_label(finding)}: {line(finding.fix)}"] if finding.fix else []
    return (*evidence, *fix, *filter(None, (next_of(finding),)), *map(so_also, following))


def _evidence(group: Sequence[Finding]) -> tuple[str, ...]:
    """Return the evidence of all findings, each line once."""
    nodes_of: dict[str, list[str]] = {}
    for finding in group:
        for evidence in finding.evidence:
            nodes_of.setdefault(_nameless(finding, evidence), []).extend(finding.nodes)
    return tuple(text.replace(_OWN_NAME, node_set(tuple(dict.fromkeys(nodes)))) for text, nodes in nodes_of.items())


def _nameless(finding: Finding, text: str) -> str:
    """Return the text without the name of the finding's only node. Only texts that this makes equal are joined."""
    return _without(finding.nodes[0], text) if len(finding.nodes) == 1 else text


def _without(name: str, text: str) -> str:
    """Replace the name where it is a word of its own."""
    if name not in text:
        return text
    return _WORD.sub(lambda word: _OWN_NAME if word[0] == name else word[0], text)


def fold_verdicts(verdicts: Iterable[Verdict]) -> tuple[FoldedVerdicts, ...]:
    """Fold verdicts by reason, then by nodes: most checks first."""
    verdicts = tuple(verdicts)
    shared = _reasons_of_several(verdicts)
    nodes_of: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        reason = verdict.reason if verdict.reason in shared else _without(verdict.nodes[0], verdict.reason)
        nodes_of.setdefault((reason, verdict.check), []).extend(verdict.nodes)
    checks_of: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (reason, check), nodes in nodes_of.items():
        checks_of.setdefault((reason, tuple(nodes)), []).append(check)
    folded = [
        FoldedVerdicts(reason.replace(_OWN_NAME, node_set(nodes)), tuple(checks), nodes)
        for (reason, nodes), checks in checks_of.items()
    ]
    return tuple(sorted(folded, key=lambda group: (-len(group.checks), -len(group.nodes))))


def _reasons_of_several(verdicts: Iterable[Verdict]) -> set[str]:
    """Return the reasons that several nodes have word for word: a node name in them is not the node's own name."""
    nodes_of: dict[str, set[str]] = {}
    for verdict in verdicts:
        nodes_of.setdefault(verdict.reason, set()).update(verdict.nodes)
    return {reason for reason, nodes in nodes_of.items() if len(nodes) > 1}


def grouped(values: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Fold node -> value to (value, nodes), the most common value first."""
    groups: dict[str, list[str]] = {}
    for node, value in values.items():
        groups.setdefault(value, []).append(node)
    return tuple((value, tuple(nodes)) for value, nodes in sorted(groups.items(), key=lambda group: -len(group[1])))
