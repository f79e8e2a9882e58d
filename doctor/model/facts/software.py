"""Versions and software, as the job would have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.model.fact import Absent, Unread


@dataclass(frozen=True)
class InterpreterFacts:
    """The interpreter that the job would use, and what lives in it. `frameworks` maps torch, tensorflow, horovod,
    oneflow, paddle, jax, deepspeed and the like to their versions; empty means that none lives there. `container` names
    what was entered ("docker exec -i train"), or the container that the node turned out to be (docker).
    `how` says why this interpreter: "--python", "active venv", "active conda", "python3 on PATH".
    """

    path: str
    version: str
    how: str
    frameworks: Mapping[str, str]
    container: str = ""


@dataclass(frozen=True)
class NcclCopy:
    """One libnccl on the node, as "2.21.5"; `origin` is loader, wheel, conda, torch, system or environment."""

    path: str
    version: str | Unread
    origin: str
    cuda: str = ""  # what it was built for: "12.4", "" when it does not say


@dataclass(frozen=True)
class NcclCopiesFacts:
    """Every copy of libnccl that was found, the real path of each once."""

    copies: tuple[NcclCopy, ...]


@dataclass(frozen=True)
class LoadedNcclFacts:
    """The copy that the job's interpreter loads, asked by ncclGetVersion. `static` when torch has it linked in."""

    version: str
    path: str
    static: bool = False


@dataclass(frozen=True)
class MpiFacts:
    """The mpirun that a job would start: the job's environment's, else a plain login's, else that of a person's shell.

    `implementation`: Open MPI, MPICH, Intel MPI, Spectrum MPI.
    """

    implementation: str
    version: str
    path: str = ""

    @property
    def release(self) -> tuple[int, ...]:
        """The leading numbers of the version: (4, 1, 4); letters such as in 4.1.0rc1 end them."""
        numbers: list[int] = []
        for part in self.version.split("."):
            digits = part[: len(part) - len(part.lstrip("0123456789"))]
            if not digits:
                break
            numbers.append(int(digits))
            if digits != part:
                break
        return tuple(numbers)


@dataclass(frozen=True)
class HorovodFacts:
    """What `horovodrun --check-build` says: each set holds the names marked [X]."""

    version: str
    frameworks: frozenset[str]
    controllers: frozenset[str]
    operations: frozenset[str]


@dataclass(frozen=True)
class EnvironmentFacts:
    """The variables that steer NCCL, MPI and gloo, in the environment that a non-interactive login gets, and the
    lines of NCCL's configuration files by path, as written. `missing_files`: variables of NCCL's that name a file that
    is not there.
    """

    variables: Mapping[str, str]
    files: Mapping[str, tuple[str, ...] | Unread | Absent]
    missing_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class SharedMemory:
    """How large /dev/shm is, and how much of it is free, in bytes."""

    total: int
    free: int


@dataclass(frozen=True)
class LimitsFacts:
    """Limits of a non-interactive login: locked memory in bytes (None: unlimited), and shared memory."""

    memlock: int | None
    shm: SharedMemory | Unread
