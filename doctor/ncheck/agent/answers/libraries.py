"""Whether a job can use the libraries of InfiniBand and of Open MPI, and the devices that libibverbs opens."""

import json
import os
import shutil

from ncheck.agent.files import line_of, matching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Sequence, Tuple

    from ncheck.agent.commands import Environment
    from ncheck.agent.job import JobSetup
    from ncheck.agent.sources import Sources

DAEMONS = ("orted", "prted")
VERBS = ("libibverbs.so.1", "libibverbs.so")
MPI = ("libmpi.so.40", "libmpi.so.20", "libmpi.so")
FILES = ("libmpi.so*", "libmpi_ibm.so*")  # the second is Spectrum MPI's
FOLDERS = ("lib", "lib64", "lib/*-linux-gnu", "lib/*-linux-gnu/openmpi/lib")
HCAS = "/sys/class/infiniband"
UVERBS = "/sys/class/infiniband_verbs"
DEVICES = "/dev/infiniband"
READS = (
    "where {} shows an HCA: whether the job's python3 can open {}, and {}/uverbs* of {}; which HCAs that library "
    "lists".format(HCAS, " or ".join(VERBS), DEVICES, UVERBS),
    "where {} is on the PATH: whether libmpi.so* lies beside it, or the job's python3 can open it".format(
        " or ".join(DAEMONS)
    ),
)

_PATIENCE = 5.0  # seconds, on a cold network file system
# Runs in a child of its own, for a library can end the process that opens it. Old interpreters can run it, too.
# What it lists is printed last: a provider of libibverbs is a library, too.
_ASK = r"""
import ctypes, json, os, sys
found, libraries = {}, []
for name in sys.argv[1:]:
    try:
        if name.startswith("/dev/"):
            os.close(os.open(name, os.O_RDWR))
        else:
            libraries.append(ctypes.CDLL(name))
        found[name] = ""
    except OSError as error:
        found[name] = error.strerror or str(error)
print("ncheck:" + json.dumps(found))
sys.stdout.flush()
if libraries and hasattr(libraries[0], "ibv_get_device_list"):
    libraries[0].ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    libraries[0].ibv_get_device_name.restype = ctypes.c_char_p
    libraries[0].ibv_get_device_name.argtypes = [ctypes.c_void_p]
    count = ctypes.c_int(0)
    devices = libraries[0].ibv_get_device_list(ctypes.byref(count))
    names = [libraries[0].ibv_get_device_name(devices[place]) for place in range(count.value)] if devices else []
    print("ncheck:" + json.dumps({"listed": [name.decode("ascii", "replace") for name in names]}))
"""


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"verbs", "uverbs", "listed", "mpi"}."""
    job = sources.job
    daemon = next(filter(None, (_program(name, job.login_environment) for name in DAEMONS)), None)
    hcas = sorted(os.listdir(HCAS)) if os.path.isdir(HCAS) else []
    verbs = _verbs(job, hcas, timeout) if hcas else {"verbs": None, "uverbs": None, "listed": None}
    return dict(verbs, mpi=_mpi(job, daemon, timeout) if daemon else None)


def _verbs(job: "JobSetup", hcas: "Sequence[str]", timeout: float) -> "Dict[str, object]":
    """Tell why libibverbs does not open, why each HCA's device does not, and which HCAs the library lists."""
    names, devices = _verbs_of(job), _devices()
    found = _asked(job, (*names, *devices.values()), timeout)
    opened = {
        hca: found[devices[hca]] if hca in devices else "no uverbs device: ib_uverbs is not loaded" for hca in hcas
    }
    return {"verbs": _first_trouble(found, names), "uverbs": opened, "listed": found.get("listed")}


def _devices() -> "Dict[Optional[str], str]":
    """Return each HCA's device: {"mlx5_0": "/dev/infiniband/uverbs0"}."""
    folders = matching(UVERBS + "/uverbs*")
    return {line_of(folder + "/ibdev"): os.path.join(DEVICES, os.path.basename(folder)) for folder in folders}


def _program(name: str, environment: "Environment") -> "Optional[str]":
    return shutil.which(name, path=environment.get("PATH", os.defpath))


def _verbs_of(job: "JobSetup") -> "Tuple[str, ...]":
    """Name what NCCL opens: its own variable first (since 2.30.3)."""
    named = job.environment.get("NCCL_IBVERBS_LIB")
    return (named, *VERBS) if named else VERBS


def _mpi(job: "JobSetup", daemon: str, timeout: float) -> str:
    """Tell that libmpi lies in the daemon's own installation, as mpirun --prefix and the wrappers use it, or opens."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(daemon)))
    places = ("/{}/{}".format(folder, name) for folder in FOLDERS for name in FILES)
    beside = (path for place in places for path in matching(place, prefix))
    return "" if any(map(os.path.exists, beside)) else _opened(job, MPI, timeout)


def _opened(job: "JobSetup", names: "Sequence[str]", timeout: float) -> str:
    return _first_trouble(_asked(job, names, timeout), names)


def _first_trouble(found: "Dict[str, Any]", names: "Sequence[str]") -> str:
    """Return "" if one of these libraries opens, else why not the first of them."""
    return "" if any(found[name] == "" for name in names) else found[names[0]]


def _asked(job: "JobSetup", names: "Sequence[str]", timeout: float) -> "Dict[str, Any]":
    """Return why the job's interpreter cannot open each library and each device, "" if it can."""
    limit = min(_PATIENCE, timeout / 2)
    reply = job.run(_ASK, names, limit, job.environment)
    # it prints: ncheck, a colon, and the words for each name
    printed = [line for line in reply.get("stdout", "").splitlines() if line.startswith("ncheck:{")]
    if not printed:
        words = reply.get("stderr", "").strip().splitlines()
        raise OSError("{}: {}".format(names[0], words[-1] if words else reply.get("reason") or "no answer"))
    found: "Dict[str, Any]" = {}
    for line in printed:
        found.update(json.loads(line[len("ncheck:") :]))
    return found
