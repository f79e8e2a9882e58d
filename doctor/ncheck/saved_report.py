"""What the last report of this machine (`ncheck local -o json=FILE`) says of it, for a Slurm prolog and the like.

A batch system takes a node away for what is said here. So only a fault of its hardware that the report names on this
node is a reason; whatever is not certain is none: no report, an old one, one of another machine or boot, one that
others can write to, a check that could not run. Nothing here waits: not for the network, and not for a file system.
"""

from __future__ import annotations

import errno
import json
import os
import re
import select
import signal
import socket
import stat
import time
from collections.abc import Iterable, Mapping
from datetime import datetime

from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable, span

_SECONDS = 2.0  # for reading a local file, which takes a millisecond
_LARGEST = 16 * 2**20  # bytes: a hundred times the report of a large node
_MOST_CODES = 4
_MOST_WORDS = 8  # of --select
_CLOCK_STEP = 60.0  # seconds by which a clock may be set back between the report and now


@dataclass(frozen=True)
class SavedVerdict:
    """`drain`: why this node should get no job ("ncheck: NC402 ib-port-polling"), "" if nothing says so. One line each.

    `message` says for a log what the report says, or why it says nothing.
    """

    drain: str
    message: str


@dataclass(frozen=True)
class Now:
    """This machine at this moment: its host name, the time, and when it started, both in seconds since 1970."""

    host: str
    time: float
    booted: float


class UnusableReportError(Exception):
    """The report says nothing of this machine; the text says why."""


def now() -> Now:
    moment = time.time()
    return Now(socket.gethostname(), moment, moment - time.clock_gettime(time.CLOCK_BOOTTIME))


def saved_verdict(path: str, max_age: float, here: Now) -> SavedVerdict:
    """Return what the report in this file says of this machine, if it is at most `max_age` seconds old."""
    try:
        return verdict_in(read_within(path, _SECONDS), max_age, here)
    except UnusableReportError as error:
        return SavedVerdict("", f"no verdict on {printable(here.host)}: {printable(path, 300)}: {error}")


def drain_reason(codes: Iterable[str], names: Mapping[str, str]) -> str:
    """Return "ncheck: NC402 ib-port-polling, NC710 node-slow": nothing that a node wrote, and nothing to quote."""
    shown = [f"{code} {names.get(code, '')}".strip() for code in codes]
    more = f" and {len(shown) - _MOST_CODES} more" if len(shown) > _MOST_CODES else ""
    return re.sub(r"[^\w :,-]", "?", f"ncheck: {', '.join(shown[:_MOST_CODES])}{more}", flags=re.ASCII)


def verdict_in(text: bytes, max_age: float, here: Now) -> SavedVerdict:
    """Return the verdict that this report holds. Raises UnusableReportError."""
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):
        raise UnusableReportError("it is not JSON") from None
    match report:
        case {
            "schema": "ncheck.report/1" | "ncheck.report/2", "host": str(host), "time": str(begun),
            "findings": list(findings),
            "nodes": [{"transport": "local", "recorded": False}], "bad": list(bad), "interrupted": bool(interrupted),
        }:  # fmt: skip
            pass
        case {"schema": "ncheck.report/1" | "ncheck.report/2", "nodes": list()}:
            raise UnusableReportError("it is not a report of ncheck local")
        case _:
            raise UnusableReportError("it is not a report of this version of ncheck")
    if host != here.host:
        raise UnusableReportError(f"it is of another machine, {printable(host)}")
    age = _age(begun, max_age, here)
    if interrupted:
        raise UnusableReportError(f"that run was interrupted ({age} ago)")
    known = [one for one in findings if isinstance(one, dict) and _is_text(one, "code", "check")]
    names = {one["code"]: one["check"] for one in known}
    hardware = {one["code"]: one["hardware"] for one in known if isinstance(one.get("hardware"), bool)}
    match bad:
        case [{"reached": True, "unknown": False, "codes": [_, *_] as codes, "reason": str(reason)}] if (
            hardware.keys() >= set(map(str, codes))
        ):
            broken = [str(code) for code in codes if hardware[str(code)]]
            mild = "" if broken else ", which is no fault of the hardware"
            drain = drain_reason(broken, names) if broken else ""
            return SavedVerdict(drain, f"{here.host}: {printable(reason, 300)}{mild} ({age} ago)")
        case []:
            return SavedVerdict("", f"{here.host}: no error{_limited(report, known)} ({age} ago)")
        case [{"reason": str(reason)}]:
            raise UnusableReportError(f"{printable(reason, 300)} ({age} ago)")
        case _:
            raise UnusableReportError("it is not a report of this version of ncheck")


def _limited(report: Mapping[str, object], findings: Iterable[Mapping[str, str]]) -> str:
    """Return to what a report without an error was limited: ", only NC4, NC5 checked"; "" if to nothing."""
    parts, words, level = [], report.get("select"), str(report.get("level") or "standard")
    if words and isinstance(words, list):
        parts.append(f"only {_joined(map(str, words))} checked")
    if level == "quick":
        parts.append(f"level {level}")
    if ignored := dict.fromkeys(one["code"] for one in findings if one.get("ignored")):
        parts.append(f"ignored: {_joined(ignored)}")
    return printable("".join(f", {part}" for part in parts), 300)


def _joined(words: Iterable[str]) -> str:
    first, more = (listed := list(words))[:_MOST_WORDS], len(listed) - _MOST_WORDS
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _is_text(record: Mapping[object, object], *keys: str) -> bool:
    return all(isinstance(record.get(key), str) for key in keys)


def _age(begun: str, max_age: float, here: Now) -> str:
    """Return how old the report is, in words. Raises UnusableReportError if it is too old to count."""
    try:
        then = datetime.fromisoformat(begun).timestamp()
    except (ValueError, OverflowError):
        raise UnusableReportError("it does not say when it was made") from None
    if then < here.booted - 1:  # a report has whole seconds
        raise UnusableReportError("it is older than the last start of this machine")
    age = here.time - then
    if age < -_CLOCK_STEP:
        raise UnusableReportError("it comes from the future: a clock was set back")
    if age > max_age:
        raise UnusableReportError(f"it is {span(age)} old, more than --max-age {span(max_age)}")
    return span(max(age, 0.0))


def read_within(path: str, seconds: float) -> bytes:
    """Return what a report file holds. Raises UnusableReportError, also if the file system does not answer in time.

    A child reads it: a process that waits for a dead file server cannot be ended, and its parent would wait for it. The
    child holds none of the caller's streams, so nobody else waits for it either.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(path, theirs)
    os.close(theirs)
    answer = _until_closed(ours, time.monotonic() + seconds)
    os.close(ours)
    if answer is None:
        os.kill(child, signal.SIGKILL)
        raise UnusableReportError(f"the file system did not answer within {seconds:g} s")
    os.waitpid(child, 0)  # it has closed the pipe, so it ends
    if not answer.startswith(_READ):
        raise UnusableReportError(answer.decode() or "it could not be read")
    return answer[len(_READ) :]


_READ = b"\0"  # begins an answer that is the file; without it the answer says why there is none


def _answer(path: str, pipe: int) -> None:
    """Write the file, or why it cannot be used, into the pipe, and end this process."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        with os.fdopen(pipe, "wb") as answer:
            try:
                answer.write(_READ + _content(path))
            except UnusableReportError as error:
                answer.write(str(error).encode())
            except FileNotFoundError:
                answer.write(f"it does not exist; to write it: ncheck local -o json={printable(path, 300)}".encode())
            except OSError as error:
                why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
                answer.write((why or "it could not be read").encode())
    finally:
        os._exit(0)  # what the parent would do at its end is not done twice


def _content(path: str) -> bytes:
    """Return the content of a file that nobody else can have written. A pipe or a device is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise UnusableReportError("it is not a regular file")
    if status.st_uid not in (0, os.geteuid()):
        raise UnusableReportError("it belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnusableReportError("others can write to it; to change this: chmod go-w")
    if status.st_size > _LARGEST:
        raise UnusableReportError("it is too large")
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_LARGEST)


def _until_closed(pipe: int, end: float) -> bytes | None:
    """Return all that comes through the pipe, or None if its writer has not closed it in time."""
    parts: list[bytes] = []
    while (left := end - time.monotonic()) > 0:
        if not select.select([pipe], [], [], left)[0]:
            break
        part = os.read(pipe, 2**20)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None
