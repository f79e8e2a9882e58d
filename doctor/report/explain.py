"""The page of a check: what it finds, why it matters, what to type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from doctor.errors import SettingsError
from doctor.report.topics import topic_of

if TYPE_CHECKING:
    from doctor.model.check import Check
    from doctor.registry import Registry


def page_of(registry: Registry, word: str) -> str:
    """Return the page of the check of this code or name, as Markdown. Raises SettingsError, with what is near."""
    check = registry.find(word.strip())
    if check is None:
        raise SettingsError(_not_one(registry, word))
    return f"# {check.code} {check.name}\n\n*{check.severity.value}, {topic_of(check.code)}*\n\n{_body(check)}\n"


def _not_one(registry: Registry, word: str) -> str:
    found = registry.meant(word)  # raises for a word that means nothing at all
    return f"{word!r} means {len(found)} checks, such as {found[0].code}; ncheck list shows them all"


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
