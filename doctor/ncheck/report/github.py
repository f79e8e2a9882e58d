"""The report as annotations of a GitHub workflow: one command per line, the worst first.

GitHub shows the first ten errors and the first ten warnings of a step, so the answer comes first and findings are
folded. Every line is a command of ours, and text of nodes is escaped in it: a runner obeys any line that begins with
two colons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from ncheck.model.finding import Severity
from ncheck.model.report import Report
from ncheck.report import text as words
from ncheck.report.state import not_checked, standing, state_of
from ncheck.report.summary import CLEAN, NOT_READY, NOT_VERIFIED, WARNINGS, origin, urgency
from ncheck.report.text import FoldedFinding, fix_label

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_ANSWERS = {CLEAN: "notice", WARNINGS: "warning", NOT_READY: "error", NOT_VERIFIED: "error"}


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  GitHub has its own colours
    """Print the answer, the findings by severity, and what could not be checked."""
    answer = state_of(report)
    stream.write(_command(_ANSWERS[answer.kind], "ncheck", "\n".join([answer.text, *origin(report)])))
    for one in sorted(standing(report), key=urgency):
        title = f"{one.code} {one.check} on {words.node_set(one.nodes)}"
        stream.write(_command(_COMMANDS[one.severity], title, "\n".join(_body(one))))
    level = "error" if "unknown" in report.fail_on else "warning"
    stream.writelines(_command(level, "Not checked", sentence) for sentence in not_checked(report))


def _body(one: FoldedFinding) -> list[str]:
    evidence = [line for text in one.evidence for line in words.lines(text)]
    fix = [f"{fix_label(one)}: {words.line(one.fix)}"] if one.fix else []
    return [words.line(one.message), *evidence, *fix]


def _command(name: str, title: str, message: str) -> str:
    """Return ::error title=NC201 nccl-version-differs on gpu03::message."""
    return f"::{name} title={_property(title)}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
