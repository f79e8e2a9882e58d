"""The copies of NCCL, or of AMD's RCCL, on a node, and the one that the job's interpreter loads."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from ncheck.decode import OPTIONAL, Flag, Null, OrEmpty, Words
from ncheck.expression import expression
from ncheck.facts.answers import answer_of
from ncheck.facts.definition import Fact, trouble
from ncheck.facts.interpreter import INTERPRETER, packages
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.nccl_version import version_text


@dataclass(frozen=True)
class NcclCopy:
    """One libnccl on the node, as "2.21.5"; `origin` is loader, wheel, conda, torch, system or environment."""

    path: str
    version: str | Unread
    origin: str
    cuda: str = ""  # the CUDA version it was built for: "12.4", "" if unknown
    for_compilers: bool = False  # libnccl.so lies beside it: libnccl-dev or libnccl-devel is installed

    @property
    def library(self) -> str:
        """Its name: NCCL or RCCL."""
        return _library(self.path)


@dataclass(frozen=True)
class NcclCopiesFacts:
    """Every copy of libnccl that was found, the real path of each once."""

    copies: tuple[NcclCopy, ...]


@dataclass(frozen=True)
class LoadedNcclFacts:
    """The copy that the job's interpreter loads, by ncclGetVersion. `static`: it is linked into torch.

    `route` is what leads the loader there, such as LD_LIBRARY_PATH; "" if unknown.
    """

    version: str
    path: str
    static: bool = False
    route: str = ""

    @property
    def library(self) -> str:
        """Its name: RCCL on AMD's GPUs. That has NCCL's functions, variables and numbers of versions."""
        return _library(self.path)


def _library(path: str) -> str:
    return "RCCL" if PurePosixPath(path).name.startswith(("librccl.", "libtorch_hip.")) else "NCCL"


@dataclass(frozen=True)
class CopyAnswer:
    """One copy. `version`: "2.21.5", or the number that ncclGetVersion returns."""

    path: str
    version: Annotated[str | int | Unread | None, OPTIONAL] = None
    origin: OrEmpty = ""
    cuda: OrEmpty = ""
    seen_as: Annotated[tuple[str, ...], OPTIONAL, Null(())] = ()


@dataclass(frozen=True)
class LoadedAnswer:
    """The copy that the job's interpreter loads."""

    version: str | int
    path: OrEmpty = ""
    static: Flag = False
    how: Annotated[Words, OPTIONAL, Null("")] = ""


@dataclass(frozen=True)
class NcclAnswer:
    """Every copy; `loaded` is null where no copy would be loaded."""

    copies: tuple[CopyAnswer, ...]
    loaded: LoadedAnswer | Unread | None


NCCL = Answer("nccl", shape=NcclAnswer, slow=True)
_WITHOUT_NCCL = {"mpi4py"}  # also installed in interpreters that no GPU job uses
_OF_AN_ENVIRONMENT = frozenset({"wheel", "conda", "torch", "environment"})


def copies(evidence: Evidence) -> Read[NcclCopiesFacts]:
    """Read every copy; a version that could not be read is Unread within its copy."""
    answer = _answer(evidence)
    if isinstance(answer, (Unread, Absent)):
        return answer
    found = _copies(answer)
    return NcclCopiesFacts(found) if found else Absent("no libnccl on this node")


def loaded(evidence: Evidence) -> Read[LoadedNcclFacts]:
    """Read the copy that the job's interpreter loads.

    If no framework is installed there and other environments have a copy, none is known to be the job's.
    """
    answer = _answer(evidence)
    if isinstance(answer, (Unread, Absent)):
        return answer
    one = answer.loaded
    if isinstance(one, Unread):
        return Unread(f"the job's interpreter could not load NCCL: {one.reason}", fix="ncheck explain NC201")
    path = one.path if one else ""
    elsewhere = [copy for copy in _copies(answer) if copy.origin in _OF_AN_ENVIRONMENT and copy.path != path]
    frameworks = packages(evidence).keys() - _WITHOUT_NCCL
    if elsewhere and not frameworks and not _within(answer, path):
        return _other_environment(elsewhere[0])
    if one is None:
        return Absent("no NCCL that the job's interpreter would load")
    return LoadedNcclFacts(version_text(one.version), path, static=one.static, route=one.how)


def _answer(evidence: Evidence) -> Read[NcclAnswer]:
    answer: Read[NcclAnswer] = answer_of(NCCL, evidence, trouble)
    return Absent("no libnccl on this node") if isinstance(answer, Absent) else answer


def _copies(answer: NcclAnswer) -> tuple[NcclCopy, ...]:
    return tuple(map(_copy, answer.copies))


_CUDA = expression(r"\d{1,3}\.\d{1,3}")  # 12.4: it becomes part of commands


def _copy(one: CopyAnswer) -> NcclCopy:
    version = one.version
    if version is None or isinstance(version, Unread):
        why = version.reason if version else "it does not report its version"
        version = Unread(f"{one.path}: {why}")
    else:
        version = version_text(version)
    return NcclCopy(
        path=one.path,
        version=version,
        origin=one.origin or "system",
        cuda=one.cuda if _CUDA.fullmatch(one.cuda) else "",
        for_compilers=any(PurePosixPath(path).name == "libnccl.so" for path in one.seen_as),
    )


def _within(answer: NcclAnswer, path: str) -> bool:
    """Return whether the loaded copy belongs to an environment and not to the whole node."""
    return any(copy.path == path and copy.origin in _OF_AN_ENVIRONMENT for copy in _copies(answer))


def _other_environment(copy: NcclCopy) -> Absent:
    return Absent(
        f"no framework is installed in the interpreter that ncheck used; {copy.path} belongs to another environment"
    )


FACTS = (
    Fact(NcclCopiesFacts, (NCCL,), copies),
    Fact(LoadedNcclFacts, (NCCL, INTERPRETER), loaded),
)
