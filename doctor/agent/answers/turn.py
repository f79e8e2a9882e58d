"""This node's part in one step of the probe: what every means shares, and which module runs which."""

from importlib import import_module

# Means to the module of this package whose `answer` runs it.
MEANS = {
    "nccl": "turn_nccl", "nccl-tests": "turn_nccl_tests", "gloo": "turn_gloo", "tcp": "turn_tcp", "rdma": "turn_rdma",
    "diagnostics": "turn_diagnostics",
}  # fmt: skip

READS = ("the parts of the probe, where one is run (--probe): see --probe none",)


def answer(sources, arguments, timeout):
    """Return what the means' module tells of this turn: see answers/__init__.py."""
    module = import_module("doctor.agent.answers." + MEANS[arguments["means"]])
    return module.answer(sources, arguments, timeout)
