"""What is no line but a file's worth of them: exports for a shell, and the lines of nccl.conf."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from doctor.advice.launch import typed
from doctor.model.plan import LaunchPlan

NOTHING = "# ncheck: nothing need be set"


def exports(plan: LaunchPlan) -> str:
    """Return what a shell takes by eval: one export a line, each value in quotes where it needs them."""
    lines = [f"export {name}={typed([value])}" for name, value in _set(plan)]
    return "\n".join(lines) or NOTHING


def nccl_conf(plan: LaunchPlan) -> str:
    """Return the lines of a file that NCCL reads: its own variables only, with no quotes and no blanks."""
    lines = [f"{name}={value}" for name, value in _set(plan) if name.startswith("NCCL_")]
    return "\n".join(lines) or NOTHING


def _set(plan: LaunchPlan) -> Iterator[tuple[str, str]]:
    for name, setting in plan.env.items():
        if setting.value is not None:
            yield name, setting.value


FILES: Mapping[str, Callable[[LaunchPlan], str]] = {"env": exports, "nccl.conf": nccl_conf}
