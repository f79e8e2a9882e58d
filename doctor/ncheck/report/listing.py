"""The checks for people: the list of all, the page of one, and the topics by which a report and the list sort them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from ncheck.report.language import tr

if TYPE_CHECKING:
    from ncheck.model.check import Listed
    from ncheck.steps.registry import Registry

_TOPICS = {
    "NC0": "Not examined",
    "NC1": "SSH and host list",
    "NC2": "Versions",
    "NC3": "Network",
    "NC4": "InfiniBand and RoCE",
    "NC5": "GPUs",
    "NC6": "Hosts",
    "NC7": "Measured",
    "NC8": "Ranks of a job",
    "NC9": "What was expected",
}
_OF_SITE = "Checks of this site"  # [[check]] of ncheck.toml, whose codes begin with X

OWN, VERSIONS, MEASURED = "ncheck", "versions", "measured"
_SHORT = {
    "NC0": OWN,
    "NC1": "ssh",
    "NC2": VERSIONS,
    "NC3": "network",
    "NC4": "InfiniBand",
    "NC5": "GPUs",
    "NC6": "host",
    "NC7": MEASURED,
    "NC8": "ranks",
    "NC9": "expected",
}  # as --select knows them, whatever their case


def short_topic(code: str) -> str:
    """Return the topic of a code in one word; the prefix of a plug-in's codes is theirs."""
    return "site" if code.startswith("X") else _SHORT.get(code[:3], code.rstrip("0123456789"))


def topic_of(code: str) -> str:
    """Return the heading of a code; the prefix of a plug-in's codes is their heading."""
    return _OF_SITE if code.startswith("X") else _TOPICS.get(code[:3], f"Plug-in {code.rstrip('0123456789')}")


def as_json(checks: Sequence[Listed]) -> str:
    """Return a list of {code, name, severity, topic, title}, one per line."""
    rows = [
        json.dumps(
            {"code": check.code, "name": check.name, "severity": check.severity.value, "topic": topic_of(check.code),
             "title": check.title}
        )
        for check in checks
    ]  # fmt: skip
    return "[\n  " + ",\n  ".join(rows) + "\n]\n"


def print_list(checks: Sequence[Listed], stream: TextIO, environ: Mapping[str, str]) -> None:
    """Print the checks as a table with aligned columns; titles are wrapped under themselves."""
    from rich.cells import cell_len
    from rich.text import Text

    from ncheck.report.page import Page
    from ncheck.report.text import count, padded

    page = Page(stream, environ)
    severities = {check.severity: tr(check.severity.value) for check in checks}
    longest = max(map(cell_len, severities.values()), default=0)
    widest = max((len(check.name) for check in checks), default=0)
    topic = ""
    for check in checks:
        if topic_of(check.code) != topic:
            if topic:
                page.gap()
            topic = topic_of(check.code)
            page.say(Text.assemble((tr(topic), "bold underline"), (f"  --select {check.code[:3]}", "dim")))
        name = (f" {check.name:<{widest}} ", "bold")
        page.say(
            tr(check.title),
            Text.assemble("  ", check.code, name, padded(severities[check.severity], max(longest + 1, 8))),
        )
    page.gap()
    page.say(tr("{checks}. Explain one: ncheck explain CODE", checks=count(len(checks), "check")), style="dim")


def page_of(registry: Registry, word: str) -> str:
    """Return the page of the check of this code or name, as Markdown. Raises SettingsError with similar names."""
    (check,) = registry.select((registry.one(word.strip()).code,))
    title, _, body = check.page.strip().partition("\n")
    severity = tr(check.severity.value)
    heading = f"# {check.code} {check.name}\n\n*{severity}{tr(', ')}{tr(topic_of(check.code))}*"
    return f"{heading}\n\n**{tr(title)}**\n\n{body.strip()}\n"


def show_page(page: str, stream: TextIO, environ: Mapping[str, str]) -> None:
    """Print a page: formatted on a terminal, as Markdown in a pipe."""
    if not stream.isatty() or environ.get("TERM", "dumb") == "dumb":
        stream.write(page)
        return
    from rich.markdown import Markdown

    from ncheck.report.page import Page

    Page(stream, environ).console.print(Markdown(page), soft_wrap=False)
