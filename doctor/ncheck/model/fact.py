"""A fact is a typed record, or it says why it is not there. It is never empty and never zero for want of an answer."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from ncheck.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Unread:
    """It should have been readable and was not. `needs_root`: no ordinary user can read it on a default machine."""

    reason: str
    needs_root: bool = False
    fix: str = ""  # a line to type, where one is known
    hung: str = ""  # the command that did not end in its time, as typed
    unanswered: bool = False  # it was asked, and the connection or the run ended first


@dataclass(frozen=True)
class Absent:
    """No source shows it on this node: no such hardware, no such software."""

    reason: str


Read: TypeAlias = Unread | Absent | T


def name_of(fact: type[object]) -> str:
    """Return what the engine calls a fact that it need not import; a plug-in's own may have the name of one of ours."""
    ours = fact.__module__.partition(".")[0] == "ncheck"
    return fact.__name__ if ours else f"{fact.__module__}.{fact.__name__}"
