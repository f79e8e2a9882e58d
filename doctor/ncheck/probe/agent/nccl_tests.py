"""A program of nccl-tests over the GPUs of this node: one process with -g N, its table unchanged.

The table is parsed on the head. -J is not used: it makes a file, and writes the whole environment into it.
"""

import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.nccl_job import child_environment
from ncheck.agent.answers.tools import PROGRAMS, WITH_MPI, nccl_tests
from ncheck.agent.commands import run
from ncheck.agent.traffic import carried, counters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.commands import Reply
    from ncheck.agent.sources import Arguments, Sources

# NCCL's own lines go to standard error, so that they do not interrupt the table.
_LOGGED = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "NCCL_DEBUG_FILE": "/dev/stderr"}
_MOST_OUTPUT = 65536  # characters of each stream that travel

READS = (
    "all_reduce_perf -g N or its like, where the probe is nccl-tests: its table",
    "/sys/class/*/*/statistics before and after",
)


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return the result of this node; "output" is that of the program: see step.py."""
    environment = child_environment(sources.job.environment, arguments.get("variables") or {}, _LOGGED)
    name = PROGRAMS[arguments["op"]]
    builds = list(nccl_tests(environment))
    if not builds:
        raise MissingError("no all_reduce_perf on the PATH of the job's environment: nccl-tests is not there")
    found = [paths[each] for paths in builds for each in (name, name + WITH_MPI) if each in paths]
    if not found:
        raise MissingError("no {} beside all_reduce_perf".format(name))
    argv = [found[0], *arguments["options"], "-g", str(arguments["ranks"][0])]
    before, started = counters(), time.monotonic()
    done = run(argv, min(arguments["timeout"], timeout), environment, tail=True)
    return {
        "rows": [], "carried": carried(before, counters(), arguments.get("planned") or ()), "version": "",
        "library": found[0], "used": [], "log": [], "failure": None, "start": None, "left": [],
        "output": program_output(done, time.monotonic() - started),
    }  # fmt: skip


def program_output(done: "Reply", seconds: float) -> "Dict[str, Any]":
    """Return what a program printed and how it ended; of long output only the end."""
    return {
        "stdout": done.get("stdout", "")[-_MOST_OUTPUT:], "stderr": done.get("stderr", "")[-_MOST_OUTPUT:],
        "exit_status": done.get("exit_status"), "status": done["status"], "reason": done.get("reason", ""),
        "seconds": round(seconds, 3),
    }  # fmt: skip
