"""Slurm's maintenance reservations, asked once, from this machine: slurmctld would be flooded if all nodes asked."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ncheck.expression import expression
from ncheck.facts.login import LoginFacts
from ncheck.facts.maintenance import RESERVATIONS
from ncheck.model.evidence import Evidence, JsonValue, Note, Reply, Status
from ncheck.text import printable
from ncheck.this_machine.origin import user_name
from ncheck.this_machine.process import end

if TYPE_CHECKING:
    from subprocess import Popen

    from typing_extensions import Self

    from ncheck.model.cluster import Cluster
    from ncheck.model.node import Node
    from ncheck.settings import Settings

ARGV = ("scontrol", "-o", "show", "reservation")
PATIENCE = 2.0  # seconds since it was started: without a controller or DNS, scontrol waits for a minute
MOST = 1024  # reservations: some sites make one for each node
_READING = 0.1  # seconds in which at least its output is read, however long the phases took

# 1795722466
_SECONDS = expression(r"\d{1,12}", re.ASCII)


class Slurm:
    """scontrol, which runs beside the phases of a run, so that a run hardly waits for it. It ends with the run.

    Where Slurm does not answer, that is no trouble of the nodes: many machines have its programs and no controller, or
    that of other nodes; and inside of a job Slurm itself keeps the job out of a reservation.
    """

    def __init__(self, nodes: Sequence[Node], settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self.job, self.began = _job(environ), time.monotonic()
        self.process: Popen[bytes] | None = None
        self.why_not = _why_not(nodes, settings)
        if self.why_not:
            return
        from subprocess import DEVNULL, PIPE, Popen

        # scontrol writes local time, in the format that a variable names
        environ = {**environ, "TZ": "UTC0", "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"}
        try:
            self.process = Popen(
                ARGV, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
            )  # fmt: skip
        except FileNotFoundError:
            self.why_not = "no scontrol on this machine"
        except OSError as error:
            self.why_not = f"scontrol on this machine: {error}"

    def __enter__(self) -> Self:
        return self

    def evidence(self, cluster: Cluster) -> Iterator[Evidence]:
        """Yield the same answer for each node that was reached."""
        answer = self._answer()
        for node, login in ((name, facts.login) for name, facts in cluster.facts(LoginFacts).items()):
            if not login.reached:
                continue
            if isinstance(answer, Note):
                yield Evidence(node, login, notes={RESERVATIONS.key: answer})
            else:
                yield Evidence(node, login, replies={RESERVATIONS.key: answer})

    def _answer(self) -> Reply | Note:
        if not self.process:
            return Note(self.why_not)
        from subprocess import TimeoutExpired

        try:
            output = self.process.communicate(timeout=max(_READING, self.began + PATIENCE - time.monotonic()))
        except TimeoutExpired:
            return Note("scontrol on this machine: no answer")
        stdout, stderr = (stream.decode("utf-8", "backslashreplace") for stream in output)
        if self.process.returncode != 0:
            words = printable(" ".join(stderr.split()), 300) or f"exit status {self.process.returncode}"
            return Note(f"scontrol on this machine: {words}")
        lines = [line for line in stdout.splitlines() if "MAINT" in line]
        value: JsonValue = {"lines": [*lines[:MOST]], "now": time.time(), "user": user_name(os.getuid()),
                            "job": self.job}  # fmt: skip
        return Reply(Status.OK, value=value, truncated=len(lines) > MOST)

    def __exit__(self, *_: object) -> None:
        if self.process:
            end(self.process, patience=0.0, after_term=0.0)
            for stream in filter(None, (self.process.stdout, self.process.stderr)):
                stream.close()


def _why_not(nodes: Sequence[Node], settings: Settings) -> str:
    """Return why Slurm is not asked. Nodes that examine themselves may be thousands at the same time."""
    if settings.run.rehearsal:
        return "a rehearsal asks no Slurm"
    if settings.run.ranks:
        return "the job has been started already"
    return "Slurm is not asked where a machine examines itself" if all(node.local for node in nodes) else ""


def _job(environ: Mapping[str, str]) -> JsonValue:
    """Return the job that ncheck runs in: when it ends, where Slurm says so, and its reservation."""
    if not environ.get("SLURM_JOB_ID"):
        return None
    ends = environ.get("SLURM_JOB_END_TIME", "")
    return {
        "ends": float(ends) if _SECONDS.fullmatch(ends) else None,
        "reservation": environ.get("SLURM_JOB_RESERVATION", ""),
    }
