"""Which copy of NCCL the job's interpreter loads, decided as the dynamic loader would, without importing torch.

torch's libtorch_cuda.so either has NCCL inside or asks for libnccl.so.2, which the loader looks for in: LD_PRELOAD; the
library's DT_RPATH, where it has no DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; the loader's cache; and where all of that
fails torch itself opens the wheel nvidia-nccl. Wheels of torch have carried either kind of path. Those for AMD's GPUs
have a libtorch_hip.so, which asks for librccl.so or librccl.so.1 in the same way.
"""

import os
import re
import sys
import time

from ncheck.agent import loader
from ncheck.agent.answers import nccl_places
from ncheck.agent.commands import run
from ncheck.agent.elf import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Sequence, Tuple, Union

    from ncheck.agent.commands import Environment
    from ncheck.agent.job import JobSetup

    Version = Union[str, Dict[str, str]]  # the version, or {"error"}

TORCH = ("libtorch_cuda.so", "libtorch_cuda_cpp.so", "libtorch_cuda_cu.so", "libtorch_hip.so")
_NAME, _OF_AMD = "libnccl.so.2", "librccl.so.1"
ROCM = "/opt/rocm"
_NOT_THERE = "cannot open shared object"  # the loader's words
_NEW_BASE = 10000  # the major version's place from NCCL 2.9 on
_PATIENCE = 5.0  # seconds for one copy to be opened and asked; on a cold network file system it takes one or two

# Runs in a child of its own, for a library can end the process that opens it. Old interpreters can run it, too.
_ASK = r"""
import ctypes, sys
library, number = ctypes.CDLL(sys.argv[1]), ctypes.c_int()
library.ncclGetVersion(ctypes.byref(number))
both = ("libnccl.so", "librccl.so")
maps = [line for line in open("/proc/self/maps") if any(word in line for word in both)]
paths = [line.split(None, 5)[-1].strip() for line in maps]
print("ncheck:%d:%s" % (number.value, paths[0] if paths else ""))
"""


class AskingLibraries:
    """Asks libraries for their versions, all within one time."""

    def __init__(self, job: "JobSetup", ends: float) -> None:
        self.job = job
        self.ends = ends
        self.known: "Dict[object, Tuple[Version, str]]" = {}  # the copy that the job loads was found before

    def copy(self, place: "Dict[str, Any]") -> "Dict[str, Any]":
        """Add version and CUDA version to a place where a copy lies."""
        login = self.job.login_environment
        environment = {name: login[name] for name in login if name != "PYTHONHOME"}  # that of another interpreter
        version, _ = self.version(sys.executable, place["path"], environment)
        of_amd = os.path.basename(place["path"]).startswith("librccl")  # a gigabyte, in which no CUDA is named
        return dict(place, version=version, cuda="" if of_amd else cuda_of(place["path"]))

    def by_the_job(self, library: str) -> "Tuple[Version, str]":
        """Let the job's interpreter open a library, in the job's environment; see `version`."""
        return self.version(self.job.path or sys.executable, library, self.job.environment)

    def version(self, python: str, library: str, environment: "Environment") -> "Tuple[Version, str]":
        """Let an interpreter open a library (a path, or a name for the loader). Return (version | {"error"}, path)."""
        steered = frozenset(item for item in environment.items() if item[0] != "PATH")  # that one finds programs
        question = (python, os.path.realpath(library), steered)
        if question in self.known:
            return self.known[question]
        left = max(0.1, min(_PATIENCE, self.ends - time.monotonic()))
        if python == self.job.path:
            reply = self.job.run(_ASK, [library], left + self.job.start_seconds, environment)
        else:
            reply = run([python, "-B", "-S", "-c", _ASK, library], left, environment)
        # ncheck:22105:/usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5
        printed = re.search(r"^ncheck:(\d+):(.*)$", reply.get("stdout", ""), re.MULTILINE)
        if printed:
            self.known[question] = spelled(int(printed.group(1))), os.path.realpath(printed.group(2) or library)
            return self.known[question]
        words = reply.get("stderr", "").strip().splitlines()
        return {"error": words[-1] if words else reply.get("reason") or "it ended without an answer"}, ""


def spelled(number: int) -> str:
    """Write 22105 as 2.21.5, and 2804, as NCCL counted before 2.9, as 2.8.4."""
    base = _NEW_BASE if number >= _NEW_BASE else 1000
    return "{}.{}.{}".format(number // base, number % base // 100, number % 100)


def cuda_of(path: str) -> str:
    """Return the CUDA that a copy was built for, as it says in its own constants; "" where it does not."""
    return built_as(path)[1]


def built_as(path: str) -> "Tuple[str, str]":
    """Return (version, CUDA) from the text that NCCL prints at start, ("", "") without it."""
    try:
        library = Library(path)
        text = library.constant(b"NCCL version 2.")
        library.close()
    except (OSError, ValueError):
        return "", ""
    # NCCL version 2.21.5+cuda12.4
    printed = re.match(r"NCCL version (\d+\.\d+\.\d+)(?:\+cuda(\d+\.\d+))?", text)
    return (printed.group(1), printed.group(2) or "") if printed else ("", "")


def loaded(job: "JobSetup", copies: "Sequence[object]", asking: "AskingLibraries") -> "Optional[Dict[str, Any]]":
    """Return {"version", "path", "static", "how"}, {"error"}, or None where no NCCL would load at all."""
    if not job.path:
        return {"error": "no interpreter to ask"} if copies else None
    python = nccl_places.layout(job)
    if not python["prefix"]:
        return {"error": "{} did not report where its packages are".format(job.path)}
    torch = python["torch"] and _by_torch(job, python, asking)
    return torch or _without_torch(job, python, copies, asking)


def _by_torch(job: "JobSetup", python: "Dict[str, Any]", asking: "AskingLibraries") -> "Optional[Dict[str, Any]]":
    for name in TORCH:
        path = os.path.join(python["torch"], "lib", name)
        if os.path.exists(path):
            try:
                library = Library(path)
            except (OSError, ValueError) as error:
                return {"error": "torch's {}: {}".format(name, error)}
            for needed in library.needed():
                if needed.startswith(("libnccl.so", "librccl.so")):
                    return _resolved(job, python, library, needed, asking)
            version, _ = built_as(path)
            if version:
                return {"version": version, "path": path, "static": True, "how": "inside torch's own " + name}
    return None


def _resolved(
    job: "JobSetup", python: "Dict[str, Any]", library: "Library", name: str, asking: "AskingLibraries"
) -> "Dict[str, Any]":
    wheels = [os.path.join(folder, "nvidia", "nccl", "lib") for folder in python["path"]]
    path, how = loader.resolve(job, library, name, wheels)
    if not path:
        return {"error": "torch needs {}, and the loader finds none".format(name)}
    return _asked(asking, path, how)


def _without_torch(
    job: "JobSetup", python: "Dict[str, Any]", copies: "Sequence[object]", asking: "AskingLibraries"
) -> "Optional[Dict[str, Any]]":
    """No torch with GPUs: other frameworks open libnccl.so.2 or librccl.so.1 by name, or the wheel beside them."""
    why = "torch here is built without NCCL" if python["torch"] else "no torch here"
    wheels = [os.path.join(folder, "nvidia", "nccl", "lib", _NAME) for folder in python["path"]]
    steered = [os.path.join(folder, _NAME) for folder in loader.library_path(job.environment)]
    steered += loader.preloaded(job.environment, *nccl_places.NAMES)
    wheel = next((path for path in wheels if os.path.exists(path)), None)
    if wheel and not any(os.path.exists(path) for path in steered):
        return _asked(asking, wheel, "the wheel nvidia-nccl of this interpreter ({})".format(why))
    version, path = asking.by_the_job(_NAME)
    if isinstance(version, dict) and _NOT_THERE in version["error"] and os.path.isdir(ROCM):
        version, path = asking.by_the_job(_OF_AMD)
    if isinstance(version, dict):
        return dict(version) if copies and _NOT_THERE not in version["error"] else None
    return {"version": version, "path": path, "static": False, "how": "opened by name ({})".format(why)}


def _asked(asking: "AskingLibraries", path: str, how: str) -> "Dict[str, Any]":
    version, real = asking.by_the_job(path)
    if isinstance(version, dict):
        return {"error": "{}: {}".format(path, version["error"])}
    return {"version": version, "path": real, "static": False, "how": how}
