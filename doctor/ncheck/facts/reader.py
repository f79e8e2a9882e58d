"""A reader: what to read on the node, and the pure parse that makes a fact of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ncheck.model.evidence import Answer, Command, Evidence, File, Reply, Source, Status
from ncheck.model.fact import Absent, Read, Unread

T = TypeVar("T")


LONGEST = 400  # characters of a node's own words in a reason: a program may say a mebibyte on one line


@dataclass(frozen=True)
class Reader(Generic[T]):
    """`parse` may raise ValueError, KeyError, TypeError and the like on nonsense: the fact is then Unread."""

    fact: type[T]
    sources: tuple[Source, ...]
    parse: Callable[[Evidence], Read[T]]


def called(source: Source) -> str:
    """Name a source as a person would say it."""
    if isinstance(source, Command):
        return " ".join(source.argv)
    if isinstance(source, File):
        return source.path
    if isinstance(source, Answer):
        return f"the agent's {source.name}"
    first, *others = source.patterns
    return f"{first} and {len(others)} more" if others else first


def line_for(source: Source) -> str:
    """Return the line by which a person asks a source as the agent did; "" where no line does."""
    if isinstance(source, Command):
        return shlex.join(("sudo", *source.argv) if source.root else source.argv)
    return f"cat {shlex.quote(source.path)}" if isinstance(source, File) else ""


def trouble(source: Source, reply: Reply) -> Unread | Absent | None:
    """Return why a reply cannot be parsed, in words for people; None when it can.

    A program that is not there is Absent; everything else that went wrong is Unread. An exit status other than 0 is
    trouble, and so is output that was cut off.
    """
    name = called(source)
    if reply.status is Status.MISSING:
        return Absent(f"{name}: not there")
    if reply.status is Status.NOT_ASKED:
        return Absent(reply.reason)
    if reply.status is Status.DENIED:
        return Unread(f"{name}: permission denied", needs_root=isinstance(source, Command) and source.root)
    if reply.status is Status.TIMEOUT:
        said = f"{name} did not end within {reply.seconds:.0f} s and was ended"
        line = line_for(source)
        return Unread(said, fix=f"timeout 10 {line}" if line else "", hung=name)
    if reply.status is not Status.OK:
        why = reply.reason[:LONGEST] or reply.status.value
        return Unread(f"{name}: {why}", unanswered=reply.status is Status.UNANSWERED)
    return _bad_ending(source, reply)


def no_answer(source: Source, reply: Reply) -> Unread | Absent | None:
    """Return why there is no answer where every node has one: absent is what was not asked, and nothing else."""
    why = trouble(source, reply)
    return Unread(why.reason) if isinstance(why, Absent) and reply.status is not Status.NOT_ASKED else why


def _bad_ending(source: Source, reply: Reply) -> Unread | None:
    name = called(source)
    if reply.truncated:
        return Unread(f"{name}: its output was cut off, too long to be an answer")
    if reply.exit_status in (None, 0):
        return None
    said = (reply.stderr.strip() or reply.stdout.strip()).splitlines()
    words = f": {said[-1][:LONGEST]}" if said else ""
    return Unread(f"{name} ended with exit status {reply.exit_status}{words}", fix=line_for(source))
