"""Every check on one page: code, name, severity and title, by topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ncheck.model.check import Check
    from ncheck.registry import Registry


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
    from rich.text import Text

    from ncheck.report.page import Page

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


def page_of(registry: Registry, word: str) -> str:
    """Return the page of the check of this code or name, as Markdown. Raises SettingsError, with what is near."""
    check = registry.one(word.strip())
    return f"# {check.code} {check.name}\n\n*{check.severity.value}, {topic_of(check.code)}*\n\n{_body(check)}\n"


def _body(check: Check) -> str:
    """Return the docstring with its first line as a sentence of its own."""
    title, _, rest = check.page.strip().partition("\n")
    return f"**{title}**\n\n{rest.strip()}"


def show_page(page: str, stream: TextIO, environ: Mapping[str, str]) -> None:
    """Print a page: drawn on a terminal, as it is where it is piped to."""
    if not stream.isatty() or environ.get("TERM", "dumb") == "dumb":
        stream.write(page)
        return
    from rich.markdown import Markdown

    from ncheck.report.page import Page

    drawn = Page(stream, environ)
    drawn.console.print(Markdown(page), soft_wrap=False)


_TOPICS = {
    "NC0": "What could not be examined",
    "NC1": "SSH and host list",
    "NC2": "Versions",
    "NC3": "Network",
    "NC4": "InfiniBand and RoCE",
    "NC5": "GPUs",
    "NC6": "Hosts",
    "NC7": "Measured",
}


def topic_of(code: str) -> str:
    """Return the heading that a code stands under; a plug-in's own prefix is its heading."""
    return _TOPICS.get(code[:3], f"Plug-in {code.rstrip('0123456789')}")
