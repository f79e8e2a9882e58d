"""ncheck, the doctor for multi-node GPU clusters: the names that a check or a program of your own may use.

Importing this package does no I/O and pulls in nothing heavy; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from doctor.model.check import Check, ClusterView, Doubt, Moot, NodeView, Problem, cluster_check, node_check
    from doctor.model.fact import Absent, Unread
    from doctor.model.finding import Finding, Severity
    from doctor.model.report import Report
    from doctor.reasoning.parity import Split, parity_check, split

_HOMES = {
    "Absent": "doctor.model.fact",
    "Check": "doctor.model.check",
    "ClusterView": "doctor.model.check",
    "Doubt": "doctor.model.check",
    "Finding": "doctor.model.finding",
    "Moot": "doctor.model.check",
    "NodeView": "doctor.model.check",
    "Problem": "doctor.model.check",
    "Report": "doctor.model.report",
    "Severity": "doctor.model.finding",
    "Split": "doctor.reasoning.parity",
    "Unread": "doctor.model.fact",
    "cluster_check": "doctor.model.check",
    "node_check": "doctor.model.check",
    "parity_check": "doctor.reasoning.parity",
    "split": "doctor.reasoning.parity",
}

__all__ = [
    "Absent",
    "Check",
    "ClusterView",
    "Doubt",
    "Finding",
    "Moot",
    "NodeView",
    "Problem",
    "Report",
    "Severity",
    "Split",
    "Unread",
    "__version__",
    "cluster_check",
    "node_check",
    "parity_check",
    "split",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
