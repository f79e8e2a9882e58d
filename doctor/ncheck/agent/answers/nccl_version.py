"""Which version a libnccl is: asked of the library itself, and read from its constants where it is part of another."""

import os
import re
import sys
import time

from ncheck.agent.commands import run
from ncheck.agent.elf import Library

_NEW_BASE = 10000  # the major version's place from NCCL 2.9 on
_PATIENCE = 5.0  # seconds for one copy to be opened and asked; on a cold network file system it takes one or two

# Runs in a child of its own, for a library can end the process that opens it. Old interpreters can run it, too.
_ASK = r"""
import ctypes, sys
library, number = ctypes.CDLL(sys.argv[1]), ctypes.c_int()
library.ncclGetVersion(ctypes.byref(number))
paths = [line.split(None, 5)[-1].strip() for line in open("/proc/self/maps") if "libnccl.so" in line]
print("ncheck:%d:%s" % (number.value, paths[0] if paths else ""))
"""


class Asking:
    """Asks libraries for their versions, all within one time."""

    def __init__(self, job, ends):
        self.job = job
        self.ends = ends

    def copy(self, place):
        """Add version and CUDA version to a place where a copy lies."""
        version, _ = self.version(sys.executable, place["path"], self.job.login_environment)
        return dict(place, version=version, cuda=cuda_of(place["path"]))

    def version(self, python, library, environment):
        """Let an interpreter open a library (a path, or a name for the loader). Return (version | {"error"}, path)."""
        left = max(0.1, min(_PATIENCE, self.ends - time.monotonic()))
        reply = run([python, "-B", "-S", "-c", _ASK, library], left, environment)
        # ncheck:22105:/usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5
        told = re.search(r"^ncheck:(\d+):(.*)$", reply.get("stdout", ""), re.MULTILINE)
        if told:
            return spelled(int(told.group(1))), os.path.realpath(told.group(2) or library)
        words = reply.get("stderr", "").strip().splitlines()
        return {"error": words[-1] if words else reply.get("reason") or "it ended without an answer"}, ""


def spelled(number):
    """Write 22105 as 2.21.5, and 2804, as NCCL counted before 2.9, as 2.8.4."""
    base = _NEW_BASE if number >= _NEW_BASE else 1000
    return "{}.{}.{}".format(number // base, number % base // 100, number % 100)


def cuda_of(path):
    """Return the CUDA that a copy was built for, as it says in its own constants; "" where it does not."""
    return built_as(path)[1]


def built_as(path):
    """Return (version, CUDA) from the text that NCCL prints at start, ("", "") without it."""
    try:
        library = Library(path)
        text = library.constant(b"NCCL version 2.")
        library.close()
    except (OSError, ValueError):
        return "", ""
    # NCCL version 2.21.5+cuda12.4
    told = re.match(r"NCCL version (\d+\.\d+\.\d+)(?:\+cuda(\d+\.\d+))?", text)
    return (told.group(1), told.group(2) or "") if told else ("", "")
