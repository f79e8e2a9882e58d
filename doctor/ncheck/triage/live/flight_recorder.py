"""Flight recorder dumps of a running job: where its ranks part, and which of them has written none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ncheck.model.cluster import Cluster
from ncheck.model.fact import Absent
from ncheck.model.job import Job
from ncheck.triage.clue import Sign
from ncheck.triage.facts.flight_recorder import DumpFile, FlightRecorderFacts
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.flight_recorder import analyse
from ncheck.triage.parse.flight_recorder import Dump

READS = (FlightRecorderFacts,)

_TOGETHER = 600.0  # seconds: the dumps of one hang are written within minutes; an older one shows an earlier moment


def signs(job: Job, cluster: Cluster) -> Iterator[Sign]:
    """Yield what the dumps say, if there are any."""
    facts = cluster.facts(FlightRecorderFacts)
    dumps: dict[int, DumpFile] = {}
    unread: set[int] = set()
    if len(cluster.facts(ProcessesFacts)) < len(cluster.names):
        unread.update(job.missing)  # they may be on a node that could not be looked at
    for one in job.ranks:
        if one.rank is None:
            continue
        read = facts[one.node].of(one.pid) if one.node in facts else None
        if isinstance(read, DumpFile):
            dumps[one.rank] = read
        elif not isinstance(read, Absent):
            unread.add(one.rank)
    newest = max((file.time for file in dumps.values()), default=0.0)
    chosen: dict[int, Dump] = {}
    for rank, file in dumps.items():
        if newest - file.time > _TOGETHER:
            unread.add(rank)
        else:
            chosen[rank] = file.dump
    if not chosen:
        return
    alive = {one.rank for one in job.ranks if one.rank is not None}
    places = {one.rank: one.node for one in job.ranks}
    for clue in analyse(chosen, job.size, unread, alive):
        nodes: dict[str, None] = dict.fromkeys(places[rank] for rank in clue.ranks if rank in places)
        cause = "rank_missing" if clue.cause == "rank_crashed" and not alive & set(clue.ranks) else clue.cause
        others = tuple(other for other in (clue.cause, *clue.others) if other != cause)
        yield replace(clue, cause=cause, others=others, nodes=tuple(nodes))
