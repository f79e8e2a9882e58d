"""NCCL's RAS: which processes no longer answer, and who has launched fewer collectives than the others wait for.

A status of OK proves nothing: RAS prints it during a time-out (NVIDIA/nccl#1730). Of ranks that differ, RAS lists the
few, which may be those that ran ahead (#1911): suspects are those with the lower counts, listed or not. Counts differ
by one while a job works, and communicators of other groups may idle; so only counts of one communicator are compared,
and only those of ranks that launched nothing between the two answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from ncheck.facts.login import LoginFacts
from ncheck.facts.ranks import ranks_text
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job, RankProcess
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.ras import RasFacts, RasNamesFacts
from ncheck.triage.parse.nccl_ras import ABORT, INIT, Communicator, MissingRank, RasProcess, RasRank, RasStatus

READS = (RasFacts, RasNamesFacts)
_MOST = 16  # clues of one kind


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what the answers say, if they are about this job: other jobs may share the port."""
    names = _RasNames(job, cluster)
    views = [view for view in _views(cluster) if names.knows(view)]
    if not views:
        return
    alive = {process for view in views for process in view.present}
    view = min(views, key=lambda one: (one.first is None, len(one.missing), not one.last.whole))
    yield from _parted(views, names)
    yield from _silent(views, names)
    found = [
        *_missing(view, alive, names),
        *_errors(view, names),
        *_states(view, names),
        *_diverged(view, names),
        *_behind(view, names),
    ]
    yield from found
    if not found:
        yield from _stuck(view)
    yield from _motions(view, names)


# What was answered


@dataclass(frozen=True)
class _NodeAnswers:
    """The answers on one node: the last that could be read, and the one before, if both could."""

    node: str
    first: RasStatus | None
    last: RasStatus
    silent: int
    apart: float

    @cached_property
    def present(self) -> frozenset[RasProcess]:
        return frozenset(one.process for each in self.last.communicators for one in each.ranks if one.process)

    @cached_property
    def missing(self) -> frozenset[RasProcess]:
        return frozenset((*self.last.silent, *self.last.dead))

    @property
    def whole(self) -> bool:
        """Whether two answers came, and nothing of them is missing: an answer in pieces is no sign of health."""
        return self.first is not None and self.first.whole and self.last.whole

    @cached_property
    def pairs(self) -> tuple[_CommunicatorPair, ...]:
        """The communicators of both answers; none where there is one answer only."""
        before = {one.key: one for one in self.first.communicators} if self.first else {}
        return tuple(_CommunicatorPair(before[one.key], one) for one in self.last.communicators if one.key in before)


def _views(cluster: Cluster) -> Iterator[_NodeAnswers]:
    for node, facts in cluster.facts(RasFacts).items():
        read = [one for one in facts.asked if isinstance(one.status, RasStatus)]
        first, last = read[0], read[-1]
        assert isinstance(first.status, RasStatus) and isinstance(last.status, RasStatus)  # noqa: S101, PT018
        silent = sum(one.silent for one in facts.asked)
        yield _NodeAnswers(
            node, first.status if first is not last else None, last.status, silent, last.seconds - first.seconds
        )


Counts = Mapping[str, int]


@dataclass(frozen=True)
class _CommunicatorPair:
    """One communicator in both answers."""

    first: Communicator
    last: Communicator

    @cached_property
    def frozen(self) -> dict[int, RasRank]:
        """The ranks that launched nothing in between, by number."""
        before = {one.rank: one for one in self.first.ranks}
        return {
            one.rank: one
            for one in self.last.ranks
            if one.counts and one.rank in before and before[one.rank].counts == one.counts
        }

    @cached_property
    def moves(self) -> bool:
        """Whether every rank launched more: then each was past the collective that it was in before."""
        before = {one.rank: one.counts for one in self.first.ranks}
        return 1 < len(self.last.ranks) == self.last.size and all(
            _below(before.get(one.rank, {}), one.counts) for one in self.last.ranks
        )

    @cached_property
    def suspects(self) -> tuple[RasRank, ...]:
        """The ranks with the lowest counts, that launched nothing while others were ahead of them both times."""
        before, after = _different(self.first), _different(self.last)
        if max(len(before), len(after)) > _MOST_DIFFERENT:
            return ()
        late = [
            counts
            for counts in after
            if _is_below_any(counts, after)
            and _is_below_any(counts, before)
            and not any(_below(other, counts) for other in after)
        ]
        return tuple(one for one in self.frozen.values() if one.counts in late)

    @cached_property
    def waiting(self) -> tuple[RasRank, ...]:
        """The ranks that are ahead of a suspect."""
        late = _counts_of(self.suspects)
        return tuple(one for one in self.last.ranks if any(_below(counts, one.counts) for counts in late))


_MOST_DIFFERENT = 64  # sets of counts in one communicator that stands still


def _below(less: Counts, more: Counts) -> bool:
    """Return whether a rank that launched `less` has yet to launch what made `more`, and nothing else."""
    return bool(less) and less.keys() == more.keys() and less != more and all(less[kind] <= more[kind] for kind in less)


def _is_below_any(counts: Counts, others: Iterable[Counts]) -> bool:
    return any(_below(counts, other) for other in others)


def _different(communicator: Communicator) -> list[Counts]:
    return _counts_of(communicator.ranks)


def _counts_of(ranks: Iterable[RasRank]) -> list[Counts]:
    """Return the counts of ranks, each different set once."""
    return list({tuple(sorted(one.counts.items())): one.counts for one in ranks if one.counts}.values())


# Who is meant


@dataclass(frozen=True)
class _Who:
    """A process or rank that RAS names. `found` is its process, if it runs; `node` is "" if no node has its address."""

    shown: str
    rank: int | None
    node: str
    found: RankProcess | None


@dataclass(frozen=True)
class _RasNames:
    """Which ranks of the job the addresses and numbers of RAS are."""

    job: Job
    cluster: Cluster
    same: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def _owners(self) -> dict[str, set[str]]:
        owners: dict[str, set[str]] = {}
        for node, facts in self.cluster.facts(RasNamesFacts).items():
            for address in facts.addresses:
                owners.setdefault(address, set()).add(node)
        for node, login in self.cluster.facts(LoginFacts).items():
            for address in filter(None, (login.login.address, node)):
                owners.setdefault(address, set()).add(node)
        return owners

    @cached_property
    def _processes(self) -> dict[tuple[str, int], RankProcess]:
        """The ranks by node and number of the process; of two numbers, that of its own namespace counts first."""
        found: dict[tuple[str, int], RankProcess] = {}
        for one in self.job.ranks:
            for process in (one.process, *one.children):
                found.setdefault((one.node, process.inner_pid or process.pid), one)
        for one in self.job.ranks:
            found.setdefault((one.node, one.pid), one)
        return found

    @cached_property
    def _by_number(self) -> dict[int, list[RankProcess]]:
        found: dict[int, list[RankProcess]] = {}
        for (_, pid), one in self._processes.items():
            found.setdefault(pid, []).append(one)
        return found

    @cached_property
    def _numbered(self) -> dict[int, RankProcess]:
        return {one.rank: one for one in self.job.ranks if one.rank is not None}

    def node(self, process: RasProcess) -> str:
        """Return the node that has this address; "" if none has, or several, as with that of docker0."""
        owners = self._owners.get(process.host, set())
        return next(iter(owners)) if len(owners) == 1 else ""

    def find(self, process: RasProcess | None) -> RankProcess | None:
        if process is None:
            return None
        if node := self.node(process):
            return self._processes.get((node, process.pid))
        found = self._by_number.get(process.pid, [])
        return found[0] if len(found) == 1 else None

    def knows(self, view: _NodeAnswers) -> bool:
        """Return whether an answer is about this job: it names processes of it, or none but those that are gone."""
        if any(self.find(one) for one in (*view.present, *view.missing)):
            return True
        return not view.present and view.last.processes == (self.job.size or len(self.job.ranks))

    def who(self, one: RasRank | MissingRank, communicator: Communicator) -> _Who:
        found = self.find(one.process)
        if found is None and self._has_same_numbers(communicator):
            found = self._numbered.get(one.rank) if one.process is None else None
            number: int | None = one.rank
        else:
            number = found.rank if found else None
        if found:
            return _Who(found.shown, found.rank, found.node, found)
        node = self.node(one.process) if one.process else ""
        of = "" if number is not None else f" of communicator {communicator.key}"
        place = f" (process {one.process.pid} on {node or one.process.host})" if one.process else ""
        return _Who(f"rank {one.rank}{of}{place}", number, node, None)

    def whose(self, process: RasProcess) -> _Who:
        found, node = self.find(process), self.node(process)
        if found:
            return _Who(found.shown, found.rank, found.node, found)
        return _Who(f"process {process.pid} on {node or process.host}", None, node, None)

    def _has_same_numbers(self, communicator: Communicator) -> bool:
        """Return whether a communicator has all ranks of the job, by their own numbers, as far as they are known."""
        if communicator.key not in self.same:
            pairs = [(one.rank, found.rank) for one in communicator.ranks if (found := self.find(one.process))]
            self.same[communicator.key] = communicator.size == self.job.size and all(a == b for a, b in pairs)
        return self.same[communicator.key]


def _clue(cause: str, grade: Grade, text: str, who: Iterable[_Who] = (), others: tuple[str, ...] = ()) -> Clue:
    """Return a clue. Each counts only where the job stands still: RAS keeps saying what a job has survived."""
    at_fault = list(who)
    ranks = tuple(sorted({one.rank for one in at_fault if one.rank is not None}))
    return Clue("ras", cause, grade, text, ranks, tuple(dict.fromkeys(one.node for one in at_fault if one.node)),
                others=others)  # fmt: skip


def _shown(who: Sequence[_Who]) -> str:
    """Return the names of several: of a few each, else their numbers."""
    numbers = [one.rank for one in who if one.rank is not None]
    more = len(who) - _FEW
    if more > 0 and len(numbers) == len(who):
        return ranks_text(numbers)
    return ", ".join(one.shown for one in who[:_FEW]) + (f" and {more} more" if more > 0 else "")


_FEW = 3


# Signs


def _parted(views: Sequence[_NodeAnswers], names: _RasNames) -> Iterator[Clue]:
    """Yield that a process does not answer RAS on one node, and does on another: their network is in parts."""
    for view in views:
        reached = {process: other for other in views for process in other.present if other is not view}
        lost = sorted((one for one in view.missing if one in reached), key=lambda one: (one.host, one.pid))
        if not lost:
            continue
        nodes = tuple(dict.fromkeys(names.node(one) or one.host for one in lost))
        known = tuple(node for node in nodes if node in names.cluster.names)
        text = (
            f"RAS on {view.node} gets no answer from {len(lost)} processes on {', '.join(nodes[:4])},"
            f" and RAS on {reached[lost[0]].node} does"
        )
        yield Clue("ras", "network_stalled", Grade.LIKELY, text, (), (view.node, *known),
                   others=("firewall", "routing"))  # fmt: skip
        return


def _silent(views: Iterable[_NodeAnswers], names: _RasNames) -> Iterator[Clue]:
    for view in views:
        if view.silent:
            stopped = [one for one in names.job.on(view.node) if one.process.state in {"T", "t"}]
            who = [_Who(one.shown, one.rank, one.node, one) for one in stopped]
            text = f"a process on {view.node} takes connections to its RAS and does not answer them"
            yield _clue("rank_stopped", Grade.POSSIBLE, text, who or [_Who("", None, view.node, None)], ("deadlock",))


def _missing(view: _NodeAnswers, alive: Collection[RasProcess], names: _RasNames) -> Iterator[Clue]:
    """Yield the processes that no RAS reaches, both times if it was asked twice."""
    before = _unreached(view.first, names) if view.first else None
    lasting = [
        (who, dead)
        for key, (process, who, dead) in _unreached(view.last, names).items()
        if process not in alive and (before is None or key in before)
    ]
    for who, dead in lasting[:_MOST]:
        yield _of_missing(who, dead, names)


def _unreached(status: RasStatus, names: _RasNames) -> dict[object, tuple[RasProcess | None, _Who, bool]]:
    """Return who gave no data, each once: (process, who that is, whether it has been silent for 60 s)."""
    found: dict[object, tuple[RasProcess | None, _Who, bool]] = {}
    for communicator in status.communicators:
        for one in communicator.missing:
            if not one.answers:
                key = one.process or (communicator.key, one.rank)
                found.setdefault(key, (one.process, names.who(one, communicator), one.dead))
    for process in (*status.silent, *status.dead):
        if process not in found:
            found[process] = (process, names.whose(process), process in status.dead)
    return found


def _of_missing(who: _Who, dead: bool, names: _RasNames) -> Clue:  # noqa: FBT001
    said = "has not answered RAS for 60 s or more" if dead else "does not answer RAS"
    if who.found and who.found.process.state in {"T", "t"}:
        return _clue("rank_stopped", Grade.LIKELY, f"{who.shown} is stopped, and {said}", [who])
    if who.found:
        text = f"{who.shown} runs, and {said}"
        return _clue("network_stalled", Grade.POSSIBLE, text, [who], ("rank_stopped", "firewall", "rank_crashed"))
    if not who.node:
        text = f"{who.shown} {said}, and no node of this list has its address"
        return _clue("rank_crashed", Grade.POSSIBLE, text, [who], ("node_failed",))
    if who.node not in names.cluster.facts(ProcessesFacts):
        return _clue("node_failed", Grade.LIKELY, f"{who.shown} {said}, and its node could not be looked at", [who])
    return _clue("rank_crashed", Grade.LIKELY, f"{who.shown} {said}, and no such process runs there", [who])


_OF_ERRORS: Mapping[str, tuple[str, Grade, tuple[str, ...]]] = {
    "Unhandled CUDA error": ("gpu_fault", Grade.LIKELY, ("gpu_oom", "software_bug")),
    "System error": ("network_stalled", Grade.POSSIBLE, ("ib_fabric", "rank_crashed", "firewall")),
    "Invalid argument": ("collective_mismatch", Grade.POSSIBLE, ("software_bug",)),
    "Invalid usage": ("collective_mismatch", Grade.POSSIBLE, ("software_bug",)),
    "Remote process error": ("rank_crashed", Grade.ECHO, ()),
}


def _errors(view: _NodeAnswers, names: _RasNames) -> Iterator[Clue]:
    """Yield the errors that NCCL reports of a communicator, once for each."""
    for communicator in view.last.communicators:
        by_error: dict[str, list[_Who]] = {}
        for one in communicator.ranks:
            if one.error:
                by_error.setdefault(one.error, []).append(names.who(one, communicator))
        for error, who in by_error.items():
            cause, grade, others = _OF_ERRORS.get(error, ("software_bug", Grade.POSSIBLE, ("gpu_fault",)))
            text = f'NCCL reports "{error}" on {_shown(who)}'
            yield _clue(cause, grade, text, () if grade is Grade.ECHO else who, others)


def _states(view: _NodeAnswers, names: _RasNames) -> Iterator[Clue]:
    """Yield ranks that were in another state of a communicator than the others, both times."""
    for pair in view.pairs:
        last, size = pair.last, pair.last.size or len(pair.last.ranks) + len(pair.last.missing)
        before = {one.rank: one.state for one in pair.first.ranks}
        still = [one for one in last.ranks if before.get(one.rank) == one.state]
        starting = [names.who(one, last) for one in still if one.state == INIT]
        aborted = [names.who(one, last) for one in still if one.state == ABORT]
        gone_before = {one.rank for one in pair.first.missing if one.answers}
        gone = [names.who(one, last) for one in last.missing if one.answers and one.rank in gone_before]
        if starting:
            late = gone or (starting if 2 * len(starting) < size else [])
            text = f"{len(starting)} of {size} ranks have been initializing a communicator for {view.apart:.0f} s" + (
                f"; {_shown(late)} has not joined it" if gone else f": {_shown(starting)}"
            )
            yield _clue("slow_rank_timeout" if gone else "network_stalled", Grade.POSSIBLE, text, late,
                        ("deadlock", "firewall", "wrong_nic", "gpu_fault"))  # fmt: skip
        elif gone and 2 * len(gone) < size:
            text = f"{_shown(gone)} left a communicator that {size - len(gone)} ranks still use"
            yield _clue("rank_crashed", Grade.POSSIBLE, text, gone, ("collective_mismatch",))
        if aborted and 2 * len(aborted) < size:
            text = f"{_shown(aborted)} aborted a communicator that the other ranks still use"
            yield _clue("rank_crashed", Grade.POSSIBLE, text, aborted, ("slow_rank_timeout",))


def _diverged(view: _NodeAnswers, names: _RasNames) -> Iterator[Clue]:
    """Yield ranks that launched other kinds of collectives: more of one kind than most ranks, and less of another."""
    for pair in view.pairs:
        groups: dict[tuple[tuple[str, int], ...], list[RasRank]] = {}
        for one in pair.frozen.values():
            groups.setdefault(tuple(sorted(one.counts.items())), []).append(one)
        ordered = sorted(groups.values(), key=len, reverse=True)
        if not ordered:
            continue
        usual = ordered[0]
        odd = [group for group in ordered[1:] if _differ_in_kind(group[0].counts, usual[0].counts)]
        if not odd:
            continue
        same_number = any(sum(group[0].counts.values()) == sum(usual[0].counts.values()) for group in odd)
        tie = len(odd[0]) == len(usual)
        who = [names.who(one, pair.last) for group in odd for one in group]
        other = [names.who(one, pair.last) for one in usual]
        text = (
            f"{_shown(who)} launched {_difference(odd[0][0].counts, usual[0].counts)}, and"
            f" {_shown(other)} {_difference(usual[0].counts, odd[0][0].counts)}"
        )
        grade = Grade.CERTAIN if same_number else Grade.LIKELY
        yield _clue("collective_mismatch", grade, text, () if tie else who)


def _differ_in_kind(one: Counts, other: Counts) -> bool:
    return one.keys() == other.keys() and not _below(one, other) and not _below(other, one) and one != other


def _difference(one: Counts, other: Counts) -> str:
    """Return the counts in which a rank differs from another: "AllReduce 640, AllGather 12"."""
    return ", ".join(f"{kind} {one[kind]}" for kind in sorted(one) if one[kind] != other.get(kind))


def _behind(view: _NodeAnswers, names: _RasNames) -> Iterator[Clue]:
    """Yield the ranks that the others wait for. One that itself waits in another communicator is not the first."""
    pairs = [pair for pair in view.pairs if pair.suspects]
    waiting = {names.who(one, pair.last).shown for pair in pairs for one in pair.waiting}
    suspects = [(pair, [names.who(one, pair.last) for one in pair.suspects]) for pair in pairs]
    roots = [(pair, [one for one in who if one.shown not in waiting]) for pair, who in suspects]
    if pairs and not any(who for _, who in roots):
        everyone = [one for _, one in sorted({one.shown: one for _, who in suspects for one in who}.items())]
        text = f"{_shown(everyone)} wait for each other in {len(pairs)} communicators: they use them in another order"
        yield _clue("collective_mismatch", Grade.LIKELY, text, (), ("deadlock",))
        return
    for pair, who in roots[:_MOST]:
        if not who:
            continue
        size = pair.last.size or len(pair.last.ranks)
        ahead = next(one.counts for one in pair.waiting if _below(pair.suspects[0].counts, one.counts))
        text = (
            f"{_shown(who)} launched {_difference(pair.suspects[0].counts, ahead)} and nothing more in"
            f" {view.apart:.0f} s; {_shown([names.who(one, pair.last) for one in pair.waiting])}"
            f" launched {_difference(ahead, pair.suspects[0].counts)}"
        )
        few = 2 * len(pair.suspects) <= size
        yield _clue("slow_rank_timeout", Grade.LIKELY if few else Grade.POSSIBLE, text, who,
                    ("deadlock", "data_loader", "checkpoint_write", "storage_hang"))  # fmt: skip


def _stuck(view: _NodeAnswers) -> Iterator[Clue]:
    """Yield that all ranks of each communicator in use are in the same collective, and it does not end."""
    used = [pair for pair in view.pairs if any(any(counts.values()) for counts in _different(pair.last))]
    if not used or not all(1 < len(pair.frozen) == pair.last.size and len(_different(pair.last)) == 1 for pair in used):
        return
    widest = max(used, key=lambda pair: len(pair.frozen))
    text = (
        f"all {len(widest.frozen)} ranks of a communicator launched the same collectives"
        f" ({_difference(widest.last.ranks[0].counts, {})}), and none in {view.apart:.0f} s"
    )
    yield _clue("network_stalled", Grade.POSSIBLE, text, (), ("gpu_fault", "ib_fabric", "data_loader"))


def _motions(view: _NodeAnswers, names: _RasNames) -> Iterator[Motion]:
    """Yield who finished collectives, and who is behind or waits for one that is."""
    said: set[tuple[str, int | None]] = set()
    for pair in view.pairs:
        if not (pair.moves and view.whole):
            continue
        found = [one for one in (names.find(each.process) for each in pair.last.ranks) if one]
        if 2 * len(found) >= len(names.job.ranks):
            text = f"all {len(found)} ranks of a communicator finished collectives in {view.apart:.0f} s"
            yield Motion("ras", None, view.node, moves=True, text=text)
            continue
        for one in found:
            if (one.node, one.rank) not in said:
                said.add((one.node, one.rank))
                text = f"{one.shown} finished collectives in {view.apart:.0f} s"
                yield Motion("ras", one.rank, one.node, moves=True, text=text)
    for pair in view.pairs:
        waiting = {one.rank for one in pair.waiting}
        for each in (*pair.suspects, *pair.waiting) if pair.suspects else ():
            who = names.who(each, pair.last).found
            if who and each.rank in pair.frozen and (who.node, who.rank) not in said:
                said.add((who.node, who.rank))
                text = f"{who.shown} launched no collective in {view.apart:.0f} s"
                yield Motion("ras", who.rank, who.node, moves=False, text=text, waits=each.rank in waiting)
