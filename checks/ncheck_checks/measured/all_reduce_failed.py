"""A collective operation failed, and why

## What it finds
Steps of the probe that failed, in all-reduce or in another operation of --op, one finding per cause. It searches what
every rank printed and NCCL's log for known causes: different versions, a wrong interface, a refused or dropped
connection, locked memory, /dev/shm, InfiniBand, the driver, a GPU that is used twice or out of memory. It names the
node whose own log shows the cause, and lists nodes that only lost their connection to it separately. If a connection
could not be made, it names the node that never succeeded although its partners did with others; if the fault can be at
either end, it names both. A step that only ran out of the probe's time is unknown, and no node is blamed.

## Why it matters
The job does the same operations over the same network and libraries: it fails or hangs where the probe did.

## What to type
The command of the finding. If no rank reports a cause: `ncheck nodes.txt --mesh all --probe none` tests each link
between the nodes, and `ncheck probe nodes.txt --probe-time 300` gives a slow cluster more time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address

from ncheck import HERE, Cluster, Inconclusive, Problem, Severity, cluster_check, fold
from ncheck.expression import expression
from ncheck.facts.nics import NicFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, Stage, Step
from ncheck.probe.results import Collective, FailureReport, collectives, failure_report, gaps, named
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.lines import LogLine
from ncheck.triage.log_clues import clues_in

# These have checks of their own, because they run no operation of --op.
ELSEWHERE = frozenset({Method.RDMA, Method.DIAGNOSTICS, Method.NICS, Method.LOOPBACK})
_MOST_EVIDENCE = 9
_OF_ITS_SHELL = ("export ", "ulimit ")  # what these set is gone when the shell ends in which they are typed
_IN_JOB = "put into the script of the job, before it starts the ranks"
_TEST_ALL_LINKS = "ncheck nodes.txt --mesh all --probe none"


@dataclass(frozen=True)
class Breakdown:
    """One cause, and its `clue`. `nodes` failed by themselves, while doing `at`; `cut_off` only lost their connection.

    `callers` report that they could not connect to `nodes`. `open`: `nodes` are both ends of connections, and it is
    unknown which end is at fault.
    """

    nodes: tuple[str, ...]
    cut_off: tuple[str, ...]
    clue: Clue
    evidence: tuple[str, ...]
    at: str
    steps: tuple[Step, ...]
    callers: tuple[str, ...] = ()
    open: bool = False

    @property
    def command(self) -> str:
        """The command to type: what changes something only where the cause is known."""
        return (self.clue.fix if self.mends else next(iter(self.clue.looks), "")) or _TEST_ALL_LINKS

    @property
    def mends(self) -> bool:
        """Whether the command changes something."""
        return bool(self.clue.fix) and self.clue.grade >= Grade.LIKELY

    @property
    def to_type_on(self) -> str:
        """The node on which the command must be typed; "" if it is typed anywhere, or on each."""
        on_node = self.command.startswith("sudo ") and (self.callers or self.clue.cause == "firewall")
        return self.nodes[0] if on_node else ""


@dataclass(frozen=True)
class Unfinished:
    """Nodes whose result is unknown, and why: they ran out of time, or their step was skipped."""

    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class _Context:
    """What is known from all steps together.

    sound     nodes that finished a step with other nodes
    owners    which node has an address
    culprits  nodes that never got a connection although their partners did with others
    """

    sound: frozenset[str]
    owners: Owners
    culprits: frozenset[str]


def breakdowns(probed: Mapping[str, ProbeFacts], owners: Owners | None = None) -> tuple[Breakdown, ...]:
    """Return why steps failed, each cause once, the surest first.

    A node whose own log names a cause outweighs those that only lost it. If no log does, the node is named that got
    least far, or that fails with every partner; a step with too little time blames no node. A failed connection is
    reported by the end that dials, but the other end may be at fault.
    """
    ran = _ran(probed)
    context = _context(ran, owners or {})
    found: dict[tuple[str, str, bool], Breakdown] = {}
    for one in ran:
        for broken in _of_step(one, context):
            key = broken.clue.cause, broken.clue.meaning, broken.open
            found[key] = _joined(found[key], broken) if key in found else broken
    return tuple(sorted(map(_without_own, found.values()), key=lambda broken: -broken.clue.grade))


def unfinished(probed: Mapping[str, ProbeFacts]) -> tuple[Unfinished, ...]:
    """Return the nodes that had too little time, did not answer, or whose step was skipped."""
    doubts: dict[str, list[str]] = {}
    for one in _ran(probed):
        for node, why in _short_of_time(one):
            doubts.setdefault(why, []).append(node)
    for node, facts in probed.items():
        through = {(result.step.op, result.step.stage) for result in facts.results}
        through |= {(step.step.op, Stage.BOUNDARY) for step in facts.skipped}  # slow-between-groups says so
        for step in facts.skipped:
            if (step.step.op, step.step.stage) not in through and step.step.method not in ELSEWHERE:
                doubts.setdefault(f"{_place(step.step)} was skipped: {step.why}", []).append(node)
    return tuple(Unfinished(tuple(dict.fromkeys(nodes)), why) for why, nodes in doubts.items())


def _ran(probed: Mapping[str, ProbeFacts]) -> tuple[Collective, ...]:
    return tuple(one for one in collectives(probed) if one.step.method not in ELSEWHERE)


def _sound(ran: Sequence[Collective]) -> frozenset[str]:
    """Return the nodes that finished a step with other nodes: they are not why another step hung."""
    return frozenset(node for one in ran if one.whole and len(one.step.group) > 1 for node in one.step.group)


def _context(ran: Sequence[Collective], owners: Owners) -> _Context:
    sound = _sound(ran)
    failed = (dial for one in ran for report in _reports(one) for dial in dials(one.step, report, owners))
    return _Context(sound, owners, likeliest(failed, sound))


def _reports(one: Collective) -> list[FailureReport]:
    return [failure_report(node, one.results[node], failure) for node, failure in one.failures.items()]


def _of_step(one: Collective, context: _Context) -> Iterator[Breakdown]:
    reports = _reports(one)
    naming = [report for report in reports if report.names_cause]
    if one.silent and reports and not any(_grade(report) is Grade.CERTAIN for report in naming):
        yield _breakdown(one, one.silent, _GONE, reports)  # the others see refusals and silence, whatever the cause
    elif naming:
        yield from _named_causes(one, reports, naming, context)
    elif reports and (differing := _side_by_side(reports)):
        yield _breakdown(one, one.step.group, differing, reports)
    elif any(report.hung for report in reports):
        yield _hung(one, [report for report in reports if report.failure.late], context.sound)
    elif any(not report.failure.late for report in reports):
        yield _lost(one, reports, context.sound)


def _named_causes(
    one: Collective, reports: list[FailureReport], naming: list[FailureReport], context: _Context
) -> Iterator[Breakdown]:
    """Yield the causes that nodes name: all certain ones, otherwise those with the highest confidence."""
    best = max(map(_grade, naming))
    groups: dict[tuple[str, str], list[FailureReport]] = {}
    for report in naming:
        if report.clue and report.clue.grade is best:
            groups.setdefault((report.clue.cause, report.clue.meaning), []).append(report)
    for members in groups.values():
        dialled = {report.node for report in members if dials(one.step, report, context.owners)}
        yield from _by_end(one, reports, [report for report in members if report.node in dialled], context)
        if own := [report for report in members if report.node not in dialled]:
            yield _breakdown(one, [report.node for report in own], _shared(own), reports)


def _by_end(
    one: Collective, reports: list[FailureReport], callers: list[FailureReport], context: _Context
) -> Iterator[Breakdown]:
    """Yield failed connections: one breakdown for those with a likely culprit, one where either end may be at fault."""
    failed = {report.node: dials(one.step, report, context.owners) for report in callers}
    blamed = {node for dialled in failed.values() for dial in dialled for node in dial.blamed(context.culprits)}
    if blamed:
        about = [report for report in callers if any(dial.blamed(context.culprits) for dial in failed[report.node])]
        nodes = tuple(node for node in one.step.group if node in blamed)
        others = tuple(report.node for report in about if report.node not in blamed)
        yield replace(_breakdown(one, nodes, _shared(about, named=True), reports), callers=others)
    rest = [report for report in callers if not all(dial.blamed(context.culprits) for dial in failed[report.node])]
    if rest:
        undecided = (dial for report in rest for dial in failed[report.node] if not dial.blamed(context.culprits))
        ends = {node for dial in undecided for node in dial.ends}
        nodes = tuple(node for node in one.step.group if node in ends)
        clue = replace(_shared(rest, named=True), fix=None, looks=(_TEST_ALL_LINKS,))
        at = next((report.failure.step for report in rest if report.failure.step), "")
        yield replace(_breakdown(one, nodes, clue, reports), at=at, open=True)


def _shared(members: Sequence[FailureReport], *, named: bool = False) -> Clue:
    """Return the clue that these share, with the evidence of each; `named` puts the node in front."""
    words = [(report.node, line) for report in members for line in (report.clue.evidence if report.clue else ())]
    lines = (f"{node}: {line}" if named and not line.startswith(node) else line for node, line in words)
    first = next(report.clue for report in members if report.clue)
    return replace(first, text="", lines=tuple(LogLine(0, line) for line in dict.fromkeys(lines)))


def _grade(report: FailureReport) -> Grade:
    return report.clue.grade if report.clue else Grade.ECHO


def _side_by_side(reports: list[FailureReport]) -> Clue | None:
    """Return what only all logs together show: ranks that differ."""
    alone = {report.clue.cause for report in reports if report.clue}
    lines = [line for report in reports for line in (report.failure.words, *report.result.log)]
    best = next(iter(clues_in(lines)), None)
    return best if best and not best.echo and best.cause not in alone else None


def _clue(cause: str, meaning: str, look: str) -> Clue:
    """Return what no line of a log says, and only that ranks ended or hung."""
    return Clue("logs", cause, Grade.POSSIBLE, "", meaning=meaning, looks=(look,))


_GONE = _clue(
    "rank_crashed", "it stopped answering during the step: the node or its network went down",
    "ncheck nodes.txt --probe none",
)  # fmt: skip


def _hung(one: Collective, late: list[FailureReport], sound: frozenset[str]) -> Breakdown:
    """Return a step that hung until its time was over, without any message."""
    least = min(report.progress for report in late)
    behind = [report for report in late if report.progress == least]
    if len(behind) == len(late) == len(one.step.group):
        nodes = _blamed(one, sound)
        meaning = "it hung until its time was over, and no rank reports a cause"
    else:
        nodes = tuple(report.node for report in behind)
        meaning = "its ranks hung until their time was over, and the others waited for them"
    return _breakdown(one, nodes, _clue("", meaning, _to_try(one.step)), late)


def _to_try(step: Step) -> str:
    """Return what shows more about a step that hangs without a message: GPU to GPU, or node to node."""
    if step.stage is Stage.INSIDE and step.method.by_nccl:
        return "export NCCL_P2P_DISABLE=1"
    return _TEST_ALL_LINKS


def _lost(one: Collective, reports: list[FailureReport], sound: frozenset[str]) -> Breakdown:
    """Return a step in which every node only reports that it lost another one."""
    clue = next((report.clue for report in reports if report.clue), None)
    unknown = _clue("", "a rank ended, and no rank reports a cause", _to_try(one.step))
    return _breakdown(one, _blamed(one, sound), clue or unknown, reports)


def _blamed(one: Collective, sound: frozenset[str]) -> tuple[str, ...]:
    """Return the nodes of a step that never finished one with other nodes; all nodes, if all did."""
    return tuple(node for node in one.step.group if node not in sound) or one.step.group


def _breakdown(one: Collective, nodes: Sequence[str], clue: Clue, reports: Sequence[FailureReport]) -> Breakdown:
    steps = [report.failure.step for report in reports if report.node in nodes and report.failure.step]
    return Breakdown(
        nodes=tuple(nodes),
        cut_off=tuple(node for node in (*one.failures, *one.silent) if node not in nodes),
        clue=clue,
        evidence=clue.evidence or tuple(f"{r.node}: {r.failure.words}" for r in reports if r.failure.words),
        at=steps[0] if steps else "",
        steps=(one.step,),
    )


def _joined(one: Breakdown, other: Breakdown) -> Breakdown:
    """Join two breakdowns with the same cause."""
    return replace(
        one,
        nodes=tuple(dict.fromkeys((*one.nodes, *other.nodes))),
        cut_off=tuple(dict.fromkeys((*one.cut_off, *other.cut_off))),
        evidence=tuple(dict.fromkeys((*one.evidence, *other.evidence)))[:_MOST_EVIDENCE],
        steps=(*one.steps, *other.steps),
        callers=tuple(dict.fromkeys((*one.callers, *other.callers))),
    )


def _without_own(broken: Breakdown) -> Breakdown:
    cut_off = tuple(node for node in broken.cut_off if node not in (*broken.nodes, *broken.callers))
    return replace(broken, cut_off=cut_off, evidence=broken.evidence[:_MOST_EVIDENCE])


def _short_of_time(one: Collective) -> Iterator[tuple[str, str]]:
    """Yield the nodes of a step that ran out of time while making progress, and those that did not answer."""
    reports = _reports(one)
    if any(report.names_cause or report.hung or not report.failure.late for report in reports):
        return
    if not reports:
        yield from ((node, f"no result from it for {_place(one.step)}") for node in one.silent)
    for report in reports:
        limit = f"{report.result.seconds:.0f} s were" if report.result.seconds is not None else "its time was"
        at = f" (it was in: {report.failure.step})" if report.failure.step else ""
        yield report.node, f"{_place(one.step)}: {limit} too short to see whether it works{at}; try --probe-time"


def _place(step: Step) -> str:
    """Return what ran, and where."""
    where = {Stage.INSIDE: "inside the node", Stage.PAIR: "between two nodes", Stage.RAIL: "between two HCA ports"}
    act = "TCP transfer" if step.method is Method.TCP else step.act
    return f"the {act} {where.get(step.stage, f'on {len(step.group)} nodes')}"


def message(broken: Breakdown) -> str:
    """Return what failed, on which nodes, why, and which nodes only lost the connection."""
    places = tuple(dict.fromkeys(_place(step) for step in broken.steps))
    times = f" and {len(places) - 1} more" if len(places) > 1 else ""
    at = f" in {broken.at}" if broken.at else ""
    clue = broken.clue
    maybe = f"; other possible causes: {_or(clue.others)}" if clue.grade <= Grade.POSSIBLE and clue.others else ""
    lost = f"; {fold(broken.cut_off)} only lost the connection" if broken.cut_off else ""
    lost += "; either end of the connection may be at fault" if broken.open else ""
    if broken.callers:
        them = "it" if len(broken.nodes) == 1 else "them"
        return (
            f"{places[0]}{times} failed on {fold(broken.nodes)}: {fold(broken.callers)} cannot connect to {them}, but "
            f"can connect to others: {clue.meaning}{maybe}{lost}"
        )
    return f"{places[0]}{times} failed{at} on {fold(broken.nodes)}: {clue.meaning}{maybe}{lost}"


def _or(causes: Sequence[str]) -> str:
    names = [cause.replace("_", " ") for cause in causes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


# Address to node, for addresses that only one node has.
Owners = Mapping[str, str]

# Causes of a failed connection: firewall always is one, the others only with words such as "refused".
_ALWAYS = "firewall"
_WITH_WORDS = frozenset({"rank_crashed", "rendezvous_misconfig", "routing"})

# NCCL WARN socketPollConnect: connect to 10.1.0.3<40113> returned Connection refused, exceeded error retry count (35)
_IN_VAIN = expression(r"No route to host|[Rr]efused|[Tt]imed out|no answer")

# filtered: 10.1.0.3 port 41234 from 10.1.0.1: timed out     connect to fd00::3<40113> returned No route to host
_ADDRESS = expression(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,40})(?![\w.])")
_WORD = expression(r"[\w.-]+")
_PARTNERS = 2
_PAIR = 2


@dataclass(frozen=True)
class Dial:
    """`node` could not connect to one of `far`: the node in its message, otherwise any other node of the step."""

    node: str
    far: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """Its two ends; only the near one if the other is unknown."""
        return (self.node, *self.far) if len(self.far) == 1 else (self.node,)

    def blamed(self, culprits: frozenset[str]) -> tuple[str, ...]:
        """Return which of its nodes are culprits."""
        return tuple(node for node in (self.node, *self.far) if node in culprits)


def address_owners(nics: Mapping[str, NicFacts]) -> Owners:
    """Return which node has an address; addresses of several nodes, such as docker0's, are left out."""
    nodes_by_address: dict[str, set[str]] = {}
    for node, facts in nics.items():
        for address in (address for nic in facts.interfaces for address in nic.addresses):
            nodes_by_address.setdefault(_plain(address.ip), set()).add(node)
    return {address: next(iter(nodes)) for address, nodes in nodes_by_address.items() if address and len(nodes) == 1}


def dials(step: Step, report: FailureReport, owners: Owners) -> tuple[Dial, ...]:
    """Return the failed connections that a node reports; none if it reports something else."""
    others = tuple(node for node in step.group if node != report.node)
    clue = report.clue
    if clue is None or not others:
        return ()
    lines = tuple(line for line in clue.evidence if _IN_VAIN.search(line))
    perhaps = clue.cause in _WITH_WORDS and clue.grade < Grade.CERTAIN and lines
    if clue.cause != _ALWAYS and not perhaps:
        return ()
    lines = lines or clue.evidence
    addressed = set(_addressed(lines, owners))
    named = tuple(node for node in others if node in addressed) or _by_name(lines, others)
    if len(step.group) == _PAIR or not named:
        return (Dial(report.node, others),)
    return tuple(Dial(report.node, (node,)) for node in named)


def likeliest(failed: Iterable[Dial], sound: frozenset[str]) -> frozenset[str]:
    """Return the nodes without any connection, though two or more of their partners had one with other nodes."""
    partners: dict[str, set[str]] = {}
    for dial in failed:
        if len(dial.far) == 1:
            partners.setdefault(dial.node, set()).update(dial.far)
            partners.setdefault(dial.far[0], set()).add(dial.node)
    return frozenset(
        node for node, others in partners.items() if node not in sound and len(others) >= _PARTNERS and others <= sound
    )


def _addressed(lines: Iterable[str], owners: Owners) -> Iterator[str]:
    for line in lines:
        for found in _ADDRESS.findall(line):
            if (address := _plain(found)) in owners:
                yield owners[address]


def _by_name(lines: Iterable[str], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the nodes that are named in the lines: "failed to connect to [node01]:29500"."""
    words = {word for line in lines for word in _WORD.findall(line)}
    return tuple(node for node in others if node in words)


def _plain(text: str) -> str:
    """Return an address in its usual form, "" if it is none."""
    try:
        address = ip_address(text.rstrip(":."))
    except ValueError:
        return ""
    return str(getattr(address, "ipv4_mapped", None) or address)


@cluster_check("NC701", Severity.ERROR, ProbeFacts, also=(NicFacts,), alone=True)
def all_reduce_failed(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    probed = cluster.facts(ProbeFacts)
    for broken in breakdowns(probed, address_owners(cluster.facts(NicFacts))):
        where = HERE if "ncheck " in broken.command else broken.to_type_on
        of_shell = broken.mends and broken.command.startswith(_OF_ITS_SHELL)
        fix = f"{_IN_JOB}: {broken.command}" if of_shell else broken.command
        yield Problem(
            message(broken), fix, broken.evidence, broken.nodes, where=where, look=not broken.mends, do=of_shell,
            summary=f"{named(dict.fromkeys(step.op for step in broken.steps))} failed",
        )  # fmt: skip
    for unknown in unfinished(probed):
        yield Inconclusive(unknown.why, unknown.nodes)
    for why, nodes in gaps(probed):
        yield Inconclusive(why, nodes)
