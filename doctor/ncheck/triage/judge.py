"""The one judge of triage: clues of any source to diagnoses, which cause explains which, and how sure each is.

The clues are those of logs, of a running job, or of both. What the lines of one scan of logs explain of each other, by
their words and times, log_clues.py has decided; everything else is decided here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from ncheck.lazy_dataclass import dataclass
from ncheck.model.job import Job
from ncheck.redact import redact
from ncheck.text import printable
from ncheck.triage.causes import CAUSES, SYMPTOM, UNKNOWN, filled, look_of
from ncheck.triage.certainty import SURE, Grade
from ncheck.triage.clue import Clue
from ncheck.triage.diagnosis import MOST_DIAGNOSES, MOST_LOOKS, Diagnosis, EvidenceLine
from ncheck.triage.next_step import step_after

MOST_EVIDENCE = 8

_MOST_SURE = 0.97
_RIVALS = 0.75  # two causes are equally clear, for different ranks
_CANDIDATE = 0.6  # of the confidence of a cause that looks the same
_AT_WORK = 0.4  # the others wait for a rank that works

# What the others see of a rank in trouble: it follows from whatever else is wrong with that rank.
_CONSEQUENCES = ("network_stalled", "slow_rank_timeout", "slow_rank", "gpu_idle", "firewall", "rank_missing")
# What a rank was seen to do: it follows from another cause that is as clear, and says why it does that.
_PLACES = ("deadlock", "data_loader", "checkpoint_write")


def _distance(cause: str) -> int:
    """Return how far a cause is from the reason: 0 is the reason itself."""
    return 2 if cause in _CONSEQUENCES else 1 if cause in _PLACES else 0


@dataclass(frozen=True)
class _Theory:
    """One cause, with the clues that name it and those that it explains."""

    cause: str
    clues: tuple[Clue, ...]
    explained: tuple[Clue, ...] = ()

    @property
    def grade(self) -> Grade:
        return max(clue.grade for clue in self.clues)

    @property
    def of_logs(self) -> bool:
        """Whether only lines of logs show it: between two of these, log_clues.py has judged."""
        return all(clue.source == "logs" and clue.lines for clue in self.clues)

    @property
    def works(self) -> bool:
        """Whether the ranks that it names were seen to work: that is what the others wait for, and no fault."""
        return any(clue.works for clue in self.clues) and self.grade <= Grade.POSSIBLE

    @property
    def best(self) -> Clue:
        # Of clues that are as sure, the stacks say best what a rank does.
        return max(self.clues, key=lambda clue: (clue.grade, clue.works, clue.source == "stacks"))

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(rank for clue in self._named for rank in clue.ranks))

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node for clue in self._named for node in clue.nodes))

    @property
    def _named(self) -> Iterable[Clue]:
        """The clues that say who is at fault: the best ones."""
        return [clue for clue in self.clues if clue.grade is self.grade] or self.clues

    @property
    def score(self) -> float:
        """Return how sure it is: each source counts once, and what the cause explains counts half."""
        by_source: dict[str, float] = {}
        for clues, share in ((self.explained, 0.5), (self.clues, 1.0)):
            for clue in clues:
                weight = clue.grade.confidence * share
                by_source[clue.source] = max(weight, by_source.get(clue.source, 0.0))
        doubt = 1.0
        for weight in by_source.values():
            doubt *= 1 - weight
        return round(min(1 - doubt, _AT_WORK if self.works else _MOST_SURE), 2)

    def explains(self, other: _Theory) -> bool:
        """Return whether another theory is a consequence of this one."""
        if other.grade is Grade.ECHO and self.grade is not Grade.ECHO:
            return True
        if self.of_logs and other.of_logs:
            return False
        shared = bool(set(self.ranks) & set(other.ranks))
        nearer = _distance(self.cause) < _distance(other.cause) and not other._is_what(self)
        nearer = nearer or self._is_what(other)
        if shared:
            enough = Grade.POSSIBLE if other.cause in _CONSEQUENCES else other.grade
            return self.grade > other.grade or (nearer and self.grade >= enough)
        return nearer and not other.ranks and self.grade >= other.grade

    def _is_what(self, other: _Theory) -> bool:
        """Return whether another source names this cause where the other's says that both look the same."""
        alike = self.cause in other.best.others and other.cause not in self.best.others
        return alike and other.best.source not in {clue.source for clue in self.clues}


def diagnoses_of(clues: Iterable[Clue], job: Job | None = None, *, one_node: bool = False) -> tuple[Diagnosis, ...]:
    """Return what clues point to, best first, and after one that is not sure what looks the same.

    `job` says where its ranks run, `one_node` that all of them run on one. Of equally clear causes that which was seen
    first comes first.
    """
    by_cause: dict[str, list[Clue]] = {}
    for clue in clues:
        by_cause.setdefault(clue.cause, []).append(clue)
    theories = [_Theory(cause, tuple(found)) for cause, found in by_cause.items()]
    roots = [one for one in theories if not any(_takes(other, one) for other in theories if other is not one)]
    roots = [_with_explained(one, theories, roots) for one in roots]
    roots.sort(key=lambda one: (one.works, -one.grade, -one.score))
    scores = [one.score for one in roots]
    if len(roots) > 1 and _are_rivals(*roots[:2]):
        scores = [min(score, _RIVALS) for score in scores]
    scores = [min(score, max(scores[: at + 1])) for at, score in enumerate(scores)]
    found = [_diagnosis(one, score, job) for one, score in zip(roots, scores, strict=True)]
    if found and found[0].confidence < SURE and not roots[0].works:
        named = {one.cause for one in found}
        found += [_candidate(found[0], name, job) for name in dict.fromkeys(roots[0].best.others) if name not in named]
    found.sort(key=lambda one: -one.confidence)
    one_node = one_node or (job is not None and len(job.nodes) == 1)
    return tuple(replace(one, next=step_after(one, one_node=one_node)) for one in found[:MOST_DIAGNOSES])


def headline(diagnoses: Sequence[Diagnosis]) -> str:
    """Return the answer in one sentence."""
    best = diagnoses[0]
    return best.meaning if best.confidence >= SURE else f"not certain: {best.meaning}"


def _are_rivals(one: _Theory, other: _Theory) -> bool:
    """Return whether two causes are equally clear: of different ranks, or of lines without an order."""
    if one.grade is not other.grade:
        return False
    if not (one.of_logs and other.of_logs):
        open_ = (one.of_logs or other.of_logs) and not (one.ranks and other.ranks)  # a line need not name its rank
        return not open_ and not set(one.ranks) & set(other.ranks)
    if other.cause in one.best.others or one.cause in other.best.others:
        return False
    first, second = one.best.lines[0], other.best.lines[0]
    return first.file != second.file and not (first.moment and second.moment)


def _candidate(best: Diagnosis, cause: str, job: Job | None) -> Diagnosis:
    """Return a cause that looks the same as an unsure one. A line of a log alone names ranks for its own cause only."""
    fix, look = (_filled(command, best.ranks, job) for command in (CAUSES[cause].fix, CAUSES[cause].look))
    ranks, nodes = (best.ranks, best.nodes) if job else ((), ())
    confidence = round(best.confidence * _CANDIDATE, 2)
    return Diagnosis(
        cause, confidence, CAUSES[cause].meaning, "", best.evidence, ranks, nodes, fix, tuple(filter(None, (look,)))
    )


def _takes(one: _Theory, other: _Theory) -> bool:
    """Return whether one theory takes another with it. Of two that explain each other, the nearer one to the reason."""
    if not one.explains(other):
        return False
    return not other.explains(one) or (_distance(one.cause), one.cause) < (_distance(other.cause), other.cause)


def _with_explained(theory: _Theory, theories: Iterable[_Theory], roots: Collection[_Theory]) -> _Theory:
    explained = (one for one in theories if one not in roots and theory.explains(one))
    return replace(theory, explained=tuple(clue for one in explained for clue in one.clues))


def _diagnosis(theory: _Theory, score: float, job: Job | None) -> Diagnosis:
    cause, best = CAUSES.get(theory.cause, SYMPTOM), theory.best
    ordered = sorted(theory.clues, key=lambda clue: -clue.grade) + list(theory.explained)
    evidence = dict.fromkeys(line for clue in ordered for line in _evidence(clue))
    looks = dict.fromkeys([word for clue in ordered for word in clue.looks] or [look_of(theory.cause, best.kind)])
    looks = dict.fromkeys(filter(None, (_filled(look, theory.ranks, job) for look in looks)))
    return Diagnosis(
        theory.cause or UNKNOWN,
        score,
        redact(best.meaning or cause.meaning),
        best.kind,
        tuple(evidence)[:MOST_EVIDENCE],
        theory.ranks,
        theory.nodes or _nodes_of(theory.ranks, job),
        redact(_filled("" if best.fix is None else best.fix or cause.fix, theory.ranks, job)),
        tuple(map(redact, looks))[:MOST_LOOKS],
        theory.works,
        do=best.do,
    )


def _evidence(clue: Clue) -> Iterator[EvidenceLine]:
    if clue.text:
        yield EvidenceLine(place(clue.source, *clue.nodes[:1]), 0, redact(printable(clue.text, 400)))
    else:
        yield from (EvidenceLine(printable(line.file), line.number, redact(line.text)) for line in clue.lines)


def place(source: str, *nodes: str) -> str:
    """Return where evidence of a running job was seen: "node02:stacks"."""
    return ":".join((*filter(None, nodes), source))


def _nodes_of(ranks: Iterable[int], job: Job | None) -> tuple[str, ...]:
    found = (job.numbered(rank) for rank in ranks) if job else ()
    return tuple(dict.fromkeys(one.node for one in found if one))


def _filled(command: str, ranks: Iterable[int], job: Job | None) -> str:
    """Return a command with the process of the first rank at fault in the place of PID; "" where that is not known."""
    one = next((found for rank in ranks if (found := job.numbered(rank))), None) if job else None
    return filled(command, one.pid if one else None)
