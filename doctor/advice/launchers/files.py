"""What is no line but a file's worth of them: exports for a shell, and the lines of nccl.conf."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from doctor.advice.launch import by_own_name, typed, values_in
from doctor.advice.own_values import exported
from doctor.hostlist import fold
from doctor.model.plan import LaunchPlan, Setting

NOTHING = "# ncheck: nothing need be set"


def exports(plan: LaunchPlan, names: Mapping[str, str]) -> str:
    """Return what a shell takes by eval: one export a line, each value in quotes where it needs them.

    `names` are what the listed nodes call themselves, by which values that are each node's own are told apart.
    """
    lines = [f"export {name}={typed([value])}" for name, value in values_in(plan.env).items()]
    own = by_own_name((names.get(node, node), values_in(settings)) for node, settings in plan.per_node.items())
    return "\n".join([*lines, *([exported(own)] if own else [])]) or NOTHING


def nccl_conf(plan: LaunchPlan, _: Mapping[str, str]) -> str:
    """Return the lines of a file that NCCL reads: its own variables only, with no quotes and no blanks.

    What is each node's own comes last, under a comment that says on which nodes: there the rest is to be left out.
    """
    own: dict[tuple[str, ...], list[str]] = {}
    for node, settings in plan.per_node.items():
        own.setdefault(tuple(_rows(settings)), []).append(node)
    sections = (line for rows, nodes in own.items() if rows for line in (f"# on {fold(nodes)} only:", *rows))
    return "\n".join([*_rows(plan.env), *sections]) or NOTHING


def _rows(settings: Mapping[str, Setting]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in values_in(settings).items() if name.startswith("NCCL_"))


FILES: Mapping[str, Callable[[LaunchPlan, Mapping[str, str]], str]] = {"env": exports, "nccl.conf": nccl_conf}
