"""The checks that ncheck.toml has itself, made of their tables: the command is the fact, and its answer the verdict.

A command to type is only what ncheck.toml says: what a node prints is a message, and evidence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from ncheck.decode import OPTIONAL, MisfitError, decoded
from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import HERE, Check, Inconclusive, NotApplicable, Problem, Said
from ncheck.model.cluster import NodeView
from ncheck.model.evidence import Command, Evidence, Status
from ncheck.model.fact import Read
from ncheck.model.finding import Severity
from ncheck.settings.own_checks import OwnCheck
from ncheck.text import LONGEST_MESSAGE

Word = Literal["passed", "warning", "failed", "unknown", "skipped"]
_BY_EXIT: tuple[Word, ...] = ("passed", "warning", "failed", "unknown")  # the Monitoring Plugins' guidelines
_GRAVEST: tuple[Word, ...] = ("failed", "unknown", "warning", "skipped", "passed")
_PAGE = """{title}

## What it finds

A check of this site, from [[check]] of its ncheck.toml. It runs on each node:

    {run}

Exit status 0 is passed, 1 a warning, 2 failed, and 3 unknown.
"""
_MOST_LINES = 50  # of evidence


@dataclass(frozen=True)
class OwnAnswer:
    """What one such command said. `status`: None is that of its exit status."""

    DEFINITION: ClassVar[Fact[object] | None] = None
    message: Annotated[str, OPTIONAL] = ""
    status: Annotated[Word | None, OPTIONAL] = None
    evidence: Annotated[tuple[str, ...], OPTIONAL] = ()


def made(own: Iterable[OwnCheck]) -> tuple[Check, ...]:
    """Return a check for each table."""
    return tuple(map(_check, own))


def _check(own: OwnCheck) -> Check:
    source = Command(("sh", "-c", own.run, own.code), timeout=own.timeout)  # its code is its name in what sh says
    # A fact of its own: each is read, and shared by the nodes that say the same, by itself.
    answer: type[OwnAnswer] = type(f"AnswerOf{own.code}", (OwnAnswer,), {})

    def parse(evidence: Evidence) -> Read[OwnAnswer]:
        return _answer(answer, source, evidence)

    answer.DEFINITION = Fact(answer, (source,), parse, unrecorded=f"the recording was made without {own.code}")

    fix, where = own.fix or own.run, ""
    if "\n" in fix:  # no line to type, but its page shows it
        fix, where = f"ncheck explain {own.code}", HERE

    def judge(node: NodeView) -> Iterator[Said]:
        found: OwnAnswer = node[answer]
        message = found.message or own.title
        if found.status == "unknown":
            yield Inconclusive(message)
        elif found.status == "skipped":
            yield NotApplicable(message)
        elif found.status != "passed":
            severity = Severity.WARNING if found.status == "warning" else None
            yield Problem(message, fix, found.evidence, where=where, look=not own.fix, severity=severity)

    page = _PAGE.format(title=own.title, run=own.run.strip().replace("\n", "\n    "))
    return Check(
        own.code, own.name, Severity.ERROR, page, (answer,), judge_node=judge, blocks_plan=True, module=__name__
    )  # fmt: skip


def _answer(kind: type[OwnAnswer], source: Command, evidence: Evidence) -> Read[OwnAnswer]:
    """Read the exit status and the output into a record of this kind."""
    reply = evidence.reply(source)
    if reply.status is Status.TIMEOUT:
        return kind(f"it did not end within {reply.seconds:.0f} s and was killed", "unknown")
    if why := trouble(source, replace(reply, exit_status=0)):
        return why
    text = reply.stdout.strip()
    lines = (text or reply.stderr.strip()).splitlines()
    if reply.exit_status is None or not 0 <= reply.exit_status < len(_BY_EXIT):
        last = f": {lines[-1]}" if lines else ""
        why_not = f"it ended with exit status {reply.exit_status}, which is no verdict (0 to 3){last}"
        return _bounded(kind(why_not, "unknown"))
    status = _BY_EXIT[reply.exit_status]
    if not text.startswith("{"):
        return _bounded(kind(lines[0] if lines else "", status, tuple(lines[1:])))
    try:
        said: OwnAnswer = decoded(json.loads(text), kind)
    except (MisfitError, ValueError, RecursionError) as error:
        return _bounded(kind(f"its output begins with {{ and is not the object that it should be: {error}", "unknown"))
    return _bounded(replace(said, status=min(status, said.status or status, key=_GRAVEST.index)))


def _bounded(said: OwnAnswer) -> OwnAnswer:
    evidence = tuple(line[:LONGEST_MESSAGE] for line in said.evidence[:_MOST_LINES])
    return replace(said, message=said.message[:LONGEST_MESSAGE], evidence=evidence)
