"""nccl-tests' all_reduce_perf over the GPUs of this node: one process with -g N, its table told as it stands.

The table is read on the head. -J is not asked for: it makes a file, and writes the whole environment into it.
"""

import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.nccl_job import child_environment
from ncheck.agent.answers.tools import NCCL_TESTS, path_of
from ncheck.agent.commands import run
from ncheck.agent.tasks.counters import carried, counters

# NCCL's own lines go to standard error, out of the middle of the table's.
_HEARD = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "NCCL_DEBUG_FILE": "/dev/stderr"}
_MOST_TOLD = 65536  # characters of each stream that travel

READS = ("all_reduce_perf -g N, where the probe is nccl-tests: its table; /sys/class/*/*/statistics before and after",)


def answer(sources, arguments, timeout):
    """Return this node's part; "output" is what the program said: see answers/__init__.py."""
    environment = child_environment(sources.job.environment, arguments.get("variables") or {}, _HEARD)
    path = next(filter(None, (path_of(name, environment) for name in NCCL_TESTS)), None)
    if path is None:
        raise MissingError("no all_reduce_perf on the PATH of the job's environment: nccl-tests is not there")
    argv = [path, *arguments["options"], "-g", str(arguments["ranks"][0])]
    before, started = counters(), time.monotonic()
    said = run(argv, min(arguments["timeout"], timeout), environment, tail=True)
    return {
        "rows": [], "carried": carried(before, counters(), arguments.get("planned") or ()), "version": "",
        "library": path, "used": [], "log": [], "failure": None, "start": None, "left": [],
        "output": program_output(said, time.monotonic() - started),
    }  # fmt: skip


def program_output(said, seconds):
    """Return what a program printed and how it ended; of long output only the end."""
    return {
        "stdout": said.get("stdout", "")[-_MOST_TOLD:], "stderr": said.get("stderr", "")[-_MOST_TOLD:],
        "exit_status": said.get("exit_status"), "status": said["status"], "reason": said.get("reason", ""),
        "seconds": round(seconds, 3),
    }  # fmt: skip
