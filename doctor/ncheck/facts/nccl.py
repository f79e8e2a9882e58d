"""The copies of NCCL, or of AMD's RCCL, on a node, and the one that the job's interpreter loads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypedDict, cast, final

from ncheck.facts.definition import LONGEST, Fact, trouble
from ncheck.facts.interpreter import INTERPRETER, packages
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


@final
class NotRead(TypedDict):
    """Why it could not be read or loaded."""

    error: str


class CopyAnswer(TypedDict):
    """One copy. `version`: "2.21.5", or the number that ncclGetVersion returns."""

    path: str
    version: str | int | NotRead | None
    origin: str | None
    cuda: str | None
    seen_as: list[str] | None


@final
class LoadedAnswer(TypedDict):
    """The copy that the job's interpreter loads."""

    version: str | int
    path: str | None
    static: bool | None
    how: str | None


class NcclAnswer(TypedDict):
    """Every copy; `loaded` is null where no copy would be loaded."""

    copies: list[CopyAnswer]
    loaded: NotRead | LoadedAnswer | None


NCCL = Answer("nccl", shape=NcclAnswer)


_WITHOUT_NCCL = {"mpi4py"}  # also installed in interpreters that no GPU job uses


_OF_AN_ENVIRONMENT = frozenset({"wheel", "conda", "torch", "environment"})


def copies(evidence: Evidence) -> Read[NcclCopiesFacts]:
    """Read every copy; a version that could not be read is Unread within its copy."""
    value = _answer(evidence)
    if isinstance(value, (Unread, Absent)):
        return value
    found = _copies(value)
    return NcclCopiesFacts(found) if found else Absent("no libnccl on this node")


def loaded(evidence: Evidence) -> Read[LoadedNcclFacts]:
    """Read the copy that the job's interpreter loads.

    If no framework is installed there and other environments have a copy, none is known to be the job's.
    """
    value = _answer(evidence)
    if isinstance(value, (Unread, Absent)):
        return value
    answer = value["loaded"]
    if answer and "error" in answer:
        return Unread(f"the job's interpreter could not load NCCL: {answer['error']}", fix="ncheck explain NC201")
    path = answer.get("path") or "" if answer else ""
    elsewhere = [copy for copy in _copies(value) if copy.origin in _OF_AN_ENVIRONMENT and copy.path != path]
    frameworks = packages(evidence).keys() - _WITHOUT_NCCL
    if elsewhere and not frameworks and not _within(value, path):
        return _other_environment(elsewhere[0])
    if answer is None:
        return Absent("no NCCL that the job's interpreter would load")
    route = (answer.get("how") or "")[:LONGEST]
    return LoadedNcclFacts(version_text(answer["version"]), path, static=bool(answer.get("static")), route=route)


def _answer(evidence: Evidence) -> NcclAnswer | Unread | Absent:
    reply = evidence.reply(NCCL)
    if why := trouble(NCCL, reply):
        return Absent("no libnccl on this node") if isinstance(why, Absent) else why
    return cast("NcclAnswer", reply.value)


def _copies(value: NcclAnswer) -> tuple[NcclCopy, ...]:
    return tuple(map(_copy, value["copies"]))


_CUDA = re.compile(r"\d{1,3}\.\d{1,3}")  # 12.4: it becomes part of commands


def _copy(one: CopyAnswer) -> NcclCopy:
    version = one.get("version")
    why = version["error"] if isinstance(version, dict) else "it does not report its version"
    return NcclCopy(
        path=one["path"],
        version=version_text(version) if isinstance(version, str | int) else Unread(f"{one['path']}: {why}"),
        origin=one.get("origin") or "system",
        cuda=cuda if _CUDA.fullmatch(cuda := one.get("cuda") or "") else "",
        for_compilers=any(PurePosixPath(path).name == "libnccl.so" for path in one.get("seen_as") or ()),
    )


def _within(value: NcclAnswer, path: str) -> bool:
    """Return whether the loaded copy belongs to an environment and not to the whole node."""
    return any(copy.path == path and copy.origin in _OF_AN_ENVIRONMENT for copy in _copies(value))


def _other_environment(copy: NcclCopy) -> Absent:
    return Absent(
        f"no framework is installed in the interpreter that ncheck used; {copy.path} belongs to another environment"
    )


FACTS = (
    Fact(NcclCopiesFacts, (NCCL,), copies),
    Fact(LoadedNcclFacts, (NCCL, INTERPRETER), loaded),
)
