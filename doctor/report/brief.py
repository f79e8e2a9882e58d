"""What is wrong, and how it stands: the report for a command whose standard output belongs to somebody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from doctor.model.report import Report
from doctor.report.console import print_findings
from doctor.report.folding import blocks
from doctor.report.head import print_head
from doctor.report.page import Page


def print_brief(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
    """Print the head and the findings."""
    page = Page(stream, environ, color=color)
    found = blocks(report.findings, {node.name for node in report.nodes})
    print_head(page, report, found)
    print_findings(page, found)
    page.gap()
