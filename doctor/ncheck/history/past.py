"""What the history says of each node: how often it failed and for what, what was replaced, moved or rebooted, and
what grew.

A fault that lasts for a hundred runs is one incident: it begins with the first run that finds it, and ends with the
first that examines the node by the same check and does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TypeVar

from ncheck.history.entry import EXAMINED, JOB, PART, STATES, TRIAGE, Entry, Kept, Seen
from ncheck.history.jobs import suspects_in
from ncheck.history.lemons import Suspect, lemons
from ncheck.history.slower import NotCompared, Slower, slower
from ncheck.history.store import Span
from ncheck.lazy_dataclass import dataclass

_MOST_DIGITS = 20  # of a counter with 64 bits
OF_PART = {"gpu": ("NC5", "NC7"), "hca": ("NC4",)}  # whose faults are those of the part before, once it is replaced


@dataclass(frozen=True)
class Incident:
    """One fault of a node. `began`: seconds since 1970; `ended`: the same, None if the last run still found it. What
    triage said of a job begins and ends at one time.
    """

    seen: Seen
    began: float
    ended: float | None = None


@dataclass(frozen=True)
class Replaced:
    """A part that another one took the place of. `kind`: "gpu" or "hca"; `time`: the first run that saw the new one, in
    seconds since 1970. `came_from`: the node where the new one was before, "" if it is new in this history.
    """

    node: str
    kind: str
    place: str
    old: str
    new: str
    time: float
    came_from: str = ""


@dataclass(frozen=True)
class Grown:
    """A counter that grew. `before` and `after`: its last two values; `seconds` between the runs that saw them."""

    node: str
    name: str
    before: int
    after: int
    seconds: float


_Of = TypeVar("_Of", Replaced, Grown, Kept)


@dataclass(frozen=True)
class NodePast:
    """One node. `runs`: how many examined it or tried to; `bad`, `unreached`: in how many it was that. `reboots`: how
    many were seen. `state`: that of the last run, "" where only triage named the node; `tried`: when that was, 0 then,
    `examined`: when a run last reached the node, None if none did, both in seconds since 1970. `stands_out`: it fails
    more often than the fleet. `flaps`: how often it was bad again after it had been good.
    """

    node: str
    runs: int
    bad: int
    unreached: int
    state: str
    tried: float
    examined: float | None
    incidents: tuple[Incident, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    grown: tuple[Grown, ...] = ()
    reboots: int = 0
    flaps: int = 0
    stands_out: bool = False


@dataclass(frozen=True)
class Past:
    """All nodes: those that stand out first, then by how often they were bad. `slower`: what fell, by the newest run;
    `not_compared`: what it measured too seldom before. `suspects`: links that counted errors in jobs that failed.
    `jobs`: the notes of jobs that ended, the oldest first.
    """

    runs: tuple[Entry, ...]
    nodes: tuple[NodePast, ...]
    slower: tuple[Slower, ...] = ()
    not_compared: NotCompared | None = None
    suspects: tuple[Suspect, ...] = ()
    jobs: tuple[Entry, ...] = ()

    def of(self, node: str) -> NodePast | None:
        """Return the past of one node."""
        return next((one for one in self.nodes if one.node == node), None)

    def only(self, names: set[str]) -> Past:
        """Return what is about these nodes, without the name of any other."""
        others = {node for run in self.runs for nodes in run.nodes.values() for node in nodes}
        others = (others | {one.node for one in self.nodes}) - names
        return Past(
            tuple(_cut(run, names) for run in self.runs if any(map(names.intersection, run.nodes.values()))),
            tuple(_alone(one, names, others) for one in self.nodes if one.node in names),
            tuple(
                replace(one, changed=() if others else one.changed)
                for one in self.slower
                if names.issuperset(one.figure.nodes)
            ),
            suspects=tuple(one for one in self.suspects if one.link[0] in names),
        )


def _cut(run: Entry, names: set[str]) -> Entry:
    nodes = {state: tuple(filter(names.__contains__, of)) for state, of in run.nodes.items()}
    figures = tuple(one for one in run.figures if names.issuperset(one.nodes))
    return replace(run, nodes=nodes, findings=(), kept=(), figures=figures)


def _alone(node: NodePast, names: set[str], others: set[str]) -> NodePast:
    def cut(seen: Seen) -> Seen:
        named = "[" in seen.summary or any(other in seen.summary for other in others)  # gpu[03,07]
        summary = seen.check if named and others else seen.summary
        return replace(seen, nodes=tuple(filter(names.__contains__, seen.nodes)), summary=summary)

    incidents = tuple(replace(one, seen=cut(one.seen)) for one in node.incidents)
    parts = tuple(one if one.came_from in names else replace(one, came_from="") for one in node.replaced)
    return replace(node, incidents=incidents, replaced=parts)


def past_of(runs: Sequence[Entry], spans: Sequence[Span]) -> Past:
    """Return what these runs, the oldest first, say of every node."""
    jobs = tuple(run for run in runs if run.kind == JOB)
    runs = [run for run in runs if run.kind != JOB]
    incidents, trials = _incidents(runs)
    replaced, grown = _by_node(_replaced(spans)), _by_node(_grown(spans))
    boots = Counter(span.kept.node for span in spans if span.kept.kind == "boot")
    failures = {node: _own_faults(incidents.get(node, ()), replaced.get(node, ())) for node in trials}
    worst = lemons({node: (trials[node], failures[node]) for node in trials})
    counts = {state: Counter(chain.from_iterable(run.of(state) for run in runs)) for state in STATES}
    last, examined, flaps = _last(runs, STATES), _last(runs, EXAMINED), _flaps(runs)
    nodes = [
        NodePast(
            node,
            sum(counts[state][node] for state in STATES),
            counts["bad"][node],
            counts["unreached"][node],
            state,
            tried,
            examined.get(node, (None, ""))[0],
            tuple(incidents.get(node, ())),
            tuple(replaced.get(node, ())),
            tuple(grown.get(node, ())),
            reboots=max(boots[node] - 1, 0),
            flaps=flaps[node],
            stands_out=node in worst,
        )
        for node, (tried, state) in {**dict.fromkeys(incidents, (0.0, "")), **last}.items()
    ]
    nodes.sort(key=lambda one: (not one.stands_out, -one.bad, -one.unreached))
    return Past(tuple(runs), tuple(nodes), *slower(runs, spans), suspects_in(jobs), jobs)


def _last(runs: Sequence[Entry], states: Sequence[str]) -> dict[str, tuple[float, str]]:
    """Return the last run that saw each node in one of these states: its time, and the state.

    A node that was bad is not good by a run of some checks.
    """
    last: dict[str, tuple[float, str]] = {}
    for run in runs:
        for state in states:
            partly = state == "good" and run.kind == PART
            for node in run.of(state):
                bad = partly and last.get(node, (0.0, ""))[1] == "bad"
                last[node] = (run.time, "bad" if bad else state)
    return last


def _flaps(runs: Sequence[Entry]) -> Counter[str]:
    """Count how often each node was bad again after it had been good."""
    flaps: Counter[str] = Counter()
    bad: set[str] = set()
    ever: set[str] = set()
    for run in runs:
        if bad and run.kind != PART:
            bad -= set(run.of("good"))
        begun = set(run.of("bad")) - bad
        flaps.update(begun & ever)
        bad |= begun
        ever |= begun
    return flaps


def _incidents(runs: Sequence[Entry]) -> tuple[dict[str, list[Incident]], Counter[str]]:
    """Return the incidents of each node, and in how many runs a new hardware fault could have begun on it."""
    found: dict[str, list[Incident]] = {}
    trials: Counter[str] = Counter()
    lasting: dict[str, dict[str, int]] = {}  # by node and code: the place in its list of what still lasts
    for run in runs:
        if run.kind == TRIAGE:  # a moment of a job: nothing says later that it is over
            for node, one in _named(run):
                found.setdefault(node, []).append(Incident(one, run.time, ended=run.time))
            continue
        now: dict[str, dict[str, Seen]] = {}
        for node, one in _named(run):
            now.setdefault(node, {})[one.code] = one
        for node, code in _over(run, lasting, now):
            at = lasting[node].pop(code)
            found[node][at] = replace(found[node][at], ended=run.time)
        broken = {node for node, own in lasting.items() if any(found[node][at].seen.hardware for at in own.values())}
        for state in EXAMINED:
            trials.update(run.of(state))
            trials.subtract(broken.intersection(run.of(state)))
        for node, own in now.items():
            for code in own.keys() - lasting.setdefault(node, {}).keys():
                lasting[node][code] = len(found.setdefault(node, []))
                found[node].append(Incident(own[code], run.time))
    return found, trials


def _named(run: Entry) -> Iterator[tuple[str, Seen]]:
    """Yield each finding of a run for each node that it names."""
    return ((node, one) for one in run.findings for node in one.nodes)


def _over(
    run: Entry, lasting: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, Seen]]
) -> list[tuple[str, str]]:
    """Return what ended: the run was sure of the node, the check ran, and did not find it."""
    checks, sure = set(run.checks), {*run.of("good"), *run.of("bad")}
    return [
        (node, code)
        for node, own in lasting.items()
        for code in own
        if node in sure and code in checks and code not in now.get(node, {})
    ]


def _own_faults(incidents: Iterable[Incident], replaced: Iterable[Replaced]) -> int:
    """Return in how many runs a hardware fault began, without those of parts that were replaced since."""
    since = {prefix: one.time for one in replaced for prefix in OF_PART[one.kind]}
    return len({
        one.began
        for one in incidents
        if one.seen.hardware and one.began >= since.get(one.seen.code[:3], 0.0)
    })  # fmt: skip


def _replaced(spans: Sequence[Span]) -> Iterator[Replaced]:
    """Yield each part that was seen in a place after another one was there for the last time."""
    places: dict[tuple[str, str, str], list[Span]] = {}
    homes: dict[str, list[Span]] = {}
    for span in spans:
        if span.kept.kind in OF_PART:
            places.setdefault((span.kept.node, span.kept.kind, span.kept.place), []).append(span)
            homes.setdefault(span.kept.value, []).append(span)
    for (node, kind, place), there in places.items():
        for old, new in pairwise(sorted(there, key=lambda span: span.first)):
            if old.last < new.first:
                before = [one.kept.node for one in homes[new.kept.value] if one.last < new.first]
                came_from = before[-1] if before else ""
                yield Replaced(node, kind, place, old.kept.value, new.kept.value, new.first, came_from)


def _grown(spans: Sequence[Span]) -> Iterator[Grown]:
    """Yield the counters whose last value is above the one before; a counter that was reset begins anew."""
    values: dict[tuple[str, str], list[Span]] = {}
    for span in spans:
        if span.kept.kind == "counter" and span.kept.value.isdecimal() and len(span.kept.value) <= _MOST_DIGITS:
            values.setdefault((span.kept.node, span.kept.place), []).append(span)
    for (node, name), seen in values.items():
        for before, after in pairwise(sorted(seen, key=lambda span: span.last)[-2:]):
            if int(after.kept.value) > int(before.kept.value):
                yield Grown(node, name, int(before.kept.value), int(after.kept.value), after.last - before.last)


def _by_node(found: Iterable[_Of]) -> dict[str, list[_Of]]:
    nodes: dict[str, list[_Of]] = {}
    for one in found:
        nodes.setdefault(one.node, []).append(one)
    return nodes
