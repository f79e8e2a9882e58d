"""Every check on one page: code, name, severity and title, by topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from doctor.report.topics import topic_of

if TYPE_CHECKING:
    from doctor.registry import Registry


def as_json(registry: Registry) -> str:
    """Return a list of {code, name, severity, topic, title}, one a line."""
    rows = [
        json.dumps(
            {"code": check.code, "name": check.name, "severity": check.severity.value, "topic": topic_of(check.code),
             "title": check.title}
        )
        for check in registry.checks
    ]  # fmt: skip
    return "[\n  " + ",\n  ".join(rows) + "\n]\n"


def print_list(registry: Registry, stream: TextIO, environ: Mapping[str, str]) -> None:
    """Print the checks as a table with aligned columns; titles are wrapped under themselves."""
    from rich.text import Text  # noqa: PLC0415  -o json does without

    from doctor.report.page import Page  # noqa: PLC0415  -o json does without

    page = Page(stream, environ)
    widest = max((len(check.name) for check in registry.checks), default=0)
    topic = ""
    for check in registry.checks:
        if topic_of(check.code) != topic:
            if topic:
                page.gap()
            topic = topic_of(check.code)
            page.say(Text.assemble((topic, "bold underline"), (f"  --select {check.code[:3]}", "dim")))
        first = Text.assemble(f"  {check.code} ", (f"{check.name:<{widest}} ", "bold"), f"{check.severity.value:<8}")
        page.say(check.title, first)
    page.gap()
    page.say(f"{len(registry.checks)} checks. ncheck explain CODE tells about one.", style="dim")
