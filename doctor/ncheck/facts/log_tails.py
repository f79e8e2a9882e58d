"""Where the output of a job's ranks goes, and the ends of the files that it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from ncheck.facts.definition import LONGEST, LOOKING, Fact, no_answer
from ncheck.facts.jobs import ask_of_ranks
from ncheck.facts.processes import ProcessesFacts
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Read, Unread

if TYPE_CHECKING:
    from ncheck.model.job import Job
    from ncheck.settings import Settings


@dataclass(frozen=True)
class LogTail:
    """The end of one file. `pids`: the ranks and launchers that write to it. `grown`: bytes while it was watched.

    `whole`: the text begins at the beginning of the file.
    """

    path: str
    pids: tuple[int, ...]
    text: str | Unread
    grown: int = 0
    whole: bool = True


@dataclass(frozen=True)
class LogTailsFacts:
    """The logs of the ranks on one node. `outputs`: where descriptors 1 and 2 of each process lead, by pid."""

    tails: tuple[LogTail, ...]
    outputs: Mapping[int, tuple[str | None, ...]]
    seconds: float = 2.0


class FileAnswer(TypedDict):
    path: str
    pids: list[int]
    grown: int
    size: int | None
    text: str | None
    error: str


class LogTailsAnswer(TypedDict):
    seconds: float
    outputs: Mapping[str, list[str | None]]
    files: list[FileAnswer]
    left_out: int


LOG_TAILS = Answer("log-tails", timeout=10.0, shape=LogTailsAnswer)


def log_tails(evidence: Evidence) -> Read[LogTailsFacts]:
    """Read the ends of the logs."""
    reply = evidence.reply(LOG_TAILS)
    if why := no_answer(LOG_TAILS, reply):
        return why
    answer = cast("LogTailsAnswer", reply.value)
    outputs = {int(pid): tuple(leads) for pid, leads in answer["outputs"].items()}
    return LogTailsFacts(tuple(map(_tail, answer["files"])), outputs, answer["seconds"])


def _tail(file: FileAnswer) -> LogTail:
    text, size = file["text"], file["size"]
    if text is None or size is None:
        return LogTail(file["path"], tuple(file["pids"]), Unread(file["error"][:LONGEST]), file["grown"])
    whole = len(text.encode("utf-8", "replace")) >= size
    return LogTail(
        file["path"], tuple(file["pids"]), text if whole else text.partition("\n")[2], file["grown"], whole
    )  # the first line of a part is a part of a line


def _launchers(job: Job, node: str, _: Settings) -> Mapping[str, JsonValue]:
    return {"launchers": [one.pid for one in job.launchers.get(node, ())]}


FACTS = (
    Fact(
        LogTailsFacts, (LOG_TAILS,), log_tails, phase=LOOKING, needs=(ProcessesFacts,),
        questions=ask_of_ranks(LOG_TAILS, _launchers),
    ),
)  # fmt: skip
