"""This node's part in one step of the probe: what all methods share, and which module runs which."""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Arguments, Sources

# Means to the module of doctor/ncheck/probe/agent/ whose `answer` runs it.
METHODS = {
    "nccl": "nccl", "nccl-tests": "nccl_tests", "gloo": "gloo", "tcp": "tcp", "rdma": "rdma",
    "diagnostics": "diagnostics", "nics": "nccl", "loopback": "rdma",
}  # fmt: skip

READS = ("each node's part in one step of the probe after the other, by one of these methods",)


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return what the method's module says of this step.

    What every method is asked: {"round": int, "stage", "method", "group": [nodes in the order of the ranks], "ranks":
    [ranks a node], "sizes": [bytes a rank], "launcher", "net": "IB"|"Socket"|"", "op", "expect": GB/s|null, "repeats":
    of each size, "node": its name, "planned": [interfaces and HCA ports ("mlx5_0:1") of the plan], "timeout": seconds,
    "variables": {NAME: value|null}}, and for
        nccl: "id": hex, "first": the node's first rank, "gpus": [the index of each of its ranks], "in_place": whether
            each size is measured in place, too;
        gloo: "meeting": {"address", "port"}, "first", "seconds": for measuring alone;
        tcp: "source": own ip, "address", "port": where the other one of the pair listens, "token", "seconds".
    It says {"rows": [{"size", "in_place": bool, "seconds", "fastest", "slowest", "wrong": int|null, "timing":
    {"warm_ups", "repeats", "iterations" of a repeat}}], "carried": {interface or HCA port: {"sent", "received"}} bytes,
    "version", "library": path, "used": [NCCL's lines of which network it uses], "log": [warnings, and the last lines of
    a failure], "failure": {"step", "words", "rank": int|null, "code": int|null, "late": bool}|null, "start": seconds to
    the first collective|null, "left": [what had to be ended or removed, or may be left]}.
    """
    module = import_module("ncheck.probe.agent." + METHODS[arguments["method"]])
    result: "Dict[str, Any]" = module.answer(sources, arguments, timeout)
    return result
