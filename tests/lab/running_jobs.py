"""Jobs that run on lab hosts for as long as a block lasts: a training over gloo, and a program of Open MPI.

What a rank prints is in /run/job/rank0.log on its node, with its pid in /run/job/rank0.pid, as the node counts.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shlex import join, quote

from . import namespaces
from .command import Run, begin, listing
from .hosts import Lab
from .layers import compiled
from .node import Node

PROGRAMS = Path(__file__).with_name("jobs")
FOLDER = "/run/job"
PATIENCE = 90  # seconds for all that is only slow on a busy machine


@dataclass(frozen=True)
class Job:
    """A job of one rank per node. `trouble`: what goes wrong in the program itself, as "lock@1:5": rank 1, from step 5.

    `variables` are those of all ranks, `own` those of single ones; `absent` ranks are never started.
    """

    trouble: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    absent: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()  # print into a pipe that nobody reads
    cgroups: Mapping[int, str] = field(default_factory=dict)  # of this machine, that ranks are put into
    torchrun: bool = False
    restarts: int = 0  # that torchrun may make
    mpi: bool = False
    program: str = "train.py"  # of jobs/; under mpirun that is steps.c if it is not named
    steps: int = 3  # that all ranks have made before the job is said to run; 0: their start is enough


class Running:
    """The ranks of a job, each started from here on a node of its own."""

    def __init__(self, lab: Lab, ranks: Mapping[int, Node]) -> None:
        self.lab, self.ranks = lab, ranks

    def log(self, rank: int) -> str:
        path = self.ranks[rank].path(f"{FOLDER}/rank{rank}.log")
        return path.read_text(errors="replace") if path.exists() else ""

    def steps(self) -> dict[int, int]:
        """Return how many steps each rank says that it has made."""
        return {rank: self.log(rank).count(f"[rank{rank}]: step ") for rank in self.ranks}

    def pid(self, rank: int) -> int:
        """Return a rank's pid as its node counts."""
        return int(self.ranks[rank].path(f"{FOLDER}/rank{rank}.pid").read_text())

    def signal(self, rank: int, name: str) -> None:
        self.ranks[rank].sh(f"kill -{name} {self.pid(rank)}")

    def worker(self, rank: int) -> int:
        """Return the pid of a rank's loader."""
        listed = self.ranks[rank].sh(f"cat /proc/{self.pid(rank)}/task/*/children").stdout.split()
        return int(listed[-1])

    def await_steps(self, least: int) -> None:
        """Wait until all ranks have made so many steps."""
        _until(lambda: min(self.steps().values()) >= least, lambda: f"{self.steps()}: {self._said()}")

    def await_words(self, rank: int, pattern: str) -> None:
        """Wait until a rank's log has what a pattern finds."""
        _until(lambda: bool(re.search(pattern, self.log(rank))), self._said)

    def await_ranks(self) -> None:
        """Wait until all ranks have started."""
        files = [node.path(f"{FOLDER}/rank{rank}.pid") for rank, node in self.ranks.items()]
        _until(lambda: all(file.exists() for file in files), self._said)

    def await_processes(self, name: str, least: int = 2) -> None:
        """Wait until so many nodes have a process of that name."""

        def so_many() -> bool:
            found = (any(name in line for line in node.processes().values()) for node in self.lab.nodes)
            return sum(found) >= least

        _until(so_many, self._said)

    def await_stillness(self, seconds: float = 2.0) -> None:
        """Wait until no rank has made a step for so long."""
        seen, since = self.steps(), time.monotonic()
        end = since + PATIENCE
        while time.monotonic() - since < seconds:
            assert time.monotonic() < end, f"the job goes on: {seen}"
            time.sleep(0.1)
            if (now := self.steps()) != seen:
                seen, since = now, time.monotonic()

    def _said(self) -> str:
        return "\n".join(self.log(rank)[-2000:] for rank in self.ranks)


def _until(is_so: Callable[[], bool], why: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"not within {PATIENCE} s: {why()}")
        time.sleep(0.05)


def prepare(lab: Lab, interpreter: Mapping[str, Path]) -> None:
    """Make the nodes anew with the programs that run as jobs, and these folders of this interpreter.

    Their kernel log is empty: it would be this machine's, with what others do.
    """
    lab.remake(*lab.nodes, real={**interpreter, **{str(folder).lstrip("/"): folder for folder in _sites()}})
    steps = compiled("steps.c", "-g", compiler="mpicc")
    for node in lab.nodes:
        for program in PROGRAMS.glob("*.py"):
            node.write(f"{FOLDER}/{program.name}", program.read_text())
        node.write("/usr/local/bin/steps", steps, 0o755)
        for name in ("dmesg", "journalctl"):
            node.write(f"/usr/local/bin/{name}", "#!/bin/sh\n", 0o755)


def _sites() -> set[Path]:
    """Return where the packages are that the programs need, as far as they are installed."""
    found = map(find_spec, ("torch", "mpi4py"))
    return {Path(one.origin).parents[1] for one in found if one and one.origin}


def triaged(lab: Lab, *argv: str) -> Run:
    """Run ncheck triage on the head over the first three nodes."""
    listing(lab, lab.names[:3])
    return begin(lab, "triage", "nodes.txt", "-o", "json", *argv).wait(PATIENCE)


@contextmanager
def running(lab: Lab, job: Job) -> Iterator[Running]:
    """Run a job on the first nodes, one rank on each, until the block ends."""
    nodes = dict(enumerate(lab.nodes[:3]))
    with ExitStack() as stack:
        if job.mpi:
            stack.enter_context(_started(nodes[0], _mpirun(nodes, job), "mpirun"))
        else:
            for rank in sorted(set(nodes) - set(job.absent)):
                stack.enter_context(_started(nodes[rank], _rank(rank, job), f"rank{rank}", job.cgroups.get(rank, "")))
        run = Running(lab, {rank: node for rank, node in nodes.items() if rank not in job.absent})
        if job.steps:
            run.await_steps(job.steps)
        yield run


@contextmanager
def _started(node: Node, script: str, name: str, cgroup: str = "") -> Iterator[None]:
    """Run a script on a node with its output in a file there; end it and all that it started."""
    logged = f"mkdir -p {FOLDER}; cd {FOLDER}; exec >{name}.log 2>&1; {script}"
    joins = f"echo $$ >{cgroup}/cgroup.procs; " if cgroup else ""
    words = join(namespaces.enter(node.pid, ["bash", "-c", logged], rooted=True))
    process = subprocess.Popen(["bash", "-c", f"{joins}exec {words}"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _rank(rank: int, job: Job) -> str:
    variables = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29500", "TROUBLE": job.trouble, "PYTHONDONTWRITEBYTECODE": "1",
        **({} if job.torchrun else {"RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": "0"}),
        **job.variables, **job.own.get(rank, {}),
    }  # fmt: skip
    words = [sys.executable]
    if job.torchrun:
        words += ["-m", "torch.distributed.run", "--nnodes=3", "--nproc-per-node=1", f"--node-rank={rank}",
                  "--master-addr=10.77.0.1", "--master-port=29500", f"--max-restarts={job.restarts}"]  # fmt: skip
    words.append(job.program)
    line = " ".join(["env", "-i", *(quote(f"{name}={value}") for name, value in variables.items()), *words])
    return f"{line} | sleep 1000000" if rank in job.unread else f"exec {line}"


def _mpirun(nodes: Mapping[int, Node], job: Job) -> str:
    exports = {"TROUBLE": job.trouble, "OMPI_MCA_mpi_yield_when_idle": "1", **job.variables}
    options = [f"-x {name}" for name in exports]
    hosts = ",".join(node.name for node in nodes.values())
    given = " ".join(quote(f"{name}={value}") for name, value in exports.items())
    name = "rank$OMPI_COMM_WORLD_RANK"
    python = f"PYTHONPATH={':'.join(map(str, _sites()))} exec {sys.executable} {job.program}"
    runs = python if job.program != "train.py" else "exec steps"
    wrapped = quote(f"cd {FOLDER}; exec >{name}.log 2>&1; echo $$ >{name}.pid; {runs}")
    path = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root"
    return (
        f"exec env -i {path} {given} mpirun --allow-run-as-root -np 3 -H {hosts} {' '.join(options)} bash -c {wrapped}"
    )
