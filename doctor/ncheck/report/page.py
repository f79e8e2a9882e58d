"""Styled lines on a terminal or in a file: wrapping, colour, and the signs that lines begin with."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ncheck.lazy_dataclass import dataclass

PIPED_WIDTH = 80
WIDEST = 120  # longer lines of prose are hard to read
NARROWEST = 40
_CUT = " ..."
LONGEST = 4000  # characters of one paragraph: no check writes that much, a sick node might


@dataclass(frozen=True)
class Signs:
    """The signs before a line (wrong, unknown, skipped, healthy, a command) and the parts of bars."""

    bad: str = "✗"
    warned: str = "!"
    doubtful: str = "?"
    skipped: str = "-"
    well: str = "✓"
    type_this: str = "→"
    dot: str = "·"
    upright: str = "┊"
    parts: str = "▏▎▍▌▋▊▉█"  # of a bar: an eighth of a cell, two, and so on to the whole cell


ASCII = Signs(bad="x", well="+", type_this="->", dot="|", upright="|", parts="#")


class _Paper(Console):
    """A console that raises when its reader closed the pipe; rich would end the process with exit code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Page:
    """Prints line by line. Text is never interpreted as markup."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:
        self.width = _width(stream, environ)
        self.fitted = isinstance(stream, Sheet) or stream.isatty()  # a file or pipe has no screen: nothing is left out
        colored = _colored(stream, environ, color)
        self.signs = Signs() if _encodes(stream, "".join(vars(Signs()).values())) else ASCII
        self.console: Console = _Paper(
            file=stream, width=self.width, highlight=False, markup=False, emoji=False, soft_wrap=True,
            color_system="standard" if colored else None, force_terminal=True, no_color=False,
        )  # fmt: skip

    def say(self, text: Text | str, first: Text | str = "", style: str = "") -> None:
        """Print `first` and the text, wrapped to the page; further lines are aligned with the first.

        A word that is longer than the page, such as a path, is not broken: it could not be copied any more.
        """
        begin = first if isinstance(first, Text) else Text(first)
        body = text.copy() if isinstance(text, Text) else Text(text, style=style)
        room = max(self.width - begin.cell_len, NARROWEST // 2)
        body.truncate(LONGEST)
        for number, line in enumerate(body.divide(_breaks(body.plain, room))):
            line.rstrip()
            self.verbatim(line, begin if number == 0 else Text(" " * begin.cell_len))

    def verbatim(self, text: Text | str, first: Text | str = "", style: str = "") -> None:
        """Print one line as it is, however long: something to copy is never broken or cut."""
        body = text if isinstance(text, Text) else Text(text, style=style)
        self.console.print(Text.assemble(first, body))

    def short(self, text: Text | str, first: Text | str = "", rows: int = 1, style: str = "") -> None:
        """Print at most so many rows of a text; where it is longer, they end in an ellipsis."""
        begin = first if isinstance(first, Text) else Text(first)
        body = text.copy() if isinstance(text, Text) else Text(text, style=style)
        if not self.fitted:
            self.say(body, begin)
            return
        room = max(self.width - begin.cell_len, NARROWEST // 2)
        body.truncate(LONGEST)
        for number, line in enumerate(body.divide(_breaks(body.plain, room)[: rows - 1])):
            line.rstrip()
            if number == rows - 1 and line.cell_len > room:
                line.truncate(room - len(_CUT))
                line.append(_CUT)
            self.verbatim(line, begin if number == 0 else Text(" " * begin.cell_len))

    def gap(self) -> None:
        self.console.print()


class Draft(Page):
    """A page that is not printed yet, so that its rows can be counted."""

    def __init__(self, page: Page) -> None:
        self.width, self.fitted, self.signs = page.width, page.fitted, page.signs
        self.lines: list[Text] = []

    def verbatim(self, text: Text | str, first: Text | str = "", style: str = "") -> None:
        self.lines.append(Text.assemble(first, text if isinstance(text, Text) else Text(text, style=style)))

    def gap(self) -> None:
        self.lines.append(Text())

    @property
    def rows(self) -> int:
        """The rows that it takes on a terminal of the page's width."""
        return sum(max(1, -(-line.cell_len // self.width)) for line in self.lines)

    def print_on(self, page: Page) -> None:
        """Print it."""
        for line in self.lines:
            page.verbatim(line)


def _breaks(plain: str, room: int) -> list[int]:
    """Return where lines of at most `room` cells end, always before a word."""
    breaks, start = [], 0
    for word in re.finditer(r"\S+", plain):  # "gives", "no", "answer"
        if word.start() > start and cell_len(plain[start : word.end()]) > room:
            start = word.start()
            breaks.append(start)
    return breaks


class Sheet(io.StringIO):
    """Text for a terminal of another process, so many columns wide."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns


def _width(stream: TextIO, environ: Mapping[str, str]) -> int:
    """Return the columns: of the terminal; of a pipe or file what COLUMNS says, else 80."""
    columns = 0
    if isinstance(stream, Sheet):
        columns = stream.columns
    elif stream.isatty():
        with suppress(OSError):
            columns = os.get_terminal_size(stream.fileno()).columns
    elif environ.get("COLUMNS", "").isdecimal():
        columns = int(environ["COLUMNS"])
    return max(NARROWEST, min(WIDEST, columns or PIPED_WIDTH))


def _colored(stream: TextIO, environ: Mapping[str, str], color: bool | None) -> bool:  # noqa: FBT001  three-valued
    """Follow --color and --no-color, then NO_COLOR (if not empty) and TERM=dumb, then whether it is a terminal."""
    if color is not None:
        return color
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"


def _encodes(stream: TextIO, signs: str) -> bool:
    try:
        signs.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
