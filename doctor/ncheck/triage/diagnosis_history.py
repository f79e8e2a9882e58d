"""Add the diagnoses of a job to the history, under the nodes that they name."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS
from ncheck.history.entry import TRIAGE, Entry, Seen
from ncheck.history.store import History, HistoryError
from ncheck.redact import redact
from ncheck.triage.certainty import SURE
from ncheck.version import __version__

if TYPE_CHECKING:
    from ncheck.settings import Settings
    from ncheck.triage.join import LiveReport
    from ncheck.triage.logs import LogReport

R = TypeVar("R", bound="LiveReport | LogReport")


def kept(report: R, settings: Settings, began: float) -> R:
    """Return the report, once it is in the history that the settings name; with a note if that failed.

    `began`: seconds since 1970. The code of a diagnosis is the name of its cause. One that is not sure is a warning.
    """
    if settings.history is None:
        return report
    findings = tuple(
        Seen(one.cause, TRIAGE, "error" if one.confidence >= SURE else "warning", one.nodes, redact(one.meaning))
        for one in report.diagnoses
        if one.nodes
    )
    code = EXIT_FINDINGS if report.diagnoses or report.unread else EXIT_CLEAN
    entry = Entry(began, TRIAGE, socket.gethostname(), __version__, code, findings=findings)
    try:
        History(settings.history).add(entry, settings.keep_days)
    except HistoryError as error:
        return replace(report, notes=(*report.notes, f"not in the history: {error}"))
    return report
