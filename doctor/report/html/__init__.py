"""The report as one page by itself: no script, nothing fetched, light and dark, and fit for paper."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from doctor.model.report import Report
from doctor.report.html.view import view_of
from doctor.report.text import lines, node_set

_LONGEST_NAME = 18  # of a node, beside the picture of the pairs


def as_html(report: Report) -> str:
    """Return the page. What nodes wrote is text in it, whatever it looks like."""
    style = Markup(_own("page.css"))  # noqa: S704  our own file
    text = _template().render(view=view_of(report), style=style)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")  # whatever it is written to, it says the same


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, finalize=_clean, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(folded=node_set, place=_place, cut=_cut)
    return environment.from_string(_own("page.html"))


def _own(name: str) -> str:
    return files("doctor.report.html").joinpath(name).read_text(encoding="utf-8")


def _clean(value: object) -> object:
    """Show as ? what is invisible or changes the direction of text; line ends stay."""
    return "\n".join(lines(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _place(number: float) -> str:
    return f"{number:.1f}"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
