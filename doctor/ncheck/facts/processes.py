"""The processes of a node that may be a job's: ranks, what is beneath them, and what started them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, cast

from ncheck.facts.definition import FINDING, Fact, no_answer
from ncheck.hook.launchers import LAUNCHERS
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Read
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
    be ranks by their command lines. `own_only`: /proc shows this user no process of others.
    """

    processes: tuple[Process, ...]
    gpus: Mapping[int, tuple[str, ...]]
    hidden: int = 0
    left_out: int = 0
    others: tuple[OtherProcess, ...] = ()
    own_only: bool = False


class ProcessAnswer(TypedDict):
    pid: int
    parent: int
    started: int
    state: str
    name: str
    argv: list[str]
    user: int
    inner_pid: int
    namespace: str
    variables: Mapping[str, str] | None
    secret: list[str]
    devices: list[str]


class OtherAnswer(TypedDict):
    pid: int
    user: int
    command: str


class _LaterAnswer(TypedDict, total=False):
    """What answers that were saved before do not have."""

    others: list[OtherAnswer]
    own_only: bool


class ProcessesAnswer(_LaterAnswer):
    """`left_out`: processes beyond the most that one answer holds."""

    processes: list[ProcessAnswer]
    left_out: int
    hidden: int


PROCESSES = Answer("processes", shape=ProcessesAnswer)


def processes(evidence: Evidence) -> Read[ProcessesFacts]:
    """Read the processes."""
    reply = evidence.reply(PROCESSES)
    if why := no_answer(PROCESSES, reply):
        return why
    answer = cast("ProcessesAnswer", reply.value)
    read = tuple(
        Process(
            one["pid"], one["parent"], one["started"], one["state"], one["name"], tuple(one["argv"]), one["user"],
            one["inner_pid"], one["namespace"], one["variables"],
        )
        for one in answer["processes"]
    )  # fmt: skip
    gpus = {one["pid"]: tuple(one["devices"]) for one in answer["processes"] if one["devices"]}
    others = tuple(OtherProcess(one["pid"], one["user"], one["command"]) for one in answer.get("others", ()))
    return ProcessesFacts(read, gpus, answer["hidden"], answer["left_out"], others, answer.get("own_only", False))


def _questions(cluster: Cluster, settings: Settings, _: float) -> Questions:
    target = settings.target or Target()
    variables: list[JsonValue] = [*sorted({one.rank for one in LAUNCHERS})]
    arguments: JsonValue = {"rank_variables": variables, "match": target.match, "launchers": _LAUNCHERS.pattern}
    return {name: (replace(PROCESSES, arguments=arguments),) for name in cluster.names}


FACTS = (Fact(ProcessesFacts, (PROCESSES,), processes, FINDING, questions=_questions),)


# mpirun -np 16 --hostfile hosts python3 train.py | /usr/bin/orted -mca ess env | srun -N 2 python3 train.py
# /usr/bin/python3 /usr/local/bin/torchrun --nnodes 2 train.py | python -u -m torch.distributed.run train.py
_LAUNCHERS = re.compile(
    r"^(?:(?:\S*/)?(?:mpirun|mpiexec(?:\.\w+)?|orterun|prterun|prte|orted|prted|hydra_pmi_proxy|hydra_bstrap_proxy|srun"
    r"|torchrun|deepspeed|horovodrun)"
    r"|\S*python[\d.]* (?:-\w+ )*(?:(?:\S*/)?(?:torchrun|accelerate|deepspeed|horovodrun)"
    r"|-m (?:torch\.distributed\.(?:run|launch)|accelerate\.commands\.launch|deepspeed\.launcher\.\w+"
    r"|horovod\.runner\S*|paddle\.distributed\.launch)))(?: |$)"
)


def is_launcher(process: Process) -> bool:
    """Return whether this is a program that starts ranks, or a daemon of one."""
    return bool(_LAUNCHERS.match(process.command))
