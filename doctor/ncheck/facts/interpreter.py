"""The Python interpreter that the job would use, and the frameworks installed in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import TypedDict, cast, final

from ncheck.facts.definition import LONGEST, Fact, trouble
from ncheck.facts.shapes import absolute_path
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Absent, Read


@dataclass(frozen=True)
class TorchBuild:
    """What torch was built for, by its own version.py: `cuda` or `hip` is "12.1"; a CPU build has neither."""

    version: str  # 2.3.0+cu121, where the package may be called 2.3.0
    cuda: str = ""
    hip: str = ""


@dataclass(frozen=True)
class BrokenBy:
    """The variables, PYTHONHOME or PYTHONPATH, with which the interpreter does not start or cannot import its standard
    library, and its last words.
    """

    variables: Mapping[str, str]
    error: str


@dataclass(frozen=True)
class InterpreterFacts:
    """The interpreter that the job would use. `frameworks` maps torch, tensorflow, horovod, oneflow, paddle, jax,
    deepspeed and the like to their versions; it is empty if none is installed. `libraries` does the same for what
    frameworks use: flash-attn, transformer-engine, apex, DALI, torchvision, and the wheels of CUDA, cuDNN and NCCL.
    `container` is the command that entered one ("docker exec -i train"), or the kind of container that the node itself
    is (docker). `how` says why this interpreter: "--python", "the job's command" (`ncheck launch ... -- PATH`), "active
    venv", "active conda" or "active python on PATH" (of the shell that runs ncheck), "python3 on PATH" (of the login).
    """

    path: str
    version: str
    how: str
    frameworks: Mapping[str, str]
    container: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    torch: TorchBuild | None = None
    broken: BrokenBy | None = None

    @property
    def trains(self) -> bool:
        """Whether a framework is there that a job could train with; MPI for Python alone is none."""
        return any(name.startswith(_TRAINING) for name in self.frameworks)

    @property
    def pip(self) -> str:
        """The command that installs packages into this interpreter."""
        return "python3 -m pip" if self.how == "python3 on PATH" else f"{quote(self.path)} -m pip"


@final
class TorchAnswer(TypedDict):
    """What torch's version.py says."""

    version: str
    cuda: str | None
    hip: str | None


@final
class BrokenAnswer(TypedDict):
    """What breaks the interpreter."""

    variables: dict[str, str]
    error: str


class InterpreterAnswer(TypedDict):
    """The job's interpreter, and the packages that matter to it."""

    path: str
    version: str
    how: str | None
    packages: dict[str, str]
    container: str | None
    torch: TorchAnswer | None
    broken: BrokenAnswer | None


INTERPRETER = Answer("interpreter", shape=InterpreterAnswer)


# tensorflow-gpu: a name becomes part of commands
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


# 2.3.0+cu121, 2.9.0a0+50eac811a6.nv25.09: it becomes part of commands, too
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,99}")


_OF_PYTHON = ("PYTHONHOME", "PYTHONPATH")
_TRAINING = ("torch", "tensorflow", "jax", "paddle", "oneflow", "mxnet", "cupy")
NCCL_WHEELS = "nvidia-nccl-"  # not a framework: the version of the NCCL in use is read from the library
_LIBRARIES = (
    "nvidia-", "apex", "flash-attn", "transformer-engine", "torchvision", "torchaudio", "jax-cuda", "jax-rocm"
)  # fmt: skip


def interpreter(evidence: Evidence) -> Read[InterpreterFacts]:
    """Read the job's interpreter; an empty list of frameworks is an answer too."""
    reply = evidence.reply(INTERPRETER)
    if why := trouble(INTERPRETER, reply):
        return Absent("no Python interpreter for a job on this node") if isinstance(why, Absent) else why
    answer = cast("InterpreterAnswer", reply.value)
    if not answer["version"]:
        raise ValueError("its version is empty")
    found, torch = packages(evidence), _torch(answer.get("torch"))
    frameworks = {name: version for name, version in found.items() if not name.startswith(_LIBRARIES)}
    if torch and "torch" in frameworks:
        frameworks["torch"] = torch.version
    return InterpreterFacts(
        path=absolute_path(answer["path"]),
        version=answer["version"],
        how=answer.get("how") or "",
        frameworks=frameworks,
        container=answer.get("container") or "",
        libraries={name: version for name, version in found.items() if name.startswith(_LIBRARIES)},
        torch=torch,
        broken=_broken(answer.get("broken")),
    )


def _torch(answer: TorchAnswer | None) -> TorchBuild | None:
    if answer is None:
        return None
    parts = (answer["version"], answer["cuda"] or "", answer["hip"] or "")
    if not all(_VERSION.fullmatch(part) for part in parts if part):
        raise ValueError("torch's version.py holds no version")
    return TorchBuild(*parts)


def _broken(answer: BrokenAnswer | None) -> BrokenBy | None:
    if answer is None:
        return None
    variables = {name: value[:LONGEST] for name, value in answer["variables"].items() if name in _OF_PYTHON}
    return BrokenBy(variables, answer["error"][:LONGEST])


def packages(evidence: Evidence) -> dict[str, str]:
    """Return the frameworks and libraries in the job's interpreter by name; {} if it could not be read."""
    reply = evidence.reply(INTERPRETER)
    held = cast("InterpreterAnswer", reply.value)["packages"] if reply.succeeded else {}
    return {name: version for name, version in held.items() if _PACKAGE.fullmatch(name)}


FACTS = (Fact(InterpreterFacts, (INTERPRETER,), interpreter),)
