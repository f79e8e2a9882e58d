"""Slurm's maintenance reservations, asked once, from this machine: slurmctld would be flooded if all nodes asked."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ncheck.expression import expression
from ncheck.facts.login import LoginFacts
from ncheck.facts.maintenance import RESERVATIONS
from ncheck.model.evidence import Evidence, JsonValue, Note, Reply, Status
from ncheck.origin import user_name
from ncheck.process import run
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.settings import Settings

ARGV = ("scontrol", "-o", "show", "reservation")
PATIENCE = 10.0  # seconds
MOST = 1024  # reservations: some sites make one for each node

# 1795722466
_SECONDS = expression(r"\d{1,12}", re.ASCII)


def reservations_from_here(
    cluster: Cluster, settings: Settings, seconds: float, environ: Mapping[str, str] = os.environ
) -> Iterator[Evidence]:
    """Yield the same answer for each node that was reached."""
    logins = {name: facts.login for name, facts in cluster.facts(LoginFacts).items() if facts.login.reached}
    if not logins:
        return
    answer = _why_not(cluster, settings) or _asked(min(PATIENCE, settings.connect_timeout, seconds), environ)
    for node, login in logins.items():
        if isinstance(answer, Note):
            yield Evidence(node, login, notes={RESERVATIONS.key: answer})
        else:
            yield Evidence(node, login, replies={RESERVATIONS.key: answer})


def _why_not(cluster: Cluster, settings: Settings) -> Note | None:
    """Return why Slurm is not asked. Nodes that examine themselves may be thousands at the same time."""
    if settings.rehearsal:
        return Note("a rehearsal asks no Slurm")
    if settings.ranks:
        return Note("the job has been started already")
    if all(node.local for node in cluster.nodes):
        return Note("Slurm is not asked where a machine examines itself")
    return None


def _asked(seconds: float, environ: Mapping[str, str]) -> Reply | Note:
    """Ask Slurm. Where it does not answer, that is no trouble of the nodes: many machines have its programs and no
    controller, or that of other nodes; and inside of a job Slurm itself keeps the job out of a reservation.
    """
    seconds, job = max(1.0, seconds), _job(environ)
    # scontrol writes local time, in the format that a variable names
    environ = {**environ, "TZ": "UTC0", "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"}
    try:
        done = run(ARGV, seconds, environ)
    except FileNotFoundError:
        return Note("no scontrol on this machine")
    except OSError as error:
        return Note(f"scontrol on this machine: {error}")
    if done.late or done.exit_status != 0:
        words = printable(" ".join(done.stderr.split()), 300) or f"exit status {done.exit_status}"
        words = f"no answer within {seconds:.0f} s" if done.late else words
        return Note(f"scontrol on this machine: {words}")
    lines = [line for line in done.stdout.splitlines() if "MAINT" in line]
    value: JsonValue = {"lines": [*lines[:MOST]], "now": time.time(), "user": user_name(os.getuid()), "job": job}
    return Reply(Status.OK, value=value, seconds=done.seconds, truncated=len(lines) > MOST)


def _job(environ: Mapping[str, str]) -> JsonValue:
    """Return the job that ncheck runs in: when it ends, where Slurm says so, and its reservation."""
    if not environ.get("SLURM_JOB_ID"):
        return None
    ends = environ.get("SLURM_JOB_END_TIME", "")
    return {
        "ends": float(ends) if _SECONDS.fullmatch(ends) else None,
        "reservation": environ.get("SLURM_JOB_RESERVATION", ""),
    }
