"""Styled lines on a terminal or in a file: wrapping, colour, and the signs that lines begin with."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass

PIPED_WIDTH = 80
WIDEST = 120  # longer lines of prose are hard to read
NARROWEST = 40
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
        columns = _columns(stream, environ)
        self.width = max(NARROWEST, min(WIDEST, columns or PIPED_WIDTH))  # of what is drawn, such as a curve
        self.wraps = bool(columns)  # grep finds a problem in a file or a pipe by its one line
        colored = _colored(stream, environ, color)
        self.signs = Signs() if _encodes(stream, "".join(vars(Signs()).values())) else ASCII
        self.console: Console = _Paper(
            file=stream, width=self.width, highlight=False, markup=False, emoji=False, soft_wrap=True,
            color_system="standard" if colored else None, force_terminal=True, no_color=False,
        )  # fmt: skip

    def say(self, text: Text | str, first: Text | str = "", style: str = "") -> None:
        """Print `first` and the text, wrapped to the screen; further lines are aligned with the first.

        A word that is longer than the page, such as a path, is not broken: it could not be copied any more.
        """
        begin = first if isinstance(first, Text) else Text(first)
        body = text.copy() if isinstance(text, Text) else Text(text, style=style)
        room = max(self.width - begin.cell_len, NARROWEST // 2)
        body.truncate(LONGEST)
        for number, line in enumerate(body.divide(_breaks(body.plain, room) if self.wraps else ())):
            line.rstrip()
            self.verbatim(line, begin if number == 0 else Text(" " * begin.cell_len))

    def verbatim(self, text: Text | str, first: Text | str = "", style: str = "") -> None:
        """Print one line as it is, however long: something to copy is never broken or cut."""
        body = text if isinstance(text, Text) else Text(text, style=style)
        self.console.print(Text.assemble(first, body))

    def gap(self) -> None:
        self.console.print()


# A line of Chinese may end after any character that no closing sign follows, and before an opening bracket.
_WORD = expression(r"（?(?:[一-鿿]|[^\s一-鿿（]+)[，。；：、）]*|\S")


def _breaks(plain: str, room: int) -> list[int]:
    """Return where lines of at most `room` cells end, always before a word."""
    breaks, start = [], 0
    for word in _WORD.finditer(plain):  # "gives", "no", "answer"
        if word.start() > start and cell_len(plain[start : word.end()]) > room:
            start = word.start()
            breaks.append(start)
    return breaks


class Sheet(io.StringIO):
    """Text for a terminal of another process, so many columns wide."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns


def _columns(stream: TextIO, environ: Mapping[str, str]) -> int:
    """Return the columns of a terminal, or what COLUMNS says for a pipe or file; 0: it is no screen."""
    if isinstance(stream, Sheet):
        return stream.columns
    if stream.isatty():
        with suppress(OSError):
            return os.get_terminal_size(stream.fileno()).columns or PIPED_WIDTH
        return PIPED_WIDTH
    return int(environ["COLUMNS"]) if environ.get("COLUMNS", "").isdecimal() else 0


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
