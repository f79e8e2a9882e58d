"""ncheck, the doctor for multi-node GPU clusters: the names that a check or a program of your own may use.

Importing this package does no I/O and pulls in nothing heavy; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module

from ncheck.version import __version__

TYPE_CHECKING = False  # typing's own would be imported while a typing.py of the current folder may still come first
if TYPE_CHECKING:
    from ncheck.api import diagnose, replay, run
    from ncheck.errors import NcheckError
    from ncheck.hook.preflight import PreflightError, preflight
    from ncheck.hostlist import fold, is_name
    from ncheck.model.check import (
        HERE,
        PLAN,
        SLOW_NETWORK,
        Check,
        Fix,
        Inconclusive,
        NotApplicable,
        Problem,
        cluster_check,
        node_check,
    )
    from ncheck.model.cluster import Cluster, NodeView
    from ncheck.model.fact import Absent, Unread
    from ncheck.model.finding import Finding, Outcome, Severity, Verdict
    from ncheck.model.plan import LaunchPlan
    from ncheck.model.report import Measurement, Report
    from ncheck.parity import Split, nodes_by_value, parity_check, split
    from ncheck.report.html import as_html
    from ncheck.report.json import as_json
    from ncheck.text import export_line
    from ncheck.triage.join import LiveReport


_HOMES = {
    "HERE": "ncheck.model.check",
    "PLAN": "ncheck.model.check",
    "SLOW_NETWORK": "ncheck.model.check",
    "Absent": "ncheck.model.fact",
    "Check": "ncheck.model.check",
    "Cluster": "ncheck.model.cluster",
    "Inconclusive": "ncheck.model.check",
    "Finding": "ncheck.model.finding",
    "Fix": "ncheck.model.check",
    "LaunchPlan": "ncheck.model.plan",
    "LiveReport": "ncheck.triage.join",
    "Measurement": "ncheck.model.report",
    "NcheckError": "ncheck.errors",
    "NotApplicable": "ncheck.model.check",
    "NodeView": "ncheck.model.cluster",
    "Outcome": "ncheck.model.finding",
    "PreflightError": "ncheck.hook.preflight",
    "Problem": "ncheck.model.check",
    "Report": "ncheck.model.report",
    "Severity": "ncheck.model.finding",
    "Split": "ncheck.parity",
    "Unread": "ncheck.model.fact",
    "Verdict": "ncheck.model.finding",
    "as_html": "ncheck.report.html",
    "as_json": "ncheck.report.json",
    "cluster_check": "ncheck.model.check",
    "diagnose": "ncheck.api",
    "export_line": "ncheck.text",
    "fold": "ncheck.hostlist",
    "is_name": "ncheck.hostlist",
    "node_check": "ncheck.model.check",
    "nodes_by_value": "ncheck.parity",
    "parity_check": "ncheck.parity",
    "preflight": "ncheck.hook.preflight",
    "replay": "ncheck.api",
    "run": "ncheck.api",
    "split": "ncheck.parity",
}

__all__ = [
    "HERE",
    "PLAN",
    "SLOW_NETWORK",
    "Absent",
    "Check",
    "Cluster",
    "Finding",
    "Fix",
    "Inconclusive",
    "LaunchPlan",
    "LiveReport",
    "Measurement",
    "NcheckError",
    "NodeView",
    "NotApplicable",
    "Outcome",
    "PreflightError",
    "Problem",
    "Report",
    "Severity",
    "Split",
    "Unread",
    "Verdict",
    "__version__",
    "as_html",
    "as_json",
    "cluster_check",
    "diagnose",
    "export_line",
    "fold",
    "is_name",
    "node_check",
    "nodes_by_value",
    "parity_check",
    "preflight",
    "replay",
    "run",
    "split",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found  # the checks ask for names 3,000 times
    return found


def __dir__() -> list[str]:
    return __all__
