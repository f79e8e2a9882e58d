"""The NVLinks of each GPU, from NVML in a child with a time limit: a driver that hangs delays nothing else."""

import json
import sys

from ncheck.agent.answers.gpus import need_device
from ncheck.agent.commands import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Sources

READS = ("libnvidia-ml.so.1, opened by python3 -B -S -c: the NVLinks of each GPU, their other ends, whether MIG is on",)

# Plain ctypes, for few functions are needed. NVML's codes for what this GPU or driver does not have are no errors:
# invalid argument, not supported, no permission, not found, function not found. A GPU that this user has no right to
# (4) is another job's, and left out.
_ASK = r"""
import ctypes, json, os, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlErrorString.restype = ctypes.c_char_p
class Pci(ctypes.Structure):
    _fields_ = [("legacy", ctypes.c_char * 16), ("numbers", ctypes.c_uint * 5), ("address", ctypes.c_char * 32)]
def failed(code):
    return (nvml.nvmlErrorString(code) or b"").decode("ascii", "replace") or "code %d" % code
def must(name, *arguments, passing=()):
    code = getattr(nvml, name)(*arguments)
    if code and code not in passing: raise OSError(name + ": " + failed(code))
    return code
def number(name, *arguments):
    function, value, other = getattr(nvml, name, None), ctypes.c_uint(), ctypes.c_uint()
    extra = [ctypes.byref(other)] if name == "nvmlDeviceGetMigMode" else []
    code = function(*(list(arguments) + [ctypes.byref(value)] + extra)) if function else 3
    if code not in (0, 2, 3, 4, 6, 13): raise OSError(name + ": " + failed(code))
    return None if code else value.value
def address(name, *arguments):
    pci = Pci()
    must(name, *(list(arguments) + [ctypes.byref(pci)]))
    domain, _, rest = pci.address.decode("ascii", "replace").lower().partition(":")
    return "%04x:%s" % (int(domain, 16), rest)  # as the kernel writes it
def remote(gpu, link):
    try:
        return address("nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu, link)
    except (AttributeError, OSError, ValueError):
        return ""
def links(gpu):
    alike = {}
    for link in map(ctypes.c_uint, range(36)):
        state = number("nvmlDeviceGetNvLinkState", gpu, link)
        if state is not None:
            kind = number("nvmlDeviceGetNvLinkRemoteDeviceType", gpu, link) if state else None
            end = (state, kind, remote(gpu, link) if state else "")
            alike[end] = alike.get(end, 0) + 1
    return [[alike[end]] + list(end) for end in sorted(alike, key=str)]
def described(index):
    gpu = ctypes.c_void_p()
    if must("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(gpu), passing=(4,)): return None
    return {"pci": address("nvmlDeviceGetPciInfo_v3", gpu), "mig": number("nvmlDeviceGetMigMode", gpu) == 1,
            "links": links(gpu)}
must("nvmlInit_v2")
count = ctypes.c_uint()
must("nvmlDeviceGetCount_v2", ctypes.byref(count))
print("\nncheck:" + json.dumps([gpu for gpu in map(described, range(count.value)) if gpu]))
sys.stdout.flush()
os._exit(0)
"""


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"gpus": [GPU]}; MissingError with no NVIDIA device, OSError where NVML does not answer."""
    need_device()
    reply = run([sys.executable, "-E", "-B", "-S", "-c", _ASK], timeout, sources.job.login_environment)
    lines = [line for line in reply.get("stdout", "").splitlines() if line.startswith("ncheck:[")]
    if lines:
        return {"gpus": json.loads(lines[-1][len("ncheck:") :])}
    if reply["status"] == "timeout":
        raise OSError("NVML did not answer within {:g} s".format(timeout))
    words = reply.get("stderr", "").strip().splitlines()
    raise OSError(words[-1] if words else reply.get("reason") or "NVML ended without an answer")
