"""The flight recorder dumps that the ranks of a job on a node have written, and whether each is of this job."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from ncheck.facts.definition import LONGEST, LOOKING, Fact, no_answer
from ncheck.facts.jobs import ask_of_ranks
from ncheck.facts.processes import ProcessesFacts
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Absent, Read, Unread
from ncheck.model.job import Job, Target
from ncheck.parse.flight_recorder import MOST, Dump, read
from ncheck.text import printable

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


class FileAnswer(TypedDict):
    path: str
    size: int
    mtime: float
    owner: int
    read: int
    error: str
    data: str | None


class RankAnswer(TypedDict):
    pid: int
    error: str
    asked: str
    tried: list[str]
    began: float | None
    dump: FileAnswer | None


class FlightRecorderAnswer(TypedDict):
    ranks: list[RankAnswer]


FLIGHT_RECORDER = Answer("flight-recorder", timeout=20.0, shape=FlightRecorderAnswer)


def flight_recorder(evidence: Evidence) -> Read[FlightRecorderFacts]:
    """Read the dumps of a node's ranks."""
    reply = evidence.reply(FLIGHT_RECORDER)
    if why := no_answer(FLIGHT_RECORDER, reply):
        return why
    answer = cast("FlightRecorderAnswer", reply.value)
    return FlightRecorderFacts({one["pid"]: _of_rank(one) for one in answer["ranks"]})


def _of_rank(one: RankAnswer) -> DumpFile | Unread | Absent:
    if one["error"]:
        why = "the process has ended" if one["error"] == "gone" else one["error"][:LONGEST]
        return Unread(printable(why, LONGEST), needs_root=one["error"] == "permission denied")
    file = one["dump"]
    if file is None:
        return Absent(_words(f"no dump at {' or '.join(one['tried'][:4])}", one))
    if one["began"] is not None and file["mtime"] < one["began"]:
        return Absent(_words(f"{file['path']} was written before this process began: it is of an earlier job", one))
    if file["error"]:
        owner = f" (user {file['owner']})" if "another user" in file["error"] else ""
        return Unread(_words(f"{file['path']}: {file['error']}{owner}", one))
    dump = _unpacked(file)
    if isinstance(dump, Unread):
        return Unread(_words(f"{file['path']}: {dump.reason}", one))
    return DumpFile(printable(file["path"], LONGEST), file["mtime"], dump)


def _words(text: str, one: RankAnswer) -> str:
    """Return a reason, with why torch wrote no new dump if it was asked for one."""
    if one["asked"] == "asked":
        text += "; torch was asked for a dump and wrote none"
    elif one["asked"] not in ("", "written"):
        text += f"; {one['asked']}"
    return printable(text, LONGEST)


def _unpacked(file: FileAnswer) -> Dump | Unread:
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(file["data"] or "", validate=True), MOST + 1)
    except (binascii.Error, ValueError, zlib.error):
        return Unread("the node's answer is broken")
    short = file["size"] > file["read"]
    return read(data, f"only {file['read']:,} of its {file['size']:,} bytes were read" if short else "")


def _more(_job: Job, _node: str, settings: Settings) -> Mapping[str, JsonValue]:
    return {"dump": (settings.target or Target()).dump}


FACTS = (
    Fact(
        FlightRecorderFacts, (FLIGHT_RECORDER,), flight_recorder, phase=LOOKING, needs=(ProcessesFacts,),
        questions=ask_of_ranks(FLIGHT_RECORDER, _more),
    ),
)  # fmt: skip
