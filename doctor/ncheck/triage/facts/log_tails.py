"""Where the output of a job's ranks goes, and the ends of the files that it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import Key, Words
from ncheck.facts.answers import reading
from ncheck.facts.definition import LOOKING, Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.fact import Unread
from ncheck.triage.facts.jobs import ask_of_ranks
from ncheck.triage.facts.processes import ProcessesFacts

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
    """The logs of the ranks on one node. `outputs`: where descriptors 1 and 2 of each process lead, by pid.

    `left_out`: so many files were too many to be read.
    """

    tails: Annotated[tuple[Annotated[LogTail, _tail], ...], Key("files")]
    outputs: Mapping[Annotated[int, _pid], tuple[str | None, ...]]
    seconds: float = 2.0
    left_out: int = 0

    @property
    def unread(self) -> tuple[Unread, ...]:
        return (Unread(f"{self.left_out} more files of output were not read"),) if self.left_out else ()


@dataclass(frozen=True)
class FileAnswer:
    """The end of a file; without a text, `error` is why there is none."""

    path: str
    pids: tuple[int, ...]
    grown: int
    size: int | None
    text: str | None
    error: Words


def _pid(text: str) -> int:
    return int(text)


def _tail(file: FileAnswer) -> LogTail:
    text, size = file.text, file.size
    if text is None or size is None:
        return LogTail(file.path, file.pids, Unread(file.error), file.grown)
    whole = len(text.encode("utf-8", "replace")) >= size
    tail = text if whole else text.partition("\n")[2]  # the first line of a part is a part of a line
    return LogTail(file.path, file.pids, tail, file.grown, whole)


LOG_TAILS = Answer("log-tails", timeout=10.0, shape=LogTailsFacts)


@reading(LOG_TAILS)
def log_tails(answer: LogTailsFacts) -> LogTailsFacts:
    """Read the ends of the logs."""
    return answer


def _launchers(job: Job, node: str, _: Settings) -> Mapping[str, JsonValue]:
    return {"launchers": [one.pid for one in job.launchers.get(node, ())]}


FACTS = (
    Fact(
        LogTailsFacts, (LOG_TAILS,), log_tails, phase=LOOKING, needs=(ProcessesFacts,),
        questions=ask_of_ranks(LOG_TAILS, _launchers),
    ),
)  # fmt: skip
