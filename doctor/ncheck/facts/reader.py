"""A reader: what to read on the node, and the pure function that parses it to a fact."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ncheck.model.evidence import Answer, Command, Evidence, File, Reply, Source, Status
from ncheck.model.fact import Absent, Read, Unread

T = TypeVar("T")


LONGEST = 400  # characters of a node's own text in a reason: a program may print a mebibyte on one line


@dataclass(frozen=True)
class Reader(Generic[T]):
    """`parse` may raise ValueError, KeyError, TypeError and the like for malformed answers: the fact is then Unread."""

    fact: type[T]
    sources: tuple[Source, ...]
    parse: Callable[[Evidence], Read[T]]


def called(source: Source) -> str:
    """Return the name of a source for people."""
    if isinstance(source, Command):
        return " ".join(source.argv)
    if isinstance(source, File):
        return source.path
    if isinstance(source, Answer):
        return f"the agent's {source.name}"
    first, *others = source.patterns
    return f"{first} and {len(others)} more" if others else first


def line_for(source: Source) -> str:
    """Return the command that reads a source as the agent did; "" if there is none."""
    if isinstance(source, Command):
        return shlex.join(("sudo", *source.argv) if source.root else source.argv)
    return f"cat {shlex.quote(source.path)}" if isinstance(source, File) else ""


def trouble(source: Source, reply: Reply) -> Unread | Absent | None:
    """Return why a reply cannot be parsed; None if it can.

    A program that was not found is Absent, any other failure is Unread: an exit status other than 0 and truncated
    output too.
    """
    name = called(source)
    if reply.status is Status.MISSING:
        return Absent(f"{name} not found")
    if reply.status is Status.NOT_ASKED:
        return Absent(reply.reason)
    if reply.status is Status.DENIED:
        return Unread(f"{name}: permission denied", needs_root=isinstance(source, Command) and source.root)
    if reply.status is Status.TIMEOUT:
        reason = f"{name} did not end within {reply.seconds:.0f} s and was killed"
        line = line_for(source)
        return Unread(reason, fix=f"timeout 10 {line}" if line else "", hung=name)
    if reply.status is not Status.OK:
        why = reply.reason[:LONGEST] or reply.status.value
        return Unread(f"{name}: {why}", unanswered=reply.status is Status.UNANSWERED)
    return _bad_exit(source, reply)


def no_answer(source: Source, reply: Reply) -> Unread | Absent | None:
    """Return why a reply that every node must give cannot be parsed: Absent only if the node was not asked."""
    why = trouble(source, reply)
    return Unread(why.reason) if isinstance(why, Absent) and reply.status is not Status.NOT_ASKED else why


def _bad_exit(source: Source, reply: Reply) -> Unread | None:
    name = called(source)
    if reply.truncated:
        return Unread(f"{name}: output truncated, it was too long")
    if reply.exit_status in (None, 0):
        return None
    lines = (reply.stderr.strip() or reply.stdout.strip()).splitlines()
    message = f": {lines[-1][:LONGEST]}" if lines else ""
    return Unread(f"{name} ended with exit status {reply.exit_status}{message}", fix=line_for(source))
