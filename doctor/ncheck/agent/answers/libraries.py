"""Whether the libraries of InfiniBand and of Open MPI are there for a job: what NCCL opens by name, and libmpi."""

import glob
import json
import os
import shutil
import sys

from ncheck.agent.commands import run

DAEMONS = ("orted", "prted")
VERBS = ("libibverbs.so.1", "libibverbs.so")
MPI = ("libmpi.so.40", "libmpi.so.20", "libmpi.so")
FILES = ("libmpi.so*", "libmpi_ibm.so*")  # the second is Spectrum MPI's
FOLDERS = ("lib", "lib64", "lib/*-linux-gnu", "lib/*-linux-gnu/openmpi/lib")
HCAS = "/sys/class/infiniband"
READS = (
    "where {} shows an HCA: whether the job's python3 can open {}".format(HCAS, " or ".join(VERBS)),
    "where {} is on the PATH: whether libmpi.so* lies beside it, or the job's python3 can open it".format(
        " or ".join(DAEMONS)
    ),
)

_PATIENCE = 5.0  # seconds, on a cold network file system
# Runs in a child of its own, for a library can end the process that opens it. Old interpreters can run it, too.
_ASK = r"""
import ctypes, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
        found[name] = ""
    except OSError as error:
        found[name] = str(error)
print("ncheck:" + json.dumps(found))
"""


def answer(sources, arguments, timeout):
    """Return {"verbs": null|words, "mpi": null|words}: see the package."""
    job = sources.job
    daemon = next(filter(None, (_program(name, job.login_environment) for name in DAEMONS)), None)
    return {
        "verbs": _opened(job, _verbs_of(job), timeout) if os.path.isdir(HCAS) and os.listdir(HCAS) else None,
        "mpi": _mpi(job, daemon, timeout) if daemon else None,
    }


def _program(name, environment):
    return shutil.which(name, path=environment.get("PATH", os.defpath))


def _verbs_of(job):
    """Name what NCCL opens: its own variable first (since 2.30.3)."""
    named = job.environment.get("NCCL_IBVERBS_LIB")
    return (named, *VERBS) if named else VERBS


def _mpi(job, daemon, timeout):
    """Tell that libmpi lies in the daemon's own installation, as mpirun --prefix and the wrappers use it, or opens."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(daemon)))
    places = (os.path.join(prefix, folder, name) for folder in FOLDERS for name in FILES)
    beside = (path for place in places for path in glob.iglob(place))
    return "" if any(map(os.path.exists, beside)) else _opened(job, MPI, timeout)


def _opened(job, names, timeout):
    """Return "" if the job's interpreter can open one of these libraries, else why not the first of them."""
    reply = run(
        [job.path or sys.executable, "-B", "-S", "-c", _ASK, *names], min(_PATIENCE, timeout / 2), job.environment
    )
    # it prints: ncheck, a colon, and the words for each name
    printed = [line for line in reply.get("stdout", "").splitlines() if line.startswith("ncheck:{")]
    if not printed:
        words = reply.get("stderr", "").strip().splitlines()
        raise OSError("{}: {}".format(names[0], words[-1] if words else reply.get("reason") or "no answer"))
    found = json.loads(printed[-1][len("ncheck:") :])
    return "" if "" in found.values() else found[names[0]]
