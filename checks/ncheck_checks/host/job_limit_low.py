"""A resource limit of the job is too low

## What it finds
Soft limits of a non-interactive ssh login, as launchers use it, under which a job cannot run: fewer than 1024 open
files (nofile), fewer than 512 processes and threads of one user (nproc; root is exempt), an address space (as) smaller
than the memory of all GPUs or than 4 GiB, less than 7 days of CPU time for each process (cpu), files (fsize) of less
than 1 GiB, a stack of less than 1 MiB, memory of one process (data) of less than 4 GiB. A shell that you open yourself
may have other limits. memlock-limited reports locked memory.
Inside a job, whose number of ranks is known, fewer than 1024 open files are a warning where they are enough for it: 96,
and 4 for each rank and 32 for each GPU of the node.

## Why it matters
1024 open files is the kernel's own default: NCCL and MPI use several for each peer, CUDA dozens for each GPU. Beyond
the limit, connections fail with "Too many open files". A rank has 50 to 100 threads: torch and NCCL stop with "Resource
temporarily unavailable". CUDA maps the memory of all GPUs into the address space of each process. A rank uses several
seconds of CPU time in each second: at the limit the kernel ends it with SIGXCPU. Checkpoints end at the file size.
With a stack of 128 KiB the daemon of Open MPI dies as it starts: "ORTE has lost communication with a remote daemon".

## What to type
The line of the finding, then log in again: it edits the start-up file or the file of PAM that sets the limit, where
one was found. `ssh NODE 'ulimit -a'` shows the limits of a job.
The limits of a container are options of its start: `docker run --ulimit nofile=1048576`. In Slurm, limits of the
submitting shell count too: see PropagateResourceLimits in slurm.conf.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Fix, NodeView, Problem, Severity, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.login_variables import limit_set_to, set_at

MIB = 2**20


@dataclass(frozen=True)
class SoftLimit:
    """One soft limit (None: unlimited), the least that a job needs, and the value to set."""

    name: str  # as in limits.conf
    what: str
    soft: int | None
    least: int
    unit: str = ""
    scale: int = 1
    wanted: str = "unlimited"
    suffices: int | None = None  # this job runs with so many


@node_check("NC605", Severity.ERROR, LimitsFacts, also=(GpuFacts, IdentityFacts, InterpreterFacts, RanksFacts))
def job_limit_low(node: NodeView) -> Iterator[Problem]:
    python = node.maybe(InterpreterFacts)
    contained = isinstance(python, InterpreterFacts) and python.container != ""
    for limit in _limits(node):
        if limit.soft is not None and limit.soft < limit.least:
            has, needs = (f"{number // limit.scale}{limit.unit}" for number in (limit.soft, limit.least))
            fix = limit_set_to(limit.wanted, limit.name, node[LimitsFacts], node.maybe(IdentityFacts))
            if contained and not node[LimitsFacts].set_in.get(limit.name):
                fix = Fix(_in_docker(limit), do=True)
            runs = limit.suffices is not None and limit.soft >= limit.suffices
            job = f"enough for this job, a larger one needs {needs}" if runs else f"a job needs {needs}"
            yield Problem(
                f"{limit.what} ({limit.name}) limited to {has}; {job}",
                fix.line,
                set_at(node[LimitsFacts].set_in.get(limit.name, ())),
                look=fix.look,
                do=fix.do,
                severity=Severity.WARNING if runs else None,
            )


def _limits(node: NodeView) -> Iterator[SoftLimit]:
    limits, gpus, identity = node[LimitsFacts], node.maybe(GpuFacts), node.maybe(IdentityFacts)
    yield SoftLimit("nofile", "open files", limits.open_files, 1024, wanted="1048576", suffices=_files_of_job(node))
    if not isinstance(identity, IdentityFacts) or identity.user_id != 0:
        yield SoftLimit("nproc", "processes and threads", limits.processes, 512)
    memory = sum(gpu.memory_total or 0 for gpu in gpus.gpus) if isinstance(gpus, GpuFacts) else 0
    yield SoftLimit("as", "address space", limits.address_space, max(memory, 4096 * MIB), " MiB", MIB)
    yield SoftLimit("cpu", "CPU time of each process", limits.cpu_seconds, 7 * 24 * 3600, " s")
    yield SoftLimit("fsize", "the size of a file", limits.file_size, 1024 * MIB, " MiB", MIB)
    yield SoftLimit("stack", "the stack of each thread", limits.stack, MIB, " KiB", 1024, wanted="8192")
    yield SoftLimit("data", "memory of each process", limits.data, 4096 * MIB, " MiB", MIB)


def _files_of_job(node: NodeView) -> int | None:
    """Return how many files a rank of this job opens at most; None where the number of ranks is not known."""
    ranks, gpus = node.maybe(RanksFacts), node.maybe(GpuFacts)
    boards = len(gpus.gpus) if isinstance(gpus, GpuFacts) else 0
    return 96 + 4 * ranks.size + 32 * boards if isinstance(ranks, RanksFacts) else None


def _in_docker(limit: SoftLimit) -> str:
    value = "-1" if limit.wanted == "unlimited" else limit.wanted
    return f"start the container again with --ulimit {limit.name}={value}"
