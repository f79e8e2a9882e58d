"""The page of a check: what it finds, why it matters, what to type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from doctor.report.topics import topic_of

if TYPE_CHECKING:
    from doctor.model.check import Check
    from doctor.registry import Registry


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
    from rich.markdown import Markdown  # noqa: PLC0415  only a terminal needs it

    from doctor.report.page import Page  # noqa: PLC0415  only a terminal needs it

    drawn = Page(stream, environ)
    drawn.console.print(Markdown(page), soft_wrap=False)
