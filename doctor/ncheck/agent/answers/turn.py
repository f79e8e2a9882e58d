"""This node's part in one step of the probe: what every means shares, and which module runs which."""

from importlib import import_module

# Means to the module of doctor/ncheck/agent/tasks/ whose `answer` runs it.
MEANS = {
    "nccl": "nccl", "nccl-tests": "nccl_tests", "gloo": "gloo", "tcp": "tcp", "rdma": "rdma",
    "diagnostics": "diagnostics",
}  # fmt: skip

READS = ("each node's part in one step of the probe after the other, by one of these means",)


def answer(sources, arguments, timeout):
    """Return what the means' module tells of this turn: see answers/__init__.py."""
    module = import_module("ncheck.agent.tasks." + MEANS[arguments["means"]])
    return module.answer(sources, arguments, timeout)
