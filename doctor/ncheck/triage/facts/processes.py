"""The processes of a node that may be a job's: ranks, what is beneath them, and what started them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import OPTIONAL, Key
from ncheck.expression import expression
from ncheck.facts.definition import FINDING, Fact
from ncheck.launchers import LAUNCHER_TABLE, RANK_VARIABLES
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.job import Process, Target

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions
    from ncheck.settings import Settings


@dataclass(frozen=True)
class OtherProcess:
    """A process of another user, by its number, and what is known of it."""

    pid: int
    user: int
    command: str


@dataclass(frozen=True)
class ProcessesFacts:
    """The processes of a node that may be a job's. `hidden`: so many others cannot be looked into by this user;
    `left_out`: so many were, and are too many for one answer.

    `gpus`: the device files that a process holds, by pid. `others` are among those that cannot be looked into, and may
    be ranks by their command lines. `own_only`: /proc shows this user no process of others. `uptime`: seconds since
    boot when they were listed, 0 where that is not known.
    """

    processes: tuple[Process, ...]
    gpus: Annotated[Mapping[int, tuple[str, ...]], Key("processes"), _held]
    hidden: int = 0
    left_out: int = 0
    others: Annotated[tuple[OtherProcess, ...], OPTIONAL] = ()
    own_only: Annotated[bool, OPTIONAL] = False
    uptime: Annotated[float, OPTIONAL] = 0.0


@dataclass(frozen=True)
class Holder:
    """A process and the device files that it holds."""

    pid: int
    devices: tuple[str, ...]


def _held(processes: tuple[Holder, ...]) -> dict[int, tuple[str, ...]]:
    return {one.pid: one.devices for one in processes if one.devices}


PROCESSES = Answer("processes", shape=ProcessesFacts)


def asked(match: str | None) -> Answer:
    """Return the question; `match` is a regular expression for the command lines of ranks that no launcher started."""
    variables: list[JsonValue] = [*sorted({one.rank for one in RANK_VARIABLES})]
    return replace(PROCESSES, arguments={"rank_variables": variables, "match": match, "launchers": _LAUNCHERS.pattern})


def _questions(cluster: Cluster, settings: Settings, _: float) -> Questions:
    target = settings.run.target or Target()
    return {name: (asked(target.match),) for name in cluster.names}


FACTS = (Fact(ProcessesFacts, (PROCESSES,), phase=FINDING, questions=_questions),)

# mpirun -np 16 --hostfile hosts python3 train.py | /usr/bin/orted -mca ess env | srun -N 2 python3 train.py
# /usr/bin/python3 /usr/local/bin/torchrun --nnodes 2 train.py | python -u -m torch.distributed.run train.py
_PROGRAMS = "|".join(one for launcher in LAUNCHER_TABLE.values() for one in launcher.programs)
_MODULES = "|".join(one for launcher in LAUNCHER_TABLE.values() for one in launcher.modules)
_LAUNCHERS = expression(
    rf"^(?:(?:\S*/)?(?:{_PROGRAMS})|\S*python[\d.]* (?:-\w+ )*(?:(?:\S*/)?(?:{_PROGRAMS})|-m (?:{_MODULES})))(?: |$)"
)


def is_launcher(process: Process) -> bool:
    """Return whether this is a program that starts ranks, or a daemon of one."""
    return bool(_LAUNCHERS.match(process.command))
