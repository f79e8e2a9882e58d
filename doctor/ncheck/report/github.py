"""The report as annotations of a GitHub workflow: one command per line, the worst first.

GitHub shows the first ten errors and the first ten warnings of a step, so findings are folded, each cause is one, and
the answer is a notice. Every line is a command of ours, and text of nodes is escaped in it: a runner obeys any line
that begins with two colons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from ncheck.model.report import Report
from ncheck.report import text as words
from ncheck.report.state import answer, not_checked
from ncheck.report.summary import consequences, nodes_of, origin, urgency
from ncheck.report.text import body_of, fold_findings

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  GitHub has its own colours
    """Print the answer, each cause with what follows from it, and what could not be checked."""
    stream.write(_command("notice", "ncheck", "\n".join([answer(report).text, *origin(report)])))
    findings = fold_findings(report.findings)
    following = consequences(findings)
    causes = sorted((one for one in findings if one.counts), key=urgency)
    for one in causes:
        title = f"{one.code} {one.check} on {words.node_set(one.nodes)}"
        text = "\n".join([words.line(one.message), *body_of(one, following.get(one, ()))])
        stream.write(_command(_COMMANDS[one.label], title, text))
    level = "error" if "unknown" in report.fail_on else "warning"
    stream.writelines(_command(level, "Not checked", sentence) for sentence in not_checked(report, nodes_of(causes)))


def _command(name: str, title: str, message: str) -> str:
    """Return ::error title=NC201 nccl-version-differs on gpu03::message."""
    return f"::{name} title={_property(title)}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
