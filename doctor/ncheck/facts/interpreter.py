"""The Python interpreter that the job would use, and the frameworks installed in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from shlex import quote
from typing import Annotated

from ncheck.decode import Maybe, Null, OrEmpty, Path, Words
from ncheck.expression import expression
from ncheck.facts.answers import answer_of, reading
from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Evidence, Reply
from ncheck.model.fact import Absent, Unread
from ncheck.text import LONGEST_MESSAGE


@dataclass(frozen=True)
class TorchBuild:
    """What torch was built for, by its own version.py; a CPU build has neither CUDA nor HIP. `cuda`: "12.1"; `hip`:
    "6.0"; "" for none.
    """

    version: Annotated[str, _build]  # 2.3.0+cu121, where the package may be called 2.3.0
    cuda: Annotated[str, Null(""), _build_or_empty] = ""
    hip: Annotated[str, Null(""), _build_or_empty] = ""


@dataclass(frozen=True)
class BrokenBy:
    """The variables, PYTHONHOME or PYTHONPATH, with which the interpreter does not start or cannot import its standard
    library, and its last words.
    """

    variables: Annotated[Mapping[str, str], _of_python]
    error: Words


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


@dataclass(frozen=True)
class InterpreterAnswer:
    """The job's interpreter, and the packages that matter to it."""

    path: Path
    version: str
    packages: Mapping[str, str]
    how: OrEmpty = ""
    container: OrEmpty = ""
    torch: Maybe[TorchBuild] = None
    broken: Maybe[BrokenBy] = None


INTERPRETER = Answer("interpreter", shape=InterpreterAnswer, slow=True)

# tensorflow-gpu: a name becomes part of commands
_PACKAGE = expression(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

# 2.3.0+cu121, 2.9.0a0+50eac811a6.nv25.09: it becomes part of commands, too
_VERSION = expression(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,99}")
_OF_PYTHON = ("PYTHONHOME", "PYTHONPATH")
_TRAINING = ("torch", "tensorflow", "jax", "paddle", "oneflow", "mxnet", "cupy")
NCCL_WHEELS = "nvidia-nccl-"  # not a framework: the version of the NCCL in use is read from the library
_LIBRARIES = (
    "nvidia-", "apex", "flash-attn", "transformer-engine", "torchvision", "torchaudio", "jax-cuda", "jax-rocm"
)  # fmt: skip


def _reason(source: Answer, reply: Reply) -> Unread | Absent | None:
    why = trouble(source, reply)
    return Absent("no Python interpreter for a job on this node") if isinstance(why, Absent) else why


@reading(INTERPRETER, _reason)
def interpreter(answer: InterpreterAnswer) -> InterpreterFacts:
    """Read the job's interpreter; an empty list of frameworks is an answer too."""
    if not answer.version:
        raise ValueError("its version is empty")
    found = _packages(answer)
    frameworks = {name: version for name, version in found.items() if not name.startswith(_LIBRARIES)}
    if answer.torch and "torch" in frameworks:
        frameworks["torch"] = answer.torch.version
    return InterpreterFacts(
        path=answer.path,
        version=answer.version,
        how=answer.how,
        frameworks=frameworks,
        container=answer.container,
        libraries={name: version for name, version in found.items() if name.startswith(_LIBRARIES)},
        torch=answer.torch,
        broken=answer.broken,
    )


def _build(version: str) -> str:
    if not _VERSION.fullmatch(version):
        raise ValueError("torch's version.py holds no version")
    return version


def _build_or_empty(version: str) -> str:
    return version and _build(version)


def _of_python(variables: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value[:LONGEST_MESSAGE] for name, value in variables.items() if name in _OF_PYTHON}


def packages(evidence: Evidence) -> dict[str, str]:
    """Return the frameworks and libraries in the job's interpreter by name; {} if it could not be read."""
    answer = answer_of(INTERPRETER, evidence, trouble)
    return {} if isinstance(answer, (Unread, Absent)) else _packages(answer)


def _packages(answer: InterpreterAnswer) -> dict[str, str]:
    return {name: version for name, version in answer.packages.items() if _PACKAGE.fullmatch(name)}


FACTS = (Fact(InterpreterFacts, (INTERPRETER,), interpreter),)
