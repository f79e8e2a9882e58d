"""Why steps of the probe failed: one breakdown a cause, over all steps, with who failed and who was only cut off.

The node whose own log names a cause outweighs those that lost it. Where nobody names one, the node is meant that came
least far, or that fails with everybody; a step whose time was too short for it blames no one. A connection that does
not come about is told by the end that dials, and may be the fault of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address

from ncheck.facts.nics import NicFacts
from ncheck.facts.probe import Means, ProbeFacts, Stage, Step
from ncheck.hostlist import fold
from ncheck.probe.accounts import Account, account
from ncheck.probe.collectives import Collective, collectives
from ncheck.triage import Confidence, Diagnosis, diagnose

# Those have checks of their own: what carries no all-reduce does not fail as one.
ELSEWHERE = frozenset({Means.RDMA, Means.DIAGNOSTICS})


_MOST_EVIDENCE = 9


_SURE = 0  # of the order of Confidence: a line names the cause


_EVERY_WAY = "ncheck nodes.txt --mesh all --probe none"


@dataclass(frozen=True)
class Breakdown:
    """One cause. `nodes` failed by themselves, `cut_off` only lost them; `at` is what those were doing.

    `callers` could not connect to `nodes`, and say so. `open` tells that `nodes` are the two ends of connections, and
    that nothing tells which of the two is to blame.
    """

    nodes: tuple[str, ...]
    cut_off: tuple[str, ...]
    cause: str
    meaning: str
    confidence: Confidence
    evidence: tuple[str, ...]
    fix: str
    others: tuple[str, ...]
    at: str
    steps: tuple[Step, ...]
    callers: tuple[str, ...] = ()
    open: bool = False

    @property
    def to_type_on(self) -> str:
        """The node whose own settings the fix shows; "" where it is typed anywhere, or on each."""
        there = self.fix.startswith("sudo ") and (self.callers or self.cause == "firewall")
        return self.nodes[0] if there else ""


@dataclass(frozen=True)
class Unfinished:
    """Nodes of which nothing can be said, and why: their time was over, or their step was never begun."""

    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class _Scene:
    """What is known beyond one step: who came to the end of one with others, and whom nobody can connect to."""

    sound: frozenset[str]
    known: Holders
    culprits: frozenset[str]


def breakdowns(probed: Mapping[str, ProbeFacts], known: Holders | None = None) -> tuple[Breakdown, ...]:
    """Return why steps failed, each cause once, the surest first; `known` tells whose an address is."""
    ran = _ran(probed)
    scene = _scene(ran, known or {})
    found: dict[tuple[str, str, bool], Breakdown] = {}
    for one in ran:
        for broken in _of_step(one, scene):
            key = broken.cause, broken.meaning, broken.open
            found[key] = _joined(found[key], broken) if key in found else broken
    order = list(Confidence)
    return tuple(sorted(map(_without_own, found.values()), key=lambda broken: order.index(broken.confidence)))


def unfinished(probed: Mapping[str, ProbeFacts]) -> tuple[Unfinished, ...]:
    """Return the nodes whose part cannot be judged for want of time, or of an answer."""
    doubts: dict[str, list[str]] = {}
    for one in _ran(probed):
        for node, why in _short_of_time(one):
            doubts.setdefault(why, []).append(node)
    for node, facts in probed.items():
        through = {turn.step.stage for turn in facts.turns}
        for step in facts.skipped:
            if step.step.stage not in through and step.step.means not in ELSEWHERE:
                doubts.setdefault(f"{_place(step.step)} was not tried: {step.why}", []).append(node)
    return tuple(Unfinished(tuple(dict.fromkeys(nodes)), why) for why, nodes in doubts.items())


def _ran(probed: Mapping[str, ProbeFacts]) -> tuple[Collective, ...]:
    return tuple(one for one in collectives(probed) if one.step.means not in ELSEWHERE)


def _sound(ran: Sequence[Collective]) -> frozenset[str]:
    """Return the nodes that came to the end of a step with others: they are not why another step stood still."""
    return frozenset(node for one in ran if one.whole and len(one.step.group) > 1 for node in one.step.group)


def _scene(ran: Sequence[Collective], known: Holders) -> _Scene:
    sound = _sound(ran)
    told = (dial for one in ran for part in _accounts(one) for dial in dials(one.step, part, known))
    return _Scene(sound, known, likeliest(told, sound))


def _accounts(one: Collective) -> list[Account]:
    return [account(node, one.turns[node], failure) for node, failure in one.failures.items()]


def _of_step(one: Collective, scene: _Scene) -> Iterator[Breakdown]:
    accounts = _accounts(one)
    telling = [part for part in accounts if part.telling]
    if one.silent and accounts and not any(_sureness(part) == _SURE for part in telling):
        yield _breakdown(one, one.silent, _GONE, accounts)  # who is left sees refusals and silence, whatever happened
    elif telling:
        yield from _told(one, accounts, telling, scene)
    elif accounts and (differing := _between(accounts)):
        yield _breakdown(one, one.step.group, differing, accounts)
    elif any(part.stood_still for part in accounts):
        yield _hung(one, [part for part in accounts if part.failure.late], scene.sound)
    elif any(not part.failure.late for part in accounts):
        yield _lost(one, accounts, scene.sound)


def _told(one: Collective, accounts: list[Account], telling: list[Account], scene: _Scene) -> Iterator[Breakdown]:
    """Yield the causes that nodes name: every sure one, else the surest."""
    sure = min((_sureness(part) for part in telling), default=0)
    groups: dict[tuple[str, str], list[Account]] = {}
    for part in telling:
        if part.said and _sureness(part) == sure:
            groups.setdefault((part.said.cause, part.said.meaning), []).append(part)
    for members in groups.values():
        dialled = {part.node for part in members if dials(one.step, part, scene.known)}
        yield from _by_end(one, accounts, [part for part in members if part.node in dialled], scene)
        if own := [part for part in members if part.node not in dialled]:
            yield _breakdown(one, [part.node for part in own], _said(own), accounts)


def _by_end(one: Collective, accounts: list[Account], callers: list[Account], scene: _Scene) -> Iterator[Breakdown]:
    """Yield what those say who could not connect: about whom it is likely to be the fault of, and about who may be."""
    told = {part.node: dials(one.step, part, scene.known) for part in callers}
    blamed = {node for dialled in told.values() for dial in dialled for node in dial.blamed(scene.culprits)}
    if blamed:
        about = [part for part in callers if any(dial.blamed(scene.culprits) for dial in told[part.node])]
        nodes = tuple(node for node in one.step.group if node in blamed)
        others = tuple(part.node for part in about if part.node not in blamed)
        yield replace(_breakdown(one, nodes, _said(about, named=True), accounts), callers=others)
    rest = [part for part in callers if not all(dial.blamed(scene.culprits) for dial in told[part.node])]
    if rest:
        ends = {n for part in rest for dial in told[part.node] if not dial.blamed(scene.culprits) for n in dial.ends}
        nodes = tuple(node for node in one.step.group if node in ends)
        said = replace(_said(rest, named=True), fix=_EVERY_WAY)
        at = next((part.failure.step for part in rest if part.failure.step), "")
        yield replace(_breakdown(one, nodes, said, accounts), at=at, open=True)


def _said(members: Sequence[Account], *, named: bool = False) -> Diagnosis:
    """Return the diagnosis that these share, with the words of each; `named` puts who says them before."""
    words = [(part.node, line) for part in members for line in (part.said.evidence if part.said else ())]
    lines = (f"{node}: {line}" if named and not line.startswith(node) else line for node, line in words)
    first = next(part.said for part in members if part.said)
    return replace(first, evidence=tuple(dict.fromkeys(lines)))


def _sureness(part: Account) -> int:
    return list(Confidence).index(part.said.confidence) if part.said else len(Confidence)


def _between(accounts: list[Account]) -> Diagnosis | None:
    """Return what the logs say side by side and none says alone: ranks that differ."""
    alone = {part.said.cause for part in accounts if part.said}
    lines = [line for part in accounts for line in (part.failure.words, *part.turn.log)]
    best = next(iter(diagnose(lines)), None)
    return best if best and not best.echo and best.cause not in alone else None


_GONE = Diagnosis(
    "rank_crashed", "nothing more was heard of it in the middle: the node or the way to it went down", (),
    Confidence.LOW, "ncheck nodes.txt --probe none",
)  # fmt: skip


def _hung(one: Collective, late: list[Account], sound: frozenset[str]) -> Breakdown:
    """Return a step that stood still until its time was over, without a word of why."""
    least = min(part.course for part in late)
    behind = [part for part in late if part.course == least]
    if len(behind) == len(late) == len(one.step.group):
        nodes = _blamed(one, sound)
        meaning = "it stood still until its time was over, and no rank says why"
    else:
        nodes = tuple(part.node for part in behind)
        meaning = "its ranks stood still until their time was over, and the others waited for them"
    return _breakdown(one, nodes, Diagnosis("", meaning, (), Confidence.LOW, _to_try(one.step)), late)


def _to_try(step: Step) -> str:
    """Return what tells more of a step that hangs without a word: GPU to GPU, or node to node."""
    if step.stage is Stage.INSIDE and step.means.by_nccl:
        return "export NCCL_P2P_DISABLE=1"
    return _EVERY_WAY


def _lost(one: Collective, accounts: list[Account], sound: frozenset[str]) -> Breakdown:
    """Return a step in which each says that it lost another, and no one why."""
    said = next((part.said for part in accounts if part.said), None)
    unsaid = Diagnosis("", "a rank ended, and none says why", (), Confidence.LOW, _to_try(one.step))
    return _breakdown(one, _blamed(one, sound), said or unsaid, accounts)


def _blamed(one: Collective, sound: frozenset[str]) -> tuple[str, ...]:
    """Return the nodes of a step that never came to the end of one with others; all, where all did."""
    return tuple(node for node in one.step.group if node not in sound) or one.step.group


def _breakdown(one: Collective, nodes: Sequence[str], said: Diagnosis, accounts: Sequence[Account]) -> Breakdown:
    cut_off = tuple(node for node in (*one.failures, *one.silent) if node not in nodes)
    steps = [part.failure.step for part in accounts if part.node in nodes and part.failure.step]
    words = tuple(f"{part.node}: {part.failure.words}" for part in accounts if part.failure.words)
    return Breakdown(
        tuple(nodes), cut_off, said.cause, said.meaning, said.confidence, said.evidence or words, said.fix, said.others,
        steps[0] if steps else "", (one.step,),
    )  # fmt: skip


def _joined(one: Breakdown, other: Breakdown) -> Breakdown:
    """Return two breakdowns of one cause as one."""
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
    """Yield the nodes of a step whose time was over while it went on, and those that were not heard of."""
    accounts = _accounts(one)
    if any(part.telling or part.stood_still or not part.failure.late for part in accounts):
        return
    if not accounts:
        yield from ((node, f"it told nothing of its part: {_place(one.step)}") for node in one.silent)
    for part in accounts:
        had = f"{part.turn.seconds:.0f} s were over" if part.turn.seconds is not None else "its time was over"
        at = f" in {part.failure.step}" if part.failure.step else ""
        yield part.node, f"{_place(one.step)}: {had}{at} before it could be told whether it works (--probe-time)"


def _place(step: Step) -> str:
    """Return what was run, and where."""
    where = {Stage.INSIDE: "inside the node", Stage.PAIR: "between two nodes", Stage.RAIL: "between two HCA ports"}
    act = "TCP transfer" if step.means is Means.TCP else step.means.act
    return f"the {act} {where.get(step.stage, f'on {len(step.group)} nodes')}"


def told(broken: Breakdown) -> str:
    """Return a breakdown in words: where, which nodes, why, and who was only cut off."""
    places = tuple(dict.fromkeys(_place(step) for step in broken.steps))
    times = f" and {len(places) - 1} more" if len(places) > 1 else ""
    at = f" in {broken.at}" if broken.at else ""
    maybe = f"; it may also be {_or(broken.others)}" if broken.confidence is Confidence.LOW and broken.others else ""
    lost = f"; {fold(broken.cut_off)} only lost it" if broken.cut_off else ""
    lost += "; nothing tells which end of the connection is to blame" if broken.open else ""
    if broken.callers:
        them = "it" if len(broken.nodes) == 1 else "them"
        return (
            f"{places[0]}{times} failed on {fold(broken.nodes)}: {fold(broken.callers)} cannot connect to {them}, and "
            f"can to others: {broken.meaning}{maybe}{lost}"
        )
    return f"{places[0]}{times} failed{at} on {fold(broken.nodes)}: {broken.meaning}{maybe}{lost}"


def _or(causes: Sequence[str]) -> str:
    names = [cause.replace("_", " ") for cause in causes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


# Address to node, of the addresses that one node alone has.
Holders = Mapping[str, str]


# What triage makes of a connection that did not come about. firewall is nothing else; the others are more than that.
_ALWAYS = "firewall"


_WITH_WORDS = frozenset({"rank_crashed", "rendezvous_misconfig", "routing"})


# NCCL WARN socketPollConnect: connect to 10.1.0.3<40113> returned Connection refused, exceeded error retry count (35)
_IN_VAIN = re.compile(r"No route to host|[Rr]efused|[Tt]imed out|no answer")


# filtered: 10.1.0.3 port 41234 from 10.1.0.1: timed out     connect to fd00::3<40113> returned No route to host
_ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,40})(?![\w.])")


_WORD = re.compile(r"[\w.-]+")


_PARTNERS = 2


_PAIR = 2


@dataclass(frozen=True)
class Dial:
    """`node` could not connect to one of `far`: to the one that its words name, else to any other of its step."""

    node: str
    far: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """Return its two ends; of a far one that is not known, nothing."""
        return (self.node, *self.far) if len(self.far) == 1 else (self.node,)

    def blamed(self, culprits: frozenset[str]) -> tuple[str, ...]:
        """Return which of the nodes that it may be the fault of are known for it."""
        return tuple(node for node in (self.node, *self.far) if node in culprits)


def holders(nics: Mapping[str, NicFacts]) -> Holders:
    """Return which node has an address: what several have, as that of docker0, tells of none."""
    held: dict[str, set[str]] = {}
    for node, facts in nics.items():
        for address in (one for nic in facts.interfaces for one in nic.addresses):
            held.setdefault(_plain(address.ip), set()).add(node)
    return {address: next(iter(nodes)) for address, nodes in held.items() if address and len(nodes) == 1}


def dials(step: Step, part: Account, known: Holders) -> tuple[Dial, ...]:
    """Return the connections that a node tells of as not come about; none where it tells of something else."""
    others = tuple(node for node in step.group if node != part.node)
    if part.said is None or not others:
        return ()
    lines = tuple(line for line in part.said.evidence if _IN_VAIN.search(line))
    perhaps = part.said.cause in _WITH_WORDS and part.said.confidence is not Confidence.HIGH and lines
    if part.said.cause != _ALWAYS and not perhaps:
        return ()
    lines = lines or part.said.evidence
    addressed = set(_named(lines, known))
    named = tuple(node for node in others if node in addressed) or _by_name(lines, others)
    if len(step.group) == _PAIR or not named:
        return (Dial(part.node, others),)
    return tuple(Dial(part.node, (node,)) for node in named)


def likeliest(told: Iterable[Dial], sound: frozenset[str]) -> frozenset[str]:
    """Return who came through with nobody, though two or more with whom it failed did with others."""
    partners: dict[str, set[str]] = {}
    for dial in told:
        if len(dial.far) == 1:
            partners.setdefault(dial.node, set()).update(dial.far)
            partners.setdefault(dial.far[0], set()).add(dial.node)
    return frozenset(
        node for node, others in partners.items() if node not in sound and len(others) >= _PARTNERS and others <= sound
    )


def _named(lines: Iterable[str], known: Holders) -> Iterator[str]:
    for line in lines:
        for found in _ADDRESS.findall(line):
            if (address := _plain(found)) in known:
                yield known[address]


def _by_name(lines: Iterable[str], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the nodes that words call by their names: "failed to connect to [node01]:29500"."""
    words = {word for line in lines for word in _WORD.findall(line)}
    return tuple(node for node in others if node in words)


def _plain(text: str) -> str:
    """Return an address as others write it too; "" where it is none."""
    try:
        address = ip_address(text.rstrip(":."))
    except ValueError:
        return ""
    return str(getattr(address, "ipv4_mapped", None) or address)
