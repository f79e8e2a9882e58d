"""One cheap look at a running job: what its ranks and this node's network and GPUs have done so far.

Two looks show whether the job gets on. No program is started, no stack is read, and no file is touched but those of
/proc and /sys: a look takes some milliseconds, and NVML is started once.
"""

import os
import time

from ncheck.agent.answers import MissingError
from ncheck.agent.answers.gpus import _nvml, need_device, nvml_text, started
from ncheck.agent.sources import within
from ncheck.agent.traffic import ports
from ncheck.triage.agent.net_namespaces import folders

READS = (
    "/proc/PID/{stat,io} of the ranks, and /proc/PID/net/dev of their namespaces",
    "/sys/class/infiniband/*/ports/*/counters/{port_xmit_data,port_rcv_data}",
    "NVML: the use of each GPU and of its memory",
)

_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_PATIENCE = 2.0  # seconds for NVML, which can hang with its driver
_PAGE = 65536  # bytes of a small file


def answer(sources, arguments, timeout):
    """Return this node's sums. Asked as {"ranks": [processes]}; a rank that has ended is left out."""
    ranks = arguments["ranks"]
    return {
        "time": time.monotonic(),
        "ranks": [one for one in map(_rank, ranks) if one],
        "network": sum(map(_moved, folders(ranks).values())),
        "ports": sum((one["sent"] or 0) + (one["received"] or 0) for one in ports(()).values()),
        "gpus": _gpus(sources),
    }


def _rank(rank):
    """Return what a rank has used and moved; None if it has ended: a zombie has, and what has its pid since is none."""
    # 4711 (python3) S 1 4711 ...
    fields = _text("/proc/{}/stat".format(rank["pid"])).rpartition(")")[2].split()
    if len(fields) < 20 or int(fields[19]) != rank["started"] or fields[0] in "ZX":
        return None
    cpu = (int(fields[11]) + int(fields[12])) * _TICK
    moved = dict(line.split(": ") for line in _text("/proc/{}/io".format(rank["pid"])).splitlines() if ": " in line)
    known = "rchar" in moved and "wchar" in moved
    return {
        "pid": rank["pid"], "state": fields[0], "cpu": cpu,
        "moved": int(moved["rchar"]) + int(moved["wchar"]) if known else None,
    }  # fmt: skip


def _moved(folder):
    """Return the bytes that the interfaces of a namespace have carried."""
    found = 0
    # eth0: 1296 18 0 0 0 0 0 0 1296 18 0 0 0 0 0 0
    for line in _text(folder + "/net/dev", 1 << 20).splitlines()[2:]:
        numbers = line.partition(":")[2].split()
        if len(numbers) > 8:
            found += int(numbers[0]) + int(numbers[8])
    return found


def _gpus(sources):
    """Return {"use", "memory_use"}, percent added up over all GPUs; None without one, or where NVML does not answer."""
    if "pulse-nvml" not in sources.kept:
        found = within(_PATIENCE, _begun, sources)
        sources.kept["pulse-nvml"] = found[0] if found else None
    nvml = sources.kept["pulse-nvml"]
    if nvml is None:
        return None
    found = within(_PATIENCE, _used, nvml)
    if not found:
        sources.kept["pulse-nvml"] = None  # a thread waits for it: no second one must
    return found[0] if found else None


def _begun(sources):
    try:
        need_device()
        return started(_nvml(lambda _: nvml_text(sources)))
    except (MissingError, OSError):
        return None  # no GPU, or one that cannot be asked: the other figures must do


def _used(nvml):
    use = memory = 0
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            rates = nvml.nvmlDeviceGetUtilizationRates(nvml.nvmlDeviceGetHandleByIndex(index))
            use, memory = use + rates.gpu, memory + rates.memory
    except nvml.NVMLError:
        return None
    return {"use": use, "memory_use": memory}


def _text(path, most=_PAGE):
    try:
        with open(path) as file:
            return file.read(most)
    except (OSError, ValueError):
        return ""
