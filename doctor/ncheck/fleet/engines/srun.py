"""Nodes of a Slurm allocation, by srun in place of ssh: one step with one task per node, which carries all streams.

Slurm ends a whole step when it cannot start it on one node. So nothing is sent before every task has started; a step
that lost a node is started again without it. What Slurm says of a node is a finding of that node; trouble with
slurmctld or srun itself is a finding of none.
"""

from __future__ import annotations

import os
import shlex
import threading
import time
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from ncheck.errors import SettingsError
from ncheck.fleet.engine import NotConnectedError
from ncheck.fleet.engines.step import SrunStep, StepStream
from ncheck.hostlist import slurm_list, unfold
from ncheck.model.evidence import Cause, Login
from ncheck.ssh.child import NotStartedError
from ncheck.text import printable
from ncheck.this_machine.origin import user_name
from ncheck.this_machine.process import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ncheck.model.node import Node
    from ncheck.settings import JobEnvironment, Settings

MOST_STARTS = 3  # of a step that loses nodes
PATIENCE = 10.0  # seconds for slurmctld to answer a question, but no longer than a login may take

# One task on each node, which sees all GPUs and CPUs that the job has there. It may run while other steps do.
_OPTIONS = (
    "--label", "--verbose", "--ntasks-per-node=1", "--mpi=none", "--chdir=/", "--input=all", "--export=ALL",
    "--kill-on-bad-exit=0", "--wait=0", "--cpu-bind=none", "--mem=0", "--job-name=ncheck",
)  # fmt: skip
# As variables, which a release of Slurm that does not know them ignores.
_VARIABLES = {"SLURM_OVERLAP": "1", "SLURM_GPU_BIND": "none"}
# What srun needs of the job's variables; the others are options in disguise (SLURM_NTASKS, SLURM_GPUS_PER_TASK).
_KEPT = ("SLURM_JOB_", "SLURM_JOBID", "SLURM_CONF", "SLURM_CLUSTER", "SLURM_JWT", "SLURM_WORKING_CLUSTER")
# Slurm's states of nodes on which no step starts; those that end in * do not respond.
_DOWN = ("down", "fail", "error", "unknown", "inval", "powered_down", "powering_down", "powering_up", "future")


class SrunEngine:
    """Opens streams to the nodes of the allocation; those with one environment of the job share a step.

    Raises SettingsError outside of an allocation, and where there is no srun.
    """

    name = "srun"

    def __init__(self, nodes: Iterable[Node], settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self.job = job_id(environ, settings.named("via", "srun"))
        members: dict[JobEnvironment, list[str]] = {}
        for node in nodes:
            members.setdefault(settings.environment_of(node.name), []).append(node.name)
        self.launches = [_Launch(names, self.job, settings, environ) for names in members.values()]
        self.launch_of = {name: launch for launch in self.launches for name in launch.names}

    def connect(self, node: Node, timeout: float) -> StepStream:
        """Start the step where that was not done yet, and return this node's part of it. Raises NotConnectedError."""
        return self.launch_of[node.name].stream(node.name, timeout)


def job_id(environ: Mapping[str, str], via: str) -> str:
    """Return the id of the job that this process is in. Raises SettingsError."""
    found = environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID") or ""
    if not found.isdecimal():
        raise SettingsError(
            f"{via}: not in an allocation (SLURM_JOB_ID is not set); start one: salloc -N 2 ncheck --via srun"
        )
    return found


def command(names: Sequence[str], seconds: float) -> list[str]:
    """Return srun with its options, for these nodes. Slurm gives up after `seconds` where it cannot make the step."""
    count = str(len(names))
    return [
        "srun", *_OPTIONS, f"--nodes={count}", f"--ntasks={count}", f"--nodelist={slurm_list(names)}",
        f"--immediate={max(1, round(seconds))}",
    ]  # fmt: skip


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of srun, which the tasks get too: all but what would be options of this srun."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("SLURM_", "SLURMD_", "SRUN_")) or name.startswith(_KEPT)
    }
    return {**kept, **_VARIABLES}


class _Launch:
    """The step of those nodes that have the same environment of the job, once somebody asks for a stream of it."""

    def __init__(self, names: Sequence[str], job: str, settings: Settings, environ: Mapping[str, str]) -> None:
        self.names, self.job, self.settings = tuple(names), job, settings
        self.environ = variables(environ)
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.begun = False
        self.step: SrunStep | None = None
        self.failed: dict[str, Login] = {}
        self.addresses: dict[str, str] = {}

    def stream(self, name: str, timeout: float) -> StepStream:
        with self.lock:
            if not self.begun:
                self.begun, self.began = True, time.monotonic()
                self._start(timeout)
        if name in self.failed or self.step is None:
            raise NotConnectedError(self.failed[name])
        login = replace(
            self._login(name), reached=True, user=user_name(os.getuid()), seconds=time.monotonic() - self.began,
            fix=f"srun --overlap --nodes=1 --nodelist={shlex.quote(name)} true",
        )  # fmt: skip
        return StepStream(self.step, self.step.by_node[name], login)

    def _start(self, timeout: float) -> None:
        """Start the step; where it loses nodes, start it again without them."""
        why, names = "", [""]
        for _ in range(MOST_STARTS):
            if not self._look_at_nodes() or not self._left():
                return
            if names == self._left():  # it named no node that the others could do without
                break
            names = self._left()
            try:
                step = SrunStep(command(names, timeout), self.environ, names)
            except NotStartedError as error:
                self._trouble(error.detail, error.fix)
                return
            in_time = step.settled(timeout)
            self._fail(step.not_started())
            if in_time and not step.doomed:
                self.step, step.open = step, len(self._left())
                return
            why = step.complaint()
            if not in_time:
                why = why or f"no task started within {timeout:.0f} s"
                self._fail_silent(step, timeout)
            step.close(patience=0.0)
        self._trouble(f"srun could not start the step: {why or 'it does not say why'}")

    def _left(self) -> list[str]:
        return [name for name in self.names if name not in self.failed]

    def _fail_silent(self, step: SrunStep, timeout: float) -> None:
        """Give up the nodes that did not start in time, unless none did: then it is not theirs."""
        started = {name for name, task in step.by_node.items() if task.started}
        silent = [name for name in step.nodes if name not in started]
        if started and timeout >= self.settings.connect_timeout:  # less, and the run's deadline is near
            self._fail(dict.fromkeys(silent, f"Slurm did not start the task there within {timeout:.0f} s"))

    def _look_at_nodes(self) -> bool:
        """Ask slurmctld which nodes are still of this job, and up; return False where it does not answer."""
        squeue = self._asked("squeue", "--noheader", "--jobs", self.job, "--format=%N")
        sinfo = self._asked("sinfo", "--noheader", "--Node", "--nodes", slurm_list(self.names), "--format=%N|%T|%o|%E")
        if squeue is None or sinfo is None:
            return False
        try:
            of_job = frozenset(unfold(squeue.strip())) if squeue.strip() else frozenset(self.names)
        except ValueError:
            of_job = frozenset(self.names)
        # node03|down*|10.77.0.3|Not responding
        for line in sinfo.splitlines():
            name, state, address, reason = (*line.split("|", 3), "", "", "")[:4]
            self.addresses[name] = address
            says = printable(f"Slurm says {state}" + (f" ({reason})" if reason not in ("none", "") else ""), 300)
            if state.endswith("*") or state.startswith(_DOWN):
                self._fail({name: says})
            elif name not in of_job:
                self._fail({name: f"it is no longer in job {self.job}; {says}"})
        return True

    def _asked(self, *argv: str) -> str | None:
        """Return what a program of Slurm says; None where it fails, which is noted."""
        patience = min(PATIENCE, self.settings.connect_timeout)
        try:
            done = run(argv, patience, self.environ)
        except OSError as error:
            words = str(error)
        else:
            if done.exit_status == 0 and not done.late:
                return done.stdout
            words = f"no answer within {patience:.0f} s" if done.late else " ".join(done.stderr.split())
        self._trouble(f"{argv[0]}: {words}", "scontrol ping")
        return None

    def _fail(self, lost: Mapping[str, str]) -> None:
        """Note nodes on which the step does not start, with the reasons."""
        for name, reason in lost.items():
            if name in self.names and name not in self.failed:
                self.failed[name] = replace(
                    self._login(name), cause=Cause.STEP_NOT_STARTED, detail=printable(reason, 1000),
                    fix=f"scontrol show node {shlex.quote(name)}",
                )  # fmt: skip

    def _trouble(self, detail: str, fix: str = "") -> None:
        """Note what is the fault of no node, for all that have no other reason."""
        for name in self._left():
            self.failed[name] = replace(
                self._login(name), cause=Cause.TRANSPORT, detail=printable(detail, 1000),
                fix=fix or f"srun --jobid={self.job} --overlap hostname",
            )  # fmt: skip

    def _login(self, name: str) -> Login:
        try:
            address = str(ip_address(self.addresses.get(name, "")))
        except ValueError:
            address = ""  # Slurm reaches it by a name
        return Login(reached=False, transport=SrunEngine.name, address=address)
