"""The report as one page by itself: no script, nothing fetched, light and dark, and fit for paper."""

from __future__ import annotations

from doctor.model.report import Report


def as_html(report: Report) -> str:
    """Return the page. What nodes wrote is text in it, whatever it looks like."""
    from importlib.resources import files  # noqa: PLC0415  only this format needs them

    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415
    from markupsafe import Markup  # noqa: PLC0415

    from doctor.report.html.view import view_of  # noqa: PLC0415
    from doctor.report.text import lines, node_set  # noqa: PLC0415

    def clean(value: object) -> object:
        """Show as ? what is invisible or changes the direction of text; line ends stay."""
        return "\n".join(lines(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    here = files("doctor.report.html")
    environment = Environment(
        autoescape=True, finalize=clean, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(folded=node_set, place=_place, cut=_cut)
    template = environment.from_string(here.joinpath("page.html").read_text(encoding="utf-8"))
    style = Markup(here.joinpath("page.css").read_text(encoding="utf-8"))  # noqa: S704  our own file
    text = template.render(view=view_of(report), style=style)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")  # whatever it is written to, it says the same


_LONGEST_NAME = 18  # of a node, beside the picture of the pairs


def _place(number: float) -> str:
    return f"{number:.1f}"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
