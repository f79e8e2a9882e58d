"""What a reader of saved output gives: the facts in the text, and what ncheck says of them.

A reader is one module in ncheck.read.readers: it declares READER. Which readers exist is found there; no list is kept.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib import import_module

from ncheck.lazy_dataclass import dataclass
from ncheck.model.remark import Remark

Record = dict[str, object]


@dataclass(frozen=True)
class Reading:
    """The facts of one text as `ncheck read -o json` prints them, what ncheck says of them, and perhaps a drawing.

    `tool` names the tool or format, "" if nothing was recognised. `quotes`: it is a report that quotes other tools.
    `part` is the node or the command of the part of a longer text that this is.
    """

    kind: str
    tool: str
    facts: Record
    remarks: tuple[Remark, ...] = ()
    drawing: tuple[str, ...] = ()
    quotes: bool = False
    part: str = ""

    def saying(self, remarks: Iterable[Remark]) -> Reading:
        """Return the reading with these remarks."""
        return replace(self, remarks=tuple(remarks))


@dataclass(frozen=True)
class Reader:
    """How the tools of one family are read.

    `kind` names the family, `tools` its tools and formats, as a user may call them. `read` returns None for any other
    text. `failed` returns the reading of a text that holds nothing but the failure of one of the tools, or that the
    user says to be of this kind; its `error` is what is wrong. `order`: lower comes first where nobody names the kind.
    """

    kind: str
    tools: tuple[str, ...]
    order: int
    read: Callable[[str], Reading | None]
    failed: Callable[[str], Reading]


@cache
def every_reader() -> tuple[Reader, ...]:
    """Return the readers in the order in which a text of unknown kind is tried."""
    package = import_module("ncheck.read.readers")
    modules = [import_module(found.name) for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]
    return tuple(sorted((module.READER for module in modules), key=lambda reader: reader.order))
