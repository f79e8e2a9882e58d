"""What ranks told that a launcher started, put together by node: one stream of all their lines and others'."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ncheck.agent.turns.nccl_log import Log

if TYPE_CHECKING:
    from ncheck.facts.probe import Step
    from ncheck.model.evidence import JsonValue
    from ncheck.probe.methods.children import Ended


_OURS = "ncheck:"


_LONGEST, _MOST_LINES = 4096, 2_000_000


_WORDS, _FIRST = 400, 3


_KINDS = ("step", "library", "first", "row", "note", "carried", "held", "removed", "failure", "done")


_TIMES = ("seconds", "fastest", "slowest")


_FOREVER = 1e9  # seconds: no such time can be, and no larger number comes to be added up


# "---------------------------------": what Open MPI draws above and below its words
_RULE = re.compile(r"[-=*\s]*$")


Line = Mapping[str, "JsonValue"]


Lines = Mapping[int, Mapping[str, list[Line]]]


def told_by_ranks(step: Step, ended: Ended) -> dict[str, dict[str, JsonValue]]:
    """Return each node's part in the shape of a turn's value."""
    lines, others = _parted(ended.stdout, step.world)
    log = Log()
    for line in (*others, *ended.stderr.splitlines()):
        log.take(line)
    mine = {}
    first = 0
    for node, ranks in zip(step.group, step.ranks, strict=True):
        mine[node] = _part({rank: lines.get(rank, {}) for rank in range(first, first + ranks)}, log, ended)
        first += ranks
    return mine


def first_words(ended: Ended) -> str:
    """Return the first words of a launcher that failed: its cause stands above its explanations."""
    said = (line.strip() for text in (ended.stderr, ended.stdout) for line in text.splitlines())
    words = [line for line in said if line and not _RULE.match(line) and not line.startswith(_OURS)]
    how = "its time was over" if ended.late else f"it ended with exit status {ended.exit_status}"
    return "; ".join([*dict.fromkeys(words)][:_FIRST])[:_WORDS] or how


def _parted(text: str, world: int) -> tuple[Lines, list[str]]:
    """Return the ranks' lines by rank and kind, and everybody else's. What is none of ours is passed over."""
    found: dict[int, dict[str, list[Line]]] = {}
    others: list[str] = []
    for line in text.splitlines()[:_MOST_LINES]:
        ours, _, rest = line.partition(_OURS)
        said = _json(rest) if not ours and len(line) <= _LONGEST else None
        if said is None:
            others.append(line)
            continue
        rank, kind = said.get("rank"), said.get("is")
        if isinstance(rank, int) and 0 <= rank < world and isinstance(kind, str) and kind in _KINDS:
            found.setdefault(rank, {}).setdefault(kind, []).append(said)
    return found, others


def _json(text: str) -> Line | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _part(ranks: Lines, log: Log, ended: Ended) -> dict[str, JsonValue]:
    failure = _failure(ranks, ended)
    left: list[JsonValue] = [text for lines in ranks.values() for text in _texts(lines, "removed", "words")]
    library = next((line for lines in ranks.values() for line in lines.get("library", [])), {})
    firsts = [line.get("seconds") for lines in ranks.values() for line in lines.get("first", [])[:1]]
    starts = [second for second in firsts if isinstance(second, (int, float)) and not isinstance(second, bool)]
    lines: list[JsonValue] = [*log.told(failure is not None)]
    used: list[JsonValue] = [*log.used]
    return {
        "rows": [*_rows(ranks)] if failure is None else [], "carried": _carried(ranks),
        "version": library.get("version", ""), "library": library.get("path", ""), "used": used, "log": lines,
        "failure": failure, "start": max(starts) if starts and len(starts) == len(ranks) else None, "left": left,
        "held": _held(ranks),
    }  # fmt: skip


def _held(ranks: Lines) -> dict[str, JsonValue]:
    """Return {path: inode} of what ranks had in shared memory, but for what one of them told to be gone."""
    gone = {path for lines in ranks.values() for path in _texts(lines, "removed", "gone")}
    said = (line.get("segments") for lines in ranks.values() for line in lines.get("held", []))
    had = {path: inode for many in said if isinstance(many, dict) for path, inode in many.items()}
    return {path: inode for path, inode in sorted(had.items()) if path not in gone and type(inode) is int}


def _texts(lines: Mapping[str, list[Line]], kind: str, name: str) -> Iterable[str]:
    said = (line.get(name) for line in lines.get(kind, []))
    return [text for many in said if isinstance(many, (list, dict)) for text in many if isinstance(text, str)]


def _failure(ranks: Lines, ended: Ended) -> JsonValue:
    """Return the first failure that a rank told, or why one told no end; None where all were through."""
    for rank, lines in ranks.items():
        for line in lines.get("failure", [])[:1]:
            return {**{name: line.get(name) for name in ("step", "words", "code", "late")}, "rank": rank}
    silent = [rank for rank, lines in ranks.items() if not lines.get("done")]
    if not silent:
        return None
    steps = ranks[silent[0]].get("step", [])
    step = steps[-1].get("step") if steps else "mpirun"
    return {
        "step": step, "words": first_words(ended), "rank": silent[0] if steps else None,
        "code": ended.exit_status, "late": ended.late,
    }  # fmt: skip


def _rows(ranks: Lines) -> Iterable[JsonValue]:
    """Yield the mean over a node's ranks, of the rows that all of them told."""
    told: dict[tuple[int, bool], dict[int, Line]] = {}
    for rank, lines in ranks.items():
        for line in lines.get("row", []):
            size, in_place = line.get("size"), line.get("in_place")
            if isinstance(size, int) and isinstance(in_place, bool) and _is_row(line):
                told.setdefault((size, in_place), {})[rank] = line
    for (size, in_place), rows in sorted(told.items()):
        if len(rows) == len(ranks):
            yield {"size": size, "in_place": in_place, **_mean([*rows.values()])}


def _is_row(line: Line) -> bool:
    return all(
        isinstance(value := line.get(name), (int, float)) and not isinstance(value, bool) and 0 <= value < _FOREVER
        for name in _TIMES
    )


def _mean(rows: list[Line]) -> dict[str, JsonValue]:
    means: dict[str, JsonValue] = {}
    for name in _TIMES:
        told = [float(value) for row in rows if isinstance(value := row[name], (int, float))]
        means[name] = sum(told) / len(told)
    counted = [wrong for row in rows if isinstance(wrong := row.get("wrong"), int)]
    return {**means, "wrong": sum(counted) if len(counted) == len(rows) else None}


def _carried(ranks: Lines) -> dict[str, JsonValue]:
    moved = (line.get("moved") for lines in ranks.values() for line in lines.get("carried", []))
    return {name: counts for one in moved if isinstance(one, dict) for name, counts in one.items()}
