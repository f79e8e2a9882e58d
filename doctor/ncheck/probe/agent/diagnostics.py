"""NCCL's own diagnostics: its ranks once more, with the variables that enable them. Their times mean nothing."""

from ncheck.probe.agent import nccl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ncheck.agent.sources import Arguments, Sources

_SMALLEST = 8  # bytes: the ranks want one size

READS = ("NCCL's own diagnostics (NCCL_RUN_DIAGNOSTICS=1), where the job's NCCL has them: 2.31 and later",)


def answer(sources: "Sources", arguments: "Arguments", timeout: float) -> "Dict[str, Any]":
    """Return the result of this node, without rows: what NCCL printed is in "log"."""
    return dict(nccl.answer(sources, dict(arguments, sizes=[_SMALLEST]), timeout), rows=[])
