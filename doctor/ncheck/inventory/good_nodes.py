"""`--good-nodes FILE`: write the nodes without errors, in the format in which they were listed."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ncheck.errors import SettingsError
from ncheck.hostlist import fold, split_list
from ncheck.model.node import Line, Node
from ncheck.text import printable

_STREAMS = ("/dev", "/dev/fd")  # /dev/stdout is the file that the report goes to


def writable(path: str, nodes_file: str | None) -> None:
    """Refuse a file that cannot be written, before any node is asked. Raises SettingsError."""
    shown = f"--good-nodes: {printable(path)}"
    if path == "-":
        raise SettingsError("--good-nodes: expected a file; standard output (-) is used by the report")
    target = Path(path)
    folder = target.parent
    if str(folder.absolute()) in _STREAMS or folder.absolute().is_relative_to("/proc"):
        raise SettingsError(f"{shown} is not a regular file")
    try:
        if not folder.is_dir():
            raise SettingsError(f"{shown}: the folder {printable(str(folder))} does not exist")
        if target.exists():
            if nodes_file not in (None, "-") and Path(nodes_file or "").exists() and target.samefile(nodes_file or ""):
                raise SettingsError(f"{shown} is the input list and is not overwritten: choose another file")
            if not stat.S_ISREG(target.stat().st_mode):
                raise SettingsError(f"{shown} exists and is not a regular file")
    except OSError as error:  # a folder on the way that this user cannot enter, a name that is too long
        raise SettingsError(f"{shown}: {error.strerror}") from None
    if not os.access(os.path.realpath(folder), os.W_OK):
        raise SettingsError(f"{shown}: no permission to write in {printable(str(folder))}")


def write_good(path: str, nodes: Sequence[Node], good: Collection[str]) -> None:
    """Write the list atomically. Raises SettingsError on failure."""
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        temporary.write_text(listing_of(nodes, good), encoding="utf-8")
        temporary.replace(target)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise SettingsError(f"--good-nodes: {printable(path)}: {error.strerror}") from None


def listing_of(nodes: Sequence[Node], good: Collection[str]) -> str:
    """Return the text: the lines of a file with comments, a list for -H, or a Slurm node list."""
    forms = {line.form for node in nodes for line in node.lines}
    if forms == {"file"}:
        return "".join(f"{line}\n" for line in _file_lines(nodes, good))
    if forms == {"hosts"}:
        return ",".join(part for line, names in _lines(nodes, good) for part in _rewritten(line, names)) + "\n"
    return fold(node.name for node in nodes if node.name in good) + "\n"


def _file_lines(nodes: Sequence[Node], good: Collection[str]) -> Iterator[str]:
    for line, names in _lines(nodes, good):
        yield from line.before
        yield from _rewritten(line, names)


def _lines(nodes: Sequence[Node], good: Collection[str]) -> Iterator[tuple[Line, list[tuple[str, bool]]]]:
    """Yield each line once, in order, with its names and whether each is good."""
    members: dict[Line, list[tuple[str, bool]]] = {}
    for node in nodes:
        for line in node.lines:
            members.setdefault(line, []).append((node.name, node.name in good))
    order = sorted(members, key=lambda line: _number(line.place))
    yield from ((line, members[line]) for line in order)


def _number(place: str) -> int:
    number = place.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _rewritten(line: Line, names: list[tuple[str, bool]]) -> list[str]:
    """Return a line for its good names: unchanged, with smaller ranges, or nothing."""
    good = [name for name, is_good in names if is_good]
    if not good or len(good) == len(names):
        return [line.text] if good else []
    return [line.text.replace(line.names, part, 1) for part in split_list(fold(good))]
