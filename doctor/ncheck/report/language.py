"""The language of a report for people: English, or that of a gettext catalogue beside this file.

What a report says by itself goes through `tr`. What checks, facts and nodes wrote stays as it is, and so does all that
programs read: they print outside of `speaking`. The wheel has zh.mo, which its build makes of zh.po.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, TextIO

from ncheck.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from importlib.abc import Traversable

ENGLISH = "en"
_OF_LOCALE = {"zh": "zh", "zh_CN": "zh", "zh_SG": "zh"}  # what `auto` speaks; the others read English
_SAMPLE = "检查（）：，、；"


@dataclass(frozen=True)
class _Language:
    name: str
    translated: Callable[[str], str]


_SPOKEN: ContextVar[_Language | None] = ContextVar("_SPOKEN", default=None)


def tr(text: str, /, **values: object) -> str:
    """Return a text of ours in the language of the report, with the values in its {places}."""
    spoken = _SPOKEN.get()
    if spoken and text:  # the entry of "" is the catalogue's header
        text = spoken.translated(text)
    return text.format(**values) if values else text


def marked(text: str) -> str:
    """Return the text as it is: it is in the catalogue, and `tr` gets it where it is printed."""
    return text


def translation(text: str) -> str:
    """Return the text in the language of the report; "" in English, and where the catalogue does not have it."""
    translated = tr(text)
    return "" if translated == text else translated


def spoken() -> str:
    """Return the language of the report."""
    language = _SPOKEN.get()
    return language.name if language else ENGLISH


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Let what is printed in this block be in this language, one that `language_of` returned."""
    before = _SPOKEN.set(None if name == ENGLISH else _loaded(name))
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def language_of(wanted: str, environ: Mapping[str, str], stream: TextIO) -> tuple[str, str]:
    """Return the language that can be printed on this stream, and why it is not the one that was wanted, or nothing.

    `wanted` is a value of --lang; auto is the language of the locale in the environment.
    """
    name = wanted
    if wanted == "auto":
        locale = next(filter(None, map(environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
        name = _OF_LOCALE.get(locale.partition(".")[0].partition("@")[0], ENGLISH)
    if name == ENGLISH:
        return ENGLISH, ""
    encoding = getattr(stream, "encoding", None) or "ascii"
    try:
        _SAMPLE.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ENGLISH, (
            f"--lang {name}: the encoding {encoding} lacks its characters, so this is in English; to see them, on a "
            "terminal with UTF-8: export LC_ALL=C.UTF-8"
        )
    if not _catalogue(name).is_file():
        return (
            ENGLISH,
            f"--lang {name}: a source tree has no catalogue, so this is in English; an installed ncheck has it",
        )
    return name, ""


def _catalogue(name: str) -> Traversable:
    from importlib.resources import files

    return files("ncheck.report").joinpath(f"{name}.mo")


@cache
def _loaded(name: str) -> _Language:
    from gettext import GNUTranslations

    with _catalogue(name).open("rb") as file:
        return _Language(name, GNUTranslations(file).gettext)
