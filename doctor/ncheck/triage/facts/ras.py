"""What NCCL's RAS says of a running job, and what RAS's names for its processes mean: which NCCL a rank has loaded,
and which addresses a node has.

RAS answers for the whole job, whichever process is asked. Three nodes are asked, so that a job in two halves shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import Key, Shown
from ncheck.facts.answers import reading
from ncheck.facts.definition import LOOKING, Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.fact import Absent, Read, Unread
from ncheck.text import printable
from ncheck.triage.facts.jobs import ask_of_ranks
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.parse.nccl_ras import RasStatus, parse_ras

if TYPE_CHECKING:
    from ncheck.model.job import Job, RankProcess
    from ncheck.settings import Settings


DEFAULT_ADDRESS = "localhost:28028"

# A question can crash the process that answers it, where ranks are missing or communicators begin (NVIDIA/nccl#1669,
# #1762): from 2.26.2, and in no release from 2.29.2 on if it is asked for JSON.
SPARED = {"from": "2.26.2", "to": "2.29.2"}


@dataclass(frozen=True)
class Asked:
    """One of the two answers; `seconds` after the first question. `silent`: processes that took a connection only."""

    seconds: float
    status: RasStatus | Unread
    silent: int = 0


@dataclass(frozen=True)
class RasFacts:
    """What RAS answered on this node, in the order of the questions. At least one answer could be read."""

    asked: tuple[Asked, ...]


@dataclass(frozen=True)
class LoadedNccl:
    """The NCCL that a rank has loaded; `path` is "" if it has none, `version` if the file does not say it."""

    path: str
    version: str


@dataclass(frozen=True)
class RasNamesFacts:
    """What RAS's names mean here: the addresses of this node; and the NCCL of each of its ranks, by pid."""

    addresses: tuple[Annotated[str, _address_shown], ...]
    loaded: Annotated[Mapping[int, LoadedNccl | Unread], Key("ranks"), _by_pid]

    def of(self, pid: int) -> LoadedNccl | Unread | None:
        return self.loaded.get(pid)


@dataclass(frozen=True)
class LoadedAnswer:
    """The NCCL of one rank; `error` is why its libraries could not be read."""

    pid: int
    path: Shown
    version: Annotated[str, _short]
    error: str


@dataclass(frozen=True)
class AskedAnswer:
    """What RAS answered; `whole`: it closed the connection itself."""

    at: float
    text: str
    whole: bool
    silent: int
    error: Shown


@dataclass(frozen=True)
class RasAnswer:
    ranks: tuple[LoadedAnswer, ...]
    asked: tuple[AskedAnswer, ...]


def _short(text: str) -> str:
    return printable(text, 40)


def _address_shown(text: str) -> str:
    return printable(text, 64)


def _by_pid(ranks: tuple[LoadedAnswer, ...]) -> dict[int, LoadedNccl | Unread]:
    return {one.pid: Unread(printable(one.error)) if one.error else LoadedNccl(one.path, one.version) for one in ranks}


RAS = Answer("ras", timeout=25.0, shape=RasAnswer)


@reading(RAS)
def ras(answer: RasAnswer) -> Read[RasFacts]:
    """Read the answers of RAS. A node that was not asked, or whose ranks have no NCCL, has none."""
    if not answer.asked:
        return Absent("RAS answers for the whole job on other nodes, or it is off: NCCL_RAS_ENABLE=0")
    if not any(one.path or one.error for one in answer.ranks):
        return Absent("no rank here has loaded NCCL")
    asked = tuple(Asked(one.at, _status(one), one.silent) for one in answer.asked)
    failed = [one.status for one in asked if isinstance(one.status, Unread)]
    return failed[-1] if len(failed) == len(asked) else RasFacts(asked)


def _status(answer: AskedAnswer) -> RasStatus | Unread:
    if answer.error:
        return Unread(answer.error)
    try:
        status = parse_ras(answer.text)
    except ValueError as error:
        return Unread(str(error))
    whole = status.whole and (answer.whole or status.form == "json")  # JSON shows its own end
    return replace(status, whole=whole)


def _more(job: Job, node: str, settings: Settings) -> Mapping[str, JsonValue]:
    """Return where the agent of a node asks: all tell which NCCL and which addresses they have, three ask."""
    with_ras = [name for name in job.nodes if any(_is_on(one) for one in job.on(name))]
    chosen = {with_ras[0], with_ras[len(with_ras) // 2], with_ras[-1]} if with_ras else set()
    first = next((one for one in job.on(node) if _is_on(one)), None)
    at = _address(first) if first and node in chosen else None
    consent = settings.run.target is not None and settings.run.target.ras
    return {"at": at, "spare": None if consent else dict(SPARED)}


def _is_on(rank: RankProcess) -> bool:
    return rank.variables.get("NCCL_RAS_ENABLE", "1").strip() == "1"


def _address(rank: RankProcess) -> str:
    """Return where its RAS listens. An address without a port is none: NCCL does not listen there either."""
    address = rank.variables.get("NCCL_RAS_ADDR", "").strip() or DEFAULT_ADDRESS
    return address if address.rpartition(":")[2].isdecimal() else DEFAULT_ADDRESS


_QUESTIONS = ask_of_ranks(RAS, _more)

FACTS = (
    Fact(RasFacts, (RAS,), ras, phase=LOOKING, needs=(ProcessesFacts,), questions=_QUESTIONS),
    Fact(RasNamesFacts, (RAS,), phase=LOOKING, needs=(ProcessesFacts,), questions=lambda *_: {}),
)
