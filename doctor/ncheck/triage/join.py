"""From what all sources say of a running job to one answer: which rank, on which node, why, and how sure that is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from ncheck.facts.login import LoginFacts
from ncheck.facts.ranks import ranks_text
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster
from ncheck.model.fact import Unread
from ncheck.model.job import Job, Target
from ncheck.redact import redact
from ncheck.text import printable
from ncheck.triage.across_lines.variables import names_note
from ncheck.triage.causes import SYMPTOM, UNKNOWN
from ncheck.triage.certainty import NAMED, Grade
from ncheck.triage.clue import Clue, Motion
from ncheck.triage.diagnosis import Diagnosis, EvidenceLine
from ncheck.triage.facts.jobs import job_of
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.judge import MOST_EVIDENCE, diagnoses_of, headline, place
from ncheck.triage.live import SourceReader, readers
from ncheck.triage.sources import Unreadable
from ncheck.triage.wait_limits import limited, settings_of, shown_of


class Work(str, Enum):
    """What the job does, by all that was seen of its ranks."""

    MOVES = "makes progress"
    STILL = "stands still"
    UNKNOWN = "could not be watched"


@dataclass(frozen=True)
class SeenRank:
    """One rank of the job, as it was found."""

    rank: int | None  # its number, None if its environment does not say it
    node: str
    pid: int


@dataclass(frozen=True)
class LiveReport:
    """The answer on a running job. `healthy` needs a sign of progress, and a look at every node.

    `job`: what its ranks have in common; `size`: the world size that most ranks name, None if none does. `ranks`:
    those that were found; `missing`: numbers that no process has. `work`: what the job does, by all that was seen.
    `unread`: what could not be looked at, with the reason; `notes`: sources of evidence that this user or these nodes
    do not have.
    """

    diagnoses: tuple[Diagnosis, ...]
    healthy: bool
    summary: str
    job: str
    size: int | None
    ranks: tuple[SeenRank, ...]
    missing: tuple[int, ...]
    unread: tuple[Unreadable, ...]
    notes: tuple[str, ...] = ()
    work: Work = Work.UNKNOWN

    @property
    def wrong(self) -> bool:
        """Whether something is named with a confidence of 0.5 or more, or the job stands still for an unknown reason.

        What could not be looked at counts as well. A job that gets on, or waits for a rank that works, is well.
        """
        if self.unread or any(one.confidence >= NAMED and not one.works for one in self.diagnoses):
            return True
        waits_for_work = bool(self.diagnoses) and self.diagnoses[0].works
        return bool(self.ranks) and self.work is not Work.MOVES and not waits_for_work


def examine_job(cluster: Cluster, target: Target, sources: Collection[str] | None = None) -> LiveReport:
    """Return what the facts of a cluster say of its job; of some sources alone if they are named.

    Raises SeveralJobsError where more than one job fits the target.
    """
    job = job_of(cluster, target)
    unread = tuple(_unread(cluster))
    if job is None:
        return _no_job(target, cluster, unread)
    unread += tuple(_late(cluster, job))
    signs, broken = _signs(job, cluster, sources)
    seen = [sign for sign in signs if isinstance(sign, Motion)]
    motions = [one for one in seen if not one.aside]
    work = _work(motions, job)
    waited_for = any(one.waits for one in motions) or (work is Work.STILL and len(job.ranks) > 1)
    counted = [one for one in signs if isinstance(one, Clue) and _counts(one, work, motions, waited_for=waited_for)]
    at_work = [one for one in counted if one.works]
    clues = [it for one in counted for it in _of_work(one, seen, at_work)]
    if all(clue.echo for clue in clues):  # that others wait, or lost a rank, names no culprit
        diagnoses = tuple(_unexplained(job, seen)) if work is Work.STILL else ()
    else:
        diagnoses = diagnoses_of(clues, job)
    settings = settings_of(job, cluster)
    wait = shown_of(job, cluster, settings)
    diagnoses = limited(diagnoses, wait)
    unread += broken
    if not diagnoses:  # a rank that is gone is no accusation, as jobs end rank by rank, and no health either
        gaps = (one for one in signs if isinstance(one, Clue) and one.cause == "rank_missing")
        unread += tuple(Unreadable("job", one.text) for one in gaps if one.grade is Grade.CERTAIN)
    if work is Work.UNKNOWN and not diagnoses:
        unread += (Unreadable("job", "nothing that could be read shows whether it makes progress"),)
    healthy = work is Work.MOVES and not diagnoses and not unread
    ranks = tuple(SeenRank(one.rank, one.node, one.pid) for one in job.ranks)
    return LiveReport(
        diagnoses, healthy, _summary(diagnoses, work, unread), job.key, job.size, ranks, job.missing, unread,
        (*_notes(cluster, job), *filter(None, (wait.note if wait and diagnoses else "", names_note(settings)))), work,
    )  # fmt: skip


def _unread(cluster: Cluster) -> Iterator[Unreadable]:
    """Yield the nodes whose processes could not be listed."""
    logins = cluster.facts(LoginFacts)
    for name in cluster.names:
        facts = cluster.known.get(name, {}).get(ProcessesFacts)
        if not isinstance(facts, ProcessesFacts):
            login = logins[name].login if name in logins else None
            why = login.detail if login and login.detail else getattr(facts, "reason", "it was not asked")
            yield Unreadable(name, why)
        elif facts.left_out:
            yield Unreadable(name, f"{facts.left_out} processes are too many for one answer, and were left out")


def _late(cluster: Cluster, job: Job) -> Iterator[Unreadable]:
    """Yield what nodes with ranks did not answer in time. Without it nobody knows that the job gets on."""
    for node in job.nodes:
        known, login = cluster.known.get(node, {}), cluster.facts(LoginFacts).get(node)
        cut = login is not None and login.login.cause is not None
        for fact in dict.fromkeys(fact for reader in readers() for fact in reader.reads):
            why = known.get(fact)
            if isinstance(why, Unread) and (why.hung or (cut and why.unanswered)):
                yield Unreadable(node, why.reason)


def _no_job(target: Target, cluster: Cluster, unread: tuple[Unreadable, ...]) -> LiveReport:
    process = target.pid and ":".join(filter(None, (target.node, str(target.pid))))
    named = [("--job", process), ("--match", target.match), ("--slurm", target.slurm)]
    wanted = next((f"{option} {value}" for option, value in named if value is not None), "")
    summary = (
        f"no job was found: no process of these nodes fits {wanted}" if wanted
        else "no job was found: no process has a launcher's variables, and none holds a GPU"
    )  # fmt: skip
    missing = (Unreadable("job", summary),) if wanted else ()
    unread += tuple(_of_others(cluster))
    hidden = {name: facts.hidden for name, facts in cluster.facts(ProcessesFacts).items() if facts.hidden}
    why = f"{sum(hidden.values())} processes of other users could not be looked into on {', '.join(hidden)}: a job of"
    notes = (f"{why} another user shows only to root (-l root)",) if hidden else ()
    return LiveReport(
        (), healthy=False, summary=summary, job="", size=None, ranks=(), missing=(), unread=unread + missing,
        notes=notes,
    )  # fmt: skip


def _of_others(cluster: Cluster) -> Iterator[Unreadable]:
    """Yield what may be the job, and this user may not look at."""
    for name, facts in cluster.facts(ProcessesFacts).items():
        for one in facts.others:
            shown = f"pid {one.pid} of user {one.user} ({printable(redact(one.command), 100)})"
            yield Unreadable(name, f"{shown} may be of a job, and only that user and root may look into it (-l root)")
        if facts.own_only:
            why = (
                "/proc shows this user its own processes only (hidepid): a job of another user shows to root (-l root)"
            )
            yield Unreadable(name, why)


def _signs(
    job: Job, cluster: Cluster, sources: Collection[str] | None
) -> tuple[list[Clue | Motion], tuple[Unreadable, ...]]:
    signs: list[Clue | Motion] = []
    broken = []
    for reader in readers():
        found = _read(reader, job, cluster)
        if isinstance(found, Unreadable):
            broken.append(found)
        else:
            signs += [one for one in found if sources is None or one.source in sources]
    return signs, tuple(broken)


def _read(reader: SourceReader, job: Job, cluster: Cluster) -> list[Clue | Motion] | Unreadable:
    """Return what one reader says. One that breaks must not cost the others: our fault, and the report says so."""
    try:
        return list(reader.signs(job, cluster))
    except Exception as error:  # noqa: BLE001  as above
        return Unreadable(reader.name, f"a bug in ncheck: {type(error).__name__}: {error}")


def _work(motions: Sequence[Motion], job: Job) -> Work:
    """Return whether the job gets on with its work.

    What is known of the whole job counts first: collectives that were completed, data that flows. Else it moves where
    more than half of its processes do; those that could not be watched do not speak for it. One that computes while all
    others wait is what they wait for.
    """
    if any(one.moves for one in motions if one.who is None):
        return Work.MOVES
    seen = {one.who for one in motions if one.who}
    moving = {one.who for one in motions if one.who and one.moves and not one.waits}
    if 2 * len(moving) > len(job.ranks):
        return Work.MOVES
    return Work.STILL if len(seen) > len(moving) or (motions and not seen) else Work.UNKNOWN


def _counts(clue: Clue, work: Work, motions: Iterable[Motion], *, waited_for: bool) -> bool:
    """Return whether a clue means anything for a job that works, or that stands still.

    A rank that is gone is a fault only where somebody waits for it: jobs end rank by rank. One is slow only where
    another was seen to get on: else the others may wait for work that it does once, such as an evaluation.
    """
    if clue.cause == "rank_missing" and not waited_for:
        return False
    if clue.cause == "slow_rank" and clue.slow:
        others = (one for one in motions if one.moves and one.rank is not None and one.rank not in clue.ranks)
        return work is Work.MOVES and any(others)
    if work is Work.MOVES:
        return not clue.still and clue.grade is not Grade.ECHO
    return not clue.slow


# What a rank may be blamed for that others wait for, and what it does all the same if it works.
_WAITED_FOR = {
    **dict.fromkeys(("deadlock", "slow_rank_timeout"), "slow_rank"),
    **{cause: cause for cause in ("slow_rank", "data_loader", "checkpoint_write")},
}


def _of_work(clue: Clue, motions: Iterable[Motion], at_work: Iterable[Clue]) -> Iterator[Clue]:
    """Yield a clue as it is, or where all that it blames were seen to work: what they do, which accuses nobody.

    `at_work` are clues of ranks that work. Of code that comes to no end the stacks know more than the others.
    """
    blamed = {(node, rank) for node in clue.nodes for rank in clue.ranks}
    work = {
        (one.node, one.rank): one for one in motions if one.moves and not one.waits and (one.node, one.rank) in blamed
    }
    known = (one for one in at_work if one.source == "stacks" or clue.source != "stacks")
    working = {rank for _, rank in work} | {rank for one in known for rank in one.ranks}
    open_to_doubt = clue.still and Grade.ECHO < clue.grade < Grade.CERTAIN and clue.cause in _WAITED_FOR
    if clue.works or not open_to_doubt or not clue.ranks or set(clue.ranks) - working:
        yield clue
        return
    who = f"rank {clue.ranks[0]}, which works" if len(set(clue.ranks)) == 1 else "ranks that work"
    own = replace(clue, cause=_WAITED_FOR[clue.cause], grade=Grade.POSSIBLE, works=True, fix="",
                  meaning=f"the others wait for {who}")  # fmt: skip
    yield own
    yield from (replace(own, source=one.source, text=one.text, nodes=(one.node,)) for one in work.values())


def _unexplained(job: Job, motions: Sequence[Motion]) -> Iterator[Diagnosis]:
    """Yield that the job stands still and nothing of what was seen says why, where all ranks were seen to wait."""
    # A rank that exchanges no data may compute, and so may one of which nothing is known.
    waiting = [one for one in motions if one.who and not one.moves and one.source != "sockets"]
    moving = any(one.moves and (one.aside or not one.waits) for one in motions)
    if len({one.who for one in waiting}) < len(job.ranks) or moving:
        return
    evidence = tuple(EvidenceLine(place(one.source, one.node), 0, redact(one.text)) for one in waiting[:MOST_EVIDENCE])
    meaning = f"the job makes no progress, and nothing seen in {len(job.ranks)} processes shows why"
    yield Diagnosis(UNKNOWN, Grade.ECHO.confidence, meaning, "", evidence, (), (), SYMPTOM.fix, (SYMPTOM.look,))


def _summary(diagnoses: Sequence[Diagnosis], work: Work, unread: Sequence[Unreadable]) -> str:
    if diagnoses:
        return headline(diagnoses)
    return {
        Work.MOVES: "nothing wrong was seen: something moved, and not all of the job could be looked at"
        if unread
        else "nothing wrong: the job makes progress",
        Work.STILL: "nothing wrong was seen, and no progress either: look again in a minute",
        Work.UNKNOWN: "nothing wrong was seen; whether the job makes progress could not be watched",
    }[work]


_MOST_NOTES = 6


def _notes(cluster: Cluster, job: Job) -> Iterator[str]:
    """Yield which evidence could not be read, once for all nodes with the same reason."""
    if job.missing:
        yield f"{ranks_text(job.missing)} of {job.size} not found on the nodes that were looked at"
    late = {(one.name, one.reason) for one in _late(cluster, job)}
    reasons: dict[str, list[str]] = {}
    for reader in readers():
        for fact in reader.reads:
            for node in job.nodes:
                held = cluster.known.get(node, {}).get(fact)
                for why in (held,) if isinstance(held, Unread) else getattr(held, "unread", ()):
                    reason = f"{reader.name}: {why.reason}" + (f" ({why.fix})" if why.fix else "")
                    if (node, why.reason) not in late:
                        reasons.setdefault(reason, []).append(node)
    for reason, nodes in list(reasons.items())[:_MOST_NOTES]:
        yield f"{', '.join(dict.fromkeys(nodes))}: {reason}"
