"""The flight recorder dumps that the ranks of a job on a node have written, and whether each is of this job."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import Null
from ncheck.facts.answers import reading
from ncheck.facts.definition import LOOKING, Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.fact import Absent, Unread
from ncheck.model.job import Job, Target
from ncheck.text import LONGEST_MESSAGE, printable
from ncheck.triage.facts.jobs import ask_of_ranks
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.parse.flight_recorder import MOST, Dump, read

if TYPE_CHECKING:
    from ncheck.settings import Settings


@dataclass(frozen=True)
class DumpFile:
    """One rank's dump, written at `time` (seconds since 1970, by the node's clock)."""

    path: str
    time: float
    dump: Dump


@dataclass(frozen=True)
class FlightRecorderFacts:
    """The dumps by the pid of their rank: Absent if the rank has written none, Unread if one may be there."""

    dumps: Mapping[int, DumpFile | Unread | Absent]

    def of(self, pid: int) -> DumpFile | Unread | Absent:
        """Return the dump of one rank."""
        return self.dumps.get(pid, Unread("it was not asked for"))


@dataclass(frozen=True)
class FileAnswer:
    """A dump; `read` of its bytes are in `data`, packed by zlib, as base64."""

    path: str
    size: int
    mtime: float
    owner: int
    read: int
    error: str
    data: Annotated[str, Null("")]


@dataclass(frozen=True)
class RankAnswer:
    """`asked`: "" (torch was not to be asked for a dump), "written", "asked" (nothing came) or why it was not asked;
    `tried`: the paths that were looked at; `began`: seconds since 1970 when the process began.
    """

    pid: int
    error: str
    asked: str
    tried: tuple[str, ...]
    began: float | None
    dump: FileAnswer | None


@dataclass(frozen=True)
class FlightRecorderAnswer:
    ranks: tuple[RankAnswer, ...]


FLIGHT_RECORDER = Answer("flight-recorder", timeout=20.0, shape=FlightRecorderAnswer)


@reading(FLIGHT_RECORDER)
def flight_recorder(answer: FlightRecorderAnswer) -> FlightRecorderFacts:
    """Read the dumps of a node's ranks."""
    return FlightRecorderFacts({one.pid: _of_rank(one) for one in answer.ranks})


def _of_rank(one: RankAnswer) -> DumpFile | Unread | Absent:
    if one.error:
        why = "the process has ended" if one.error == "gone" else one.error[:LONGEST_MESSAGE]
        return Unread(printable(why, LONGEST_MESSAGE), needs_root=one.error == "permission denied")
    file = one.dump
    if file is None:
        return Absent(_words(f"no dump at {' or '.join(one.tried[:4])}", one))
    if one.began is not None and file.mtime < one.began:
        return Absent(_words(f"{file.path} was written before this process began: it is of an earlier job", one))
    if file.error:
        owner = f" (user {file.owner})" if "another user" in file.error else ""
        return Unread(_words(f"{file.path}: {file.error}{owner}", one))
    dump = _unpacked(file)
    if isinstance(dump, Unread):
        return Unread(_words(f"{file.path}: {dump.reason}", one))
    return DumpFile(printable(file.path, LONGEST_MESSAGE), file.mtime, dump)


def _words(text: str, one: RankAnswer) -> str:
    """Return a reason, with why torch wrote no new dump if it was asked for one."""
    if one.asked == "asked":
        text += "; torch was asked for a dump and wrote none"
    elif one.asked not in ("", "written"):
        text += f"; {one.asked}"
    return printable(text, LONGEST_MESSAGE)


def _unpacked(file: FileAnswer) -> Dump | Unread:
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(file.data, validate=True), MOST + 1)
    except (binascii.Error, ValueError, zlib.error):
        return Unread("the node's answer is broken")
    short = file.size > file.read
    return read(data, f"only {file.read:,} of its {file.size:,} bytes were read" if short else "")


def _more(_job: Job, _node: str, settings: Settings) -> Mapping[str, JsonValue]:
    return {"dump": (settings.run.target or Target()).dump}


FACTS = (
    Fact(
        FlightRecorderFacts, (FLIGHT_RECORDER,), flight_recorder, phase=LOOKING, needs=(ProcessesFacts,),
        questions=ask_of_ranks(FLIGHT_RECORDER, _more),
    ),
)  # fmt: skip
