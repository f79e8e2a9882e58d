"""Dumps of a running job: each by its rank and node, and nothing follows from one that is not of this moment."""

from __future__ import annotations

from ncheck.model.cluster import Cluster
from ncheck.model.fact import Absent, Unread
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.facts.flight_recorder import DumpFile, FlightRecorderFacts
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.live import readers
from ncheck.triage.live.flight_recorder import signs
from ncheck.triage.parse.flight_recorder import Dump

from tests.ncheck.triage.dumps import dump, steps
from tests.ncheck.triage.live import jobs

SIZE = 4
WAITS, CAME_NOT = dump(steps(5, "started"), SIZE), dump(steps(4), SIZE)
Found = DumpFile | Unread | Absent
NODES = ("node0", "node0", "node1", "node1")


def at(time: float, made: Dump) -> DumpFile:
    return DumpFile("/tmp/nccl_trace_rank_0", time, made)  # noqa: S108


def cluster(dumps: dict[int, Found], *, hidden: bool = False) -> Cluster:
    """Return the cluster whose ranks have these dumps; `hidden`: the processes of a third node are not known."""
    known: dict[str, dict[type, object]] = {}
    for rank, node in enumerate(NODES):
        facts = known.setdefault(node, {ProcessesFacts: ProcessesFacts((), {})})
        held = facts.setdefault(FlightRecorderFacts, FlightRecorderFacts({}))
        assert isinstance(held, FlightRecorderFacts)
        if rank in dumps:
            facts[FlightRecorderFacts] = FlightRecorderFacts({**held.dumps, jobs.FIRST_PID + rank: dumps[rank]})
    if hidden:
        known["node2"] = {ProcessesFacts: Unread("not reached")}
    return jobs.cluster(known)


def clues(dumps: dict[int, Found]) -> list[tuple[str, Grade, tuple[int, ...], tuple[str, ...]]]:
    made = list(signs(jobs.spread(SIZE), cluster(dumps)))
    assert all(isinstance(one, Clue) for one in made)
    return [(one.cause, one.grade, one.ranks, one.nodes) for one in made if isinstance(one, Clue)]


def test_the_reader_is_found() -> None:
    assert "flight_recorder" in [one.name for one in readers()]


def test_the_rank_that_did_not_come_is_named_with_its_node() -> None:
    dumps: dict[int, Found] = {rank: at(100, WAITS) for rank in range(SIZE)}
    assert clues({**dumps, 2: at(100, CAME_NOT)}) == [("slow_rank_timeout", Grade.LIKELY, (2,), ("node1",))]


def test_one_that_wrote_none_although_its_process_runs_is_evidence() -> None:
    dumps: dict[int, Found] = {rank: at(100, WAITS) for rank in range(SIZE)}
    assert clues({**dumps, 0: Absent("no dump")}) == [("slow_rank_timeout", Grade.LIKELY, (0,), ("node0",))]


def test_one_that_could_not_be_read_accuses_nobody() -> None:
    dumps: dict[int, Found] = {rank: at(100, WAITS) for rank in range(SIZE)}
    assert clues({**dumps, 0: Unread("permission denied")}) == [("slow_rank_timeout", Grade.ECHO, (), ())]


def test_a_job_without_dumps_says_nothing() -> None:
    assert clues({}) == []
    assert clues({rank: Absent("no dump") for rank in range(SIZE)}) == []


def test_a_dump_of_an_earlier_moment_is_not_compared() -> None:
    dumps: dict[int, Found] = {rank: at(10_000, WAITS) for rank in range(SIZE)}
    assert clues({**dumps, 2: at(9_000, CAME_NOT)}) == [("slow_rank_timeout", Grade.ECHO, (), ())]


def test_a_rank_without_a_process_is_missing_unless_a_node_was_not_looked_at() -> None:
    dumps: dict[int, Found] = {rank: at(100, WAITS) for rank in range(SIZE - 1)}
    three = jobs.job(*jobs.spread(SIZE).ranks[:-1], size=SIZE)
    (clue,) = signs(three, cluster(dumps))
    assert isinstance(clue, Clue)
    assert (clue.cause, clue.grade, clue.ranks, clue.others) == (
        "rank_missing", Grade.LIKELY, (3,), ("rank_crashed", "slow_rank_timeout"),
    )  # fmt: skip
    (clue,) = signs(three, cluster(dumps, hidden=True))
    assert isinstance(clue, Clue)
    assert (clue.grade, clue.ranks) == (Grade.ECHO, ())
