"""One cheap look at a running job: what its ranks and this node's network and GPUs have done so far.

Two looks show whether the job gets on. No program is started, no stack is read, and no file is touched but those of
/proc and /sys: a look takes some milliseconds, and NVML is started once.
"""

import os
import time

from ncheck.agent import proc
from ncheck.agent.answers import MissingError
from ncheck.agent.answers.gpus import _nvml, need_device, nvml_text, started
from ncheck.agent.sources import within
from ncheck.agent.traffic import ports
from ncheck.triage.agent.net_namespaces import folders, interfaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

    from ncheck.agent.answers.gpus import Nvml
    from ncheck.agent.sources import Sources

READS = (
    "/proc/PID/{stat,io} of the ranks, and /proc/PID/net/dev of their namespaces",
    "/sys/class/infiniband/*/ports/*/counters/{port_xmit_data,port_rcv_data}",
    "NVML: the use of each GPU and of its memory",
)

_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_PATIENCE = 2.0  # seconds for NVML, which can hang with its driver


def answer(sources: "Sources", arguments: "Mapping[str, Any]", timeout: float) -> "Dict[str, Any]":
    """Return this node's sums. Asked as {"ranks": [processes]}; a rank that has ended is left out."""
    ranks = arguments["ranks"]
    return {
        "time": time.monotonic(),
        "ranks": [one for one in map(_rank, ranks) if one],
        "network": sum(map(_moved, folders(ranks).values())),
        "ports": sum((one["sent"] or 0) + (one["received"] or 0) for one in ports(()).values()),
        "gpus": _gpus(sources),
    }


def _rank(rank: "Mapping[str, Any]") -> "Optional[Dict[str, Any]]":
    """Return what a rank has used and moved; None if it has ended: a zombie has, and what has its pid since is none."""
    now = proc.stat(rank["pid"])
    if now is None or now.started != rank["started"] or now.ended:
        return None
    moved = proc.moved(rank["pid"])
    return {
        "pid": rank["pid"], "state": now.state, "cpu": (now.user + now.system) * _TICK,
        "moved": None if moved is None else moved[0] + moved[1],
    }  # fmt: skip


def _moved(folder: str) -> int:
    """Return the bytes that the interfaces of a namespace have carried."""
    return sum(figures[0] + figures[8] for figures in interfaces(folder).values() if len(figures) > 8)


def _gpus(sources: "Sources") -> "Optional[Dict[str, int]]":
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


def _begun(sources: "Sources") -> "Optional[Nvml]":
    try:
        need_device()
        return started(_nvml(lambda _: nvml_text(sources)))
    except (MissingError, OSError):
        return None  # no GPU, or one that cannot be asked: the other figures must do


def _used(nvml: "Nvml") -> "Optional[Dict[str, int]]":
    use = memory = 0
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            rates = nvml.nvmlDeviceGetUtilizationRates(nvml.nvmlDeviceGetHandleByIndex(index))
            use, memory = use + rates.gpu, memory + rates.memory
    except nvml.NVMLError:
        return None
    return {"use": use, "memory_use": memory}
