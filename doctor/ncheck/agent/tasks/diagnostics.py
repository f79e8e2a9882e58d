"""NCCL's own diagnostics: its ranks once more, with the variables that ask for them. What they time says nothing."""

from ncheck.agent.tasks import nccl

_SMALLEST = 8  # bytes: the ranks want one size

READS = ("NCCL's own diagnostics (NCCL_RUN_DIAGNOSTICS=1), where the job's NCCL has them: 2.31 and later",)


def answer(sources, arguments, timeout):
    """Return this node's part, without rows: what NCCL printed is in "log"."""
    return dict(nccl.answer(sources, dict(arguments, sizes=[_SMALLEST]), timeout), rows=[])
