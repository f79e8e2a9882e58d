"""The headline alone (-q)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from ncheck.model.report import Report
from ncheck.report.page import Page
from ncheck.report.parts import print_headline
from ncheck.report.summary import headline
from ncheck.report.text import fold_findings


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the headline."""
    print_headline(Page(stream, environ, color=color), headline(report, fold_findings(report.findings)))
