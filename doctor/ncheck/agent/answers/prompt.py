"""Which Python a person gets at a prompt on this node, where the one that a launcher gets has no framework.

The shell of a person runs start-up files that can start other programs, so it is asked only where there is a reason:
the node has GPUs, the interpreter is just the first python3 on the PATH of a plain login, and it has no framework.
"""

import os

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.mpi_daemon import NO_HISTORY, returns_early, shell_of_user
from ncheck.agent.commands import run
from ncheck.agent.files import matching
from ncheck.agent.job import FRAMEWORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Sources

DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_PLACES = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "local/lib/python3*/dist-packages")
_LOOK = (
    "printf '\\nncheck-prompt:%s=%s\\n' python \"$(command -v python3 || command -v python)\" "
    'libraries "$LD_LIBRARY_PATH"'
)
_MARK = "ncheck-prompt:"
_EACH = 5.0  # seconds: conda alone takes one

READS = (
    "where there is a GPU and python3 has no framework: the user's shell, run with -lic, for python3, LD_LIBRARY_PATH",
    "and the line of ~/.bashrc that returns early",
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"shell", "error", "python", "frameworks", "libraries", "start_up"}."""
    job = sources.job
    if job.looking or not job.path or job.how != "python3 on PATH" or job.asked.get("setup"):
        raise MissingError("the job's Python was chosen: a prompt does not matter")
    if not any(map(os.path.exists, DEVICES)):
        raise MissingError("no GPU")
    packages = job.described(timeout)["packages"]
    if any(name.startswith(FRAMEWORKS) for name in packages):
        raise MissingError("the job's Python has a framework")
    return _asked(job, min(_EACH, timeout / 2))


def _asked(job: "JobSetup", timeout: float) -> "Dict[str, Any]":
    shell = shell_of_user()
    path = job.login_environment.get("PATH", os.defpath)  # as it is, with no folder of ours behind it
    reply = run(["env", "PATH=" + path, NO_HISTORY, shell, "-lic", _LOOK], timeout, job.login_environment)
    lines = [line for line in reply.get("stdout", "").splitlines() if line.startswith(_MARK)]
    found = dict(line[len(_MARK) :].split("=", 1) for line in lines)
    python = found.get("python", "")
    return {
        "shell": shell,
        "error": "" if found else reply.get("reason") or "it printed no answer",
        "python": python if os.path.isabs(python) else "",
        "frameworks": _frameworks(python) if os.path.isabs(python) else [],
        "libraries": found.get("libraries", ""),
        "start_up": returns_early(os.path.expanduser("~/.bashrc")),
    }


def _frameworks(python: str) -> "List[str]":
    """Name the frameworks beside an interpreter, which is not run."""
    prefix = os.path.dirname(os.path.dirname(python))
    folders = [folder for place in _PLACES for folder in matching("/" + place, prefix)]
    return [name for name in FRAMEWORKS if any(os.path.isdir(os.path.join(folder, name)) for folder in folders)]
