"""Which rank this process is, from the variables that its launcher set.

The innermost launcher wins: LAUNCHERS lists those that start others' processes last, so the first one whose variables
are all there is the one that started this process. Standard library only: this runs inside the training job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ncheck.errors import NcheckError
from ncheck.text import printable

LARGEST = 1 << 20  # ranks, nodes

_LAST_PORT = 65535
_LAST_STEP = 0xFFFFFFF0  # Slurm's steps above this number are no steps of srun: batch script, extern, interactive shell


class LauncherVariablesError(NcheckError):
    """The launcher's variables are incomplete, wrong or contradict each other. The message names them."""


@dataclass(frozen=True)
class Rank:
    """What a process knows about its place in the job. None, "" and () are what the launcher does not tell."""

    rank: int  # 0 <= rank < size
    size: int
    local_rank: int | None = None
    local_size: int | None = None
    node: int | None = None  # index of this node in the job
    nodes: int | None = None
    node_name: str = ""  # the launcher's own name of this host
    hosts: tuple[str, ...] = ()  # in the order of ranks
    master: str = ""  # name or address where rank 0 is
    master_port: int | None = None
    launcher: str = ""  # "" is a single process that no launcher started
    job: str = ""  # the same on all ranks, and another in another job
    attempt: int = 0
    named: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # field -> "RANK=3"
    layout: tuple[int, ...] = ()  # index into `hosts` for each rank; () unknown

    def host_of(self, rank: int) -> str:
        """Return the host on which that rank should be; "" if the variables do not say so with certainty."""
        if len(self.hosts) == 1 and (self.nodes == 1 or self.local_size == self.size):
            return self.hosts[0]
        return self.hosts[self.layout[rank]] if 0 <= rank < len(self.layout) else ""


@dataclass(frozen=True)
class Launcher:
    """The variables of a launcher. Where several are named, the first that is set counts."""

    name: str
    marks: tuple[str, ...]  # all of them are set in each process that it starts
    rank: str
    size: str
    local_rank: str = ""
    local_size: str = ""
    node: str = ""
    nodes: str = ""
    node_name: str = ""
    master: tuple[str, ...] = ("MASTER_ADDR",)
    master_port: tuple[str, ...] = ("MASTER_PORT",)
    job: tuple[str, ...] = ()
    attempt: str = ""


_TORCH = Launcher(
    "torchrun",
    ("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE"),
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    job=("TORCHELASTIC_RUN_ID",),
    attempt="TORCHELASTIC_RESTART_COUNT",
)

_VARIABLES = Launcher(
    "variables", ("RANK", "WORLD_SIZE"), "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "NNODES"
)

_SRUN = Launcher(
    "srun",
    ("SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"),
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID",
    "",
    "SLURM_NODEID",
    "SLURM_STEP_NUM_NODES",
    "SLURMD_NODENAME",
    job=("SLURM_JOB_ID", "SLURM_STEP_ID"),
    attempt="SLURM_RESTART_COUNT",
)

# From the innermost to the outermost.
LAUNCHERS: tuple[Launcher, ...] = (
    replace(_TORCH, name="accelerate", marks=("ACCELERATE_MIXED_PRECISION", *_TORCH.marks)),
    _TORCH,
    Launcher(
        "paddle",
        ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
        "PADDLE_TRAINER_ID",
        "PADDLE_TRAINERS_NUM",
        "PADDLE_RANK_IN_NODE",
        "PADDLE_LOCAL_SIZE",
        "",
        "PADDLE_NNODES",
        master=("PADDLE_MASTER", "MASTER_ADDR"),
        job=("PADDLE_JOB_ID",),
    ),
    Launcher(
        "deepspeed",
        ("CROSS_RANK", "CROSS_SIZE", "LOCAL_SIZE", "RANK", "WORLD_SIZE"),
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_SIZE",
        "CROSS_RANK",
        "CROSS_SIZE",
    ),
    replace(_VARIABLES, name="oneflow", marks=("GLOG_log_dir", *_VARIABLES.marks)),
    _VARIABLES,
    Launcher(
        "horovodrun",
        ("HOROVOD_RANK", "HOROVOD_SIZE"),
        "HOROVOD_RANK",
        "HOROVOD_SIZE",
        "HOROVOD_LOCAL_RANK",
        "HOROVOD_LOCAL_SIZE",
        "HOROVOD_CROSS_RANK",
        "HOROVOD_CROSS_SIZE",
        "HOROVOD_HOSTNAME",
        master=("MASTER_ADDR", "HOROVOD_GLOO_RENDEZVOUS_ADDR"),
        master_port=("MASTER_PORT", "HOROVOD_GLOO_RENDEZVOUS_PORT"),
    ),
    Launcher(
        "Open MPI",
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "",
        "OMPI_MCA_orte_num_nodes",
        "PMIX_HOSTNAME",
        job=("OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE"),
    ),
    Launcher(
        "Intel MPI",
        ("I_MPI_HYDRA_UUID", "MPI_LOCALNRANKS", "PMI_RANK", "PMI_SIZE"),
        "PMI_RANK",
        "PMI_SIZE",
        "MPI_LOCALRANKID",
        "MPI_LOCALNRANKS",
        "HYDRA_BSTRAP_NODE_ID",
        "",
        "HYDRA_BSTRAP_LOCALHOST",
        job=("I_MPI_HYDRA_UUID",),
    ),
    Launcher(
        "MPICH",
        ("MPI_LOCALNRANKS", "PMI_RANK", "PMI_SIZE"),
        "PMI_RANK",
        "PMI_SIZE",
        "MPI_LOCALRANKID",
        "MPI_LOCALNRANKS",
        "",
        "",
        "PMI_HOSTNAME",
    ),
    _SRUN,
)


def read_rank(environ: Mapping[str, str]) -> Rank:
    """Return the place of this process in its job.

    Raises LauncherVariablesError if the variables of its launcher are wrong, incomplete or contradict each other.
    """
    present = [launcher for launcher in LAUNCHERS if _started(launcher, environ)]
    if not present:
        _refuse_half(environ)
        return Rank(0, 1)
    inner = present[0]
    if inner is _VARIABLES:
        outer = next((launcher for launcher in present[1:] if _number(environ, launcher.size, least=1) > 1), None)
        if outer and _number(environ, "WORLD_SIZE", least=1) == 1:
            inner = outer  # a job of one rank is no claim: these are left from another one
        elif outer:
            _refuse_contradiction(environ, outer)
    return _read(environ, inner)


def _started(launcher: Launcher, environ: Mapping[str, str]) -> bool:
    if not all(environ.get(name) for name in launcher.marks):
        return False
    return launcher is not _SRUN or _number(environ, "SLURM_STEP_ID", most=0xFFFFFFFF) < _LAST_STEP


def _refuse_half(environ: Mapping[str, str]) -> None:
    """Refuse a RANK without WORLD_SIZE, and the other way round, where no launcher says more."""
    for given, missing in (("WORLD_SIZE", "RANK"), ("RANK", "WORLD_SIZE")):
        if environ.get(given) and not environ.get(missing) and _number(environ, given) > (given == "WORLD_SIZE"):
            raise LauncherVariablesError(f"{missing} is not set, but {_shown(environ, given)} is")


def _refuse_contradiction(environ: Mapping[str, str], outer: Launcher) -> None:
    """Refuse bare RANK and WORLD_SIZE that cannot be of the same job as the launcher's.

    A WORLD_SIZE above the launcher's size is legal: a script that starts several ranks per task sets it.
    """
    rank, size = _number(environ, "RANK"), _number(environ, "WORLD_SIZE", least=1)
    outer_rank, outer_size = _number(environ, outer.rank), _number(environ, outer.size, least=1)
    if size == outer_size and rank != outer_rank:
        names = ("RANK", outer.rank)
    elif size < outer_size and rank == outer_rank:
        names = ("WORLD_SIZE", outer.size)
    else:
        return
    first, second = (_shown(environ, name) for name in names)
    raise LauncherVariablesError(f"{first} contradicts {second} of {outer.name}: unset {names[0]}, or set both alike")


def _read(environ: Mapping[str, str], launcher: Launcher) -> Rank:
    named: dict[str, str] = {}

    def text(key: str, names: Iterable[str]) -> str:
        name = next((name for name in names if name and environ.get(name)), "")
        if name:
            named[key] = _shown(environ, name)
        return environ[name] if name else ""

    def number(key: str, name: str, least: int = 0, most: int = LARGEST) -> int | None:
        if not text(key, (name,)):
            return None
        return _number(environ, name, least, most)

    rank, size = number("rank", launcher.rank), number("size", launcher.size, least=1)
    assert rank is not None  # noqa: S101  a mark of every launcher
    assert size is not None  # noqa: S101  the same
    master = text("master", launcher.master)
    port_name = next((name for name in launcher.master_port if environ.get(name)), "")
    found = Rank(
        rank=rank,
        size=size,
        local_rank=number("local_rank", launcher.local_rank),
        local_size=number("local_size", launcher.local_size, least=1),
        node=number("node", launcher.node),
        nodes=number("nodes", launcher.nodes, least=1),
        node_name=text("node_name", (launcher.node_name,)),
        master=master,
        master_port=number("master_port", port_name, least=1, most=_LAST_PORT),
        launcher=launcher.name,
        job=" ".join(f"{name}={environ[name]}" for name in launcher.job if _tells(environ, name)),
        attempt=number("attempt", launcher.attempt) or 0,
        named=named,
    )
    if launcher is _SRUN:
        found = _with_slurm_hosts(found, environ, named)
    _refuse_outside(found, named)
    return found


def _tells(environ: Mapping[str, str], name: str) -> bool:
    """Return whether a job id tells one job from another: torchrun says "none" where the user gave no --rdzv-id."""
    return bool(environ.get(name)) and not (name == "TORCHELASTIC_RUN_ID" and environ[name] == "none")


def _refuse_outside(rank: Rank, named: Mapping[str, str]) -> None:
    pairs = (("rank", "size"), ("local_rank", "local_size"), ("node", "nodes"))
    for index, count in pairs:
        number, limit = getattr(rank, index), getattr(rank, count)
        if number is not None and limit is not None and number >= limit:
            raise LauncherVariablesError(
                f"{named[index]} does not fit {named[count]}: it must be from 0 to {limit - 1} ({rank.launcher})"
            )


def _with_slurm_hosts(rank: Rank, environ: Mapping[str, str], named: dict[str, str]) -> Rank:
    """Add what Slurm says of the other nodes. What contradicts this rank's own place is left out."""
    hosts = slurm_hosts(environ.get("SLURM_STEP_NODELIST", ""))
    if not hosts or len(hosts) != (rank.nodes or len(hosts)):
        return rank
    named["hosts"] = _shown(environ, "SLURM_STEP_NODELIST")
    counts = slurm_counts(environ.get("SLURM_STEP_TASKS_PER_NODE", ""))
    if rank.node is not None and rank.node < len(counts) == len(hosts):
        named["local_size"] = _shown(environ, "SLURM_STEP_TASKS_PER_NODE")
        rank = replace(rank, local_size=counts[rank.node])
    master = rank.master or hosts[0]
    named.setdefault("master", named["hosts"])
    layout = _layout(counts, environ.get("SLURM_DISTRIBUTION", ""))
    if len(counts) != len(hosts) or len(layout) != rank.size or layout[rank.rank] != rank.node:
        layout = ()
    return replace(rank, hosts=hosts, master=master, layout=layout)


def _layout(counts: tuple[int, ...], distribution: str) -> tuple[int, ...]:
    """Return the index of the node of each rank. "" is block, or cyclic with one task per node, which is the same."""
    kind = re.split("[:,]", distribution.lower(), maxsplit=1)[0]
    if kind in {"", "block", "*"}:
        return tuple(node for node, count in enumerate(counts) for _ in range(count))
    if kind == "cyclic":
        turns = range(max(counts, default=0))
        return tuple(node for turn in turns for node, count in enumerate(counts) if turn < count)
    return ()


# as in 4(x2)
_COUNT = re.compile(r"(?P<count>\d{1,7})(?:\(x(?P<times>\d{1,7})\))?", re.ASCII)

# node[01-16,20] in rack1-node[01-16,20],login
_PART = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")

# [01-16,20]
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")

# 01-16
_RANGE = re.compile(r"(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?", re.ASCII)


def slurm_counts(text: str) -> tuple[int, ...]:
    """Return the tasks on each node: "4(x2),3" is (4, 4, 3). () if it is anything else."""
    counts: list[int] = []
    for part in text.split(","):
        found = _COUNT.fullmatch(part)
        if not found or len(counts) + int(found["times"] or 1) > LARGEST:
            return ()
        counts += [int(found["count"])] * int(found["times"] or 1)
    return tuple(counts) if sum(counts) <= LARGEST else ()


def slurm_hosts(text: str) -> tuple[str, ...]:
    """Return the names in Slurm's node list, in its order: "node[01-03,07],login". () if it is anything else.

    (ncheck.hostlist reads more forms, sorts them, and costs 20 ms.)
    """
    names: list[str] = []
    for part in _PART.findall(text):
        names += _unfolded(part)
        if len(names) > LARGEST:
            return ()
    return tuple(names)


def _unfolded(part: str) -> list[str]:
    found = _BRACKETS.search(part)
    if not found:
        return [part.strip()]
    numbers: list[str] = []
    for text in found[1].split(","):
        ends = _RANGE.fullmatch(text)
        if not ends:
            return []
        first, last = ends["first"], ends["last"] or ends["first"]
        if int(last) - int(first) > LARGEST:
            return []
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    rest = _unfolded(part[found.end() :])
    if len(numbers) * len(rest) > LARGEST:
        return []
    return [part[: found.start()] + number + end for number in numbers for end in rest]


def _number(environ: Mapping[str, str], name: str, least: int = 0, most: int = LARGEST) -> int:
    text = environ.get(name, "").strip()
    digits = text.removeprefix("-")
    if not digits.isdecimal() or not digits.isascii():
        raise LauncherVariablesError(f"{_shown(environ, name)} is not a whole number")
    number = int(text) if len(text) <= len(str(1 << 64)) else most + 1
    if not least <= number <= most:
        raise LauncherVariablesError(f"{_shown(environ, name)} must be from {least} to {most}")
    return number


def _shown(environ: Mapping[str, str], name: str) -> str:
    return f"{name}={printable(environ.get(name, ''), 60)}"
