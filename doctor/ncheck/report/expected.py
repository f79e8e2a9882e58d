"""`ncheck init`: what a good run found on all nodes, as an [expect] table of ncheck.toml, for review."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ncheck.hostlist import fold
from ncheck.model.report import Report
from ncheck.model.system import System
from ncheck.parity import nodes_by_value
from ncheck.report.text import count
from ncheck.settings.values import FRAMEWORKS

Value = str | int | float | None


def expectations(report: Report) -> str:
    """Return the table. What differs between the nodes is a comment; what no node has is left out."""
    systems = report.system_of
    reached = {node.name: _values(systems[node.name]) for node in report.nodes if node.reached}
    names = dict.fromkeys(name for values in reached.values() for name in values)
    lines = [
        f"# What is the same on {count(len(reached), 'node')}: {fold(reached)}, {report.time}.",
        "# Read it, delete what may change, and keep it in ncheck.toml: every later run checks all nodes against it.",
        "[expect]",
        *(_line(name, {node: values.get(name) for node, values in reached.items()}) for name in names),
    ]
    return "\n".join(lines) + "\n"


def _values(system: System) -> dict[str, Value]:
    """Return what a node has, by the names of expectations; what it lacks, or did not say, is left out."""
    frameworks, gpus, ports = system.frameworks or {}, system.gpus, system.ports or ()
    values: dict[str, Value] = {
        "gpus": gpus.count if gpus else None, "gpu": next(iter(gpus.models), None) if gpus else None,
        "driver": gpus.driver if gpus else None, "nccl": system.nccl, "mpi": system.mpi_version,
        "horovod": system.horovod, "python": system.python_version,
        **{name: frameworks.get(name) for name in FRAMEWORKS},
        "commit": system.commit,
        "hcas": len({port.name.partition(":")[0] for port in ports}), "rate": _rate(system),
    }  # fmt: skip
    return {name: value for name, value in values.items() if value}


def _rate(system: System) -> float | None:
    """Return the rate of the slowest active port."""
    return min((port.rate for port in system.ports or () if port.rate and port.state == "Active"), default=None)


def _line(name: str, values: Mapping[str, Value]) -> str:
    groups = nodes_by_value(values)
    if len(groups) > 1:
        sides = (f"{'none' if value is None else value} on {fold(nodes)}" for value, nodes in groups.items())
        return f"# {name} differs: {', '.join(sides)}"
    (value,) = groups
    return f"{name} = {f'{value:g}' if isinstance(value, float) else json.dumps(value)}"
