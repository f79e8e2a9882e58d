"""The tables of coverage as a Markdown document, and as JSON."""

from __future__ import annotations

import json

from ncheck.coverage import TABLES, Cause, Level, Table

SCHEMA = "ncheck.coverage/1"

_LEVELS = {
    Level.BEFORE: "checked before the job",
    Level.LIVE: "named by triage of a job that hangs",
    Level.LOGS: "named by triage of the logs",
    Level.EFFECT: "only its effect is named: a node that is gone, a rank that is slow",
    Level.NOT_SEEN: "not seen",
}

_INTRODUCTION = """# Coverage

What interrupts jobs, as three papers counted it, and which of these causes ncheck sees. The numbers are theirs. Which
check or cause of triage sees what is our own judgement, not a measurement. A cause counts as seen if ncheck sees it at
least in part; the last column says what is missed. "Before the job" means that a check finds the fault if it is there
when the job starts, or starts again on the same nodes: most hardware breaks later, and no check sees it coming. Codes
are explained in [checks.md](checks.md), causes in [causes.md](causes.md).
"""


def as_markdown() -> str:
    """Return the document: docs/coverage.md."""
    return "\n".join([_INTRODUCTION, *map(_section, TABLES)])


def _section(table: Table) -> str:
    parts = [f"## {table.title}\n", f"Source: {table.source}.\n"]
    if table.total is not None:
        parts.append(f"{_headline(table)}\n\n| seen | {table.what} | share |\n|---|---:|---:|")
        parts += [
            f"| {words} | {table.count_of(level):,} | {_share(table.count_of(level), table.total)} |"
            for level, words in _LEVELS.items()
        ]
        parts.append("")
    parts.append(f"| cause | {table.what} | before the job | job hangs | logs | missed |\n|---|---:|---|---|---|---|")
    return "\n".join([*parts, *map(_row, table.causes), ""])


def _headline(table: Table) -> str:
    total, before = table.total or 0, table.count_of(Level.BEFORE)
    return (
        f"Of {total:,} {table.what}, {_share(before, total)} have a cause that ncheck looks for before the job,\n"
        f"and {_share(table.named, total)} one that it looks for or that triage names, each at least in part."
    )


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}"


def _row(cause: Cause) -> str:
    count = "" if cause.count is None else f"{cause.count:,}"
    checks, effect = " ".join(cause.checks), " (its effect)" if cause.effect else ""
    named = (f"{', '.join(names)}{effect}" if names else "no" for names in (cause.live, cause.logs))
    return f"| {cause.name} | {count} | {checks or 'no'} | {' | '.join(named)} | {cause.missed} |"


def as_json() -> str:
    """Return {"schema", "tables": [TABLE]}, with the numbers by level."""
    tables = [
        {
            "name": table.name,
            "title": table.title,
            "what": table.what,
            "source": table.source,
            "total": table.total,
            "seen": {level.value: table.count_of(level) for level in Level} if table.total is not None else None,
            "causes": [
                {
                    "name": cause.name,
                    "count": cause.count,
                    "levels": [level.value for level in cause.levels],
                    "checks": list(cause.checks),
                    "live": list(cause.live),
                    "logs": list(cause.logs),
                    "missed": cause.missed,
                }
                for cause in table.causes
            ],
        }
        for table in TABLES
    ]
    return json.dumps({"schema": SCHEMA, "tables": tables}, indent=2) + "\n"
