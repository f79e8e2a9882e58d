"""Tables as aligned columns, as Markdown and as HTML. A cell is plain text, whoever wrote it.

Columns are measured in cells of a terminal: a Chinese character has two.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from html import escape

from ncheck.expression import expression
from ncheck.report.text import line

# What Markdown or HTML reads anywhere, at the begin of a line, or as a link: <b>, - item, https://x, www.x
_MARKUP = expression(r"[\\`*_\[\]<>&|~#!]|^[-+=]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def aligned(rows: Iterable[Sequence[str]], left: int | None = None) -> list[str]:
    """Return a line per row. Columns begin at their left, or only the first `left` of them; the others end at right."""
    from rich.cells import cell_len

    table = [[(cell, cell_len(cell)) for cell in row] for row in rows]
    widths = [max(length for _, length in column) for column in zip(*table, strict=True)]
    padded = [
        [
            cell + " " * (width - length) if left is None or place < left else " " * (width - length) + cell
            for place, ((cell, length), width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in table
    ]
    return ["  ".join(row) for row in padded]


def folded(rows: Sequence[Sequence[str]], width: int, heads: Sequence[str] = ()) -> list[str]:
    """Return the lines of a table that is no wider than this: long cells go on in the next line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    paper = io.StringIO()
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=bool(heads))
    for head in heads or ("",) * len(rows[0]):
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=paper, width=width, highlight=False, markup=False, emoji=False, color_system=None).print(table)
    return [line.rstrip() for line in paper.getvalue().splitlines()]


def as_markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = False) -> str:
    """Return the table; `right`: its columns end at their right."""
    rule = ("---:" if right else "---",) * len(heads)
    lines = [tuple(map(escaped, heads)), rule, *(tuple(map(escaped, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def escaped(text: str) -> str:
    """Return the text on one line, with everything escaped that Markdown or HTML would read."""
    text = _MARKUP.sub(lambda sign: f"\\{sign[0]}", line(text))
    return re.sub(r"^(\d{1,9})([.)])(?=\s|$)", r"\1\\\2", text)  # 12) item


def as_html(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the table."""
    body = "".join(_html_row("td", row) for row in rows)
    return f"<table><thead>{_html_row('th', heads)}</thead><tbody>{body}</tbody></table>"


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(line(cell))}</{tag}>' for cell in cells)}</tr>"
