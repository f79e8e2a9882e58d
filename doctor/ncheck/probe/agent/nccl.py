"""This node's ranks of one NCCL collective: started, read until they end, and what they leave behind removed."""

import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.nccl_job import child_environment, job_nccl
from ncheck.agent.traffic import READS as COUNTERS
from ncheck.agent.traffic import carried, counters
from ncheck.probe.agent import segments
from ncheck.probe.agent.nccl_log import Log
from ncheck.probe.agent.ranks import Rank, first_cause, follow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

    from ncheck.agent.sources import Arguments, Sources

READS = (
    "one process per GPU, of the job's python3, run with -B -S -c: libcuda.so.1 and the libnccl that the job loads",
    "its shared memory: NCCL's segments that the ranks were seen to have, and leave, are removed",
    *COUNTERS,
)

# NCCL's log goes to the ranks' output, and to no file, even if a configuration file names one.
_LOGGED = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,NET,ENV", "NCCL_DEBUG_FILE": ""}
_NO_RENDEZVOUS = {"NCCL_COMM_ID": None}  # the ranks meet by their own identifier
RESERVE, PART = 6.0, 0.25  # seconds to end ranks that hang: so many, or this part of a short step


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return the result of this node: see step.py."""
    began = time.monotonic()
    ends = began + min(timeout, arguments.get("timeout") or timeout)
    before, moved = segments.here(), counters()
    log = Log()
    ranks: "List[Rank]" = []
    loaded: "Dict[str, Any]" = {"version": "", "library": "", "failure": None}

    def cleared() -> "List[str]":
        for rank in ranks:
            rank.close()
        ours = {path: inode for rank in ranks for path, inode in rank.segments.items()}
        died = any(rank.died() for rank in ranks)
        return segments.removed(before, ours) + (segments.doubtful(before) if died else [])

    sources.endings.append(cleared)
    try:
        loaded["library"], loaded["version"] = job_nccl(sources, ends)
        left = ends - time.monotonic()
        reserve = min(RESERVE, PART * left)
        _start(ranks, sources, dict(arguments, library=loaded["library"]), max(1.0, left - reserve))
        follow(ranks, log, ends, reserve)
    except (MissingError, OSError) as error:
        loaded["failure"] = {"step": "start", "words": str(error), "rank": None, "code": None, "late": False}
    finally:
        sources.endings.remove(cleared)
        removed = cleared()
    more = {"carried": carried(moved, counters(), arguments.get("planned") or ()), "left": _not_ended(ranks) + removed}
    return _result(ranks, log, loaded, began, more)


def _start(ranks: "List[Rank]", sources: "Sources", arguments: "Arguments", seconds: float) -> None:
    if not sources.job.path:
        raise MissingError("no python3 in the job's environment to run the ranks")
    if "rank-program" not in sources.kept:
        sources.kept["rank-program"] = sources.fetch("rank-program")
    program = sources.kept["rank-program"]
    if not program:
        raise MissingError("the rank program did not come from the head")
    argv = [sources.job.path, "-B", "-S", "-c", program]
    variables = dict(arguments.get("variables") or {}, **_NO_RENDEZVOUS)
    environment = child_environment(sources.job.environment, variables, _LOGGED)
    spec = {
        "id": arguments["id"], "world": sum(arguments["ranks"]), "op": arguments["op"], "sizes": arguments["sizes"],
        "repeats": arguments["repeats"], "in_place": arguments.get("in_place", True), "library": arguments["library"],
        "seconds": seconds,
    }  # fmt: skip
    for local, gpu in enumerate(arguments["gpus"]):
        own = dict(spec, rank=arguments["first"] + local, local=local, gpus=[gpu] * (local + 1))
        ranks.append(Rank(own["rank"], argv, environment, own))


def _result(
    ranks: "Sequence[Rank]", log: "Log", loaded: "Dict[str, Any]", began: float, more: "Mapping[str, object]"
) -> "Dict[str, Any]":
    failure = loaded["failure"] or first_cause(rank.failure for rank in ranks)
    libraries = [line for rank in ranks for line in rank.messages_of("library")]
    firsts = [line["at"] - began for rank in ranks for line in rank.messages_of("first")]
    notes = [line["words"] for rank in ranks[:1] for line in rank.messages_of("note")]
    return dict(
        more,
        rows=_rows(ranks),
        version=libraries[0]["version"] if libraries else loaded["version"],
        library=libraries[0]["path"] if libraries else loaded["library"],
        used=log.used,
        log=log.lines(failure) + notes,
        failure=failure,
        start=round(max(firsts), 4) if ranks and len(firsts) == len(ranks) else None,
    )


def _rows(ranks: "Sequence[Rank]") -> "List[Dict[str, Any]]":
    """Return the mean over this node's ranks, of the rows that all of them have."""
    by_size: "Dict[Tuple[int, bool], Dict[int, Dict[str, Any]]]" = {}
    for rank in ranks:
        for row in rank.messages_of("row"):
            by_size.setdefault((row["size"], row["in_place"]), {})[rank.number] = row
    whole = {key: list(rows.values()) for key, rows in by_size.items() if len(rows) == len(ranks)}
    return [dict(_mean(rows), size=size, in_place=in_place) for (size, in_place), rows in sorted(whole.items())]


def _mean(rows: "Sequence[Dict[str, Any]]") -> "Dict[str, Any]":
    row = {name: sum(row[name] for row in rows) / len(rows) for name in ("seconds", "fastest", "slowest")}
    verified = [row["wrong"] for row in rows if row["wrong"] is not None]
    wrong = sum(verified) if len(verified) == len(rows) else None
    return dict(row, wrong=wrong, timing=rows[0].get("timing"))


def _not_ended(ranks: "Iterable[Rank]") -> "List[str]":
    return [
        "rank {} (process {}) did not end and was ended".format(rank.number, rank.pid) for rank in ranks if rank.killed
    ]
