"""`--good-nodes FILE`: the nodes without errors, listed as they were listed, for whatever starts the job."""

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

_STREAMS = ("/dev", "/dev/fd")  # /dev/stdout leads to whatever file the report is sent to


def writable(path: str, nodes_file: str | None) -> None:
    """Refuse, before any node is asked, what cannot be written in the end. Raises SettingsError."""
    shown = f"--good-nodes: {printable(path)}"
    if path == "-":
        raise SettingsError("--good-nodes: a file is wanted, and - is none: the report goes to standard output")
    target = Path(path)
    folder = target.parent
    if str(folder.absolute()) in _STREAMS or folder.absolute().is_relative_to("/proc"):
        raise SettingsError(f"{shown} is no plain file")
    if not folder.is_dir():
        raise SettingsError(f"{shown}: there is no folder {printable(str(folder))}")
    if target.exists():
        if nodes_file not in (None, "-") and Path(nodes_file or "").exists() and target.samefile(nodes_file or ""):
            raise SettingsError(f"{shown} is the list that is read: name another file, it is not written over")
        if not stat.S_ISREG(target.stat().st_mode):
            raise SettingsError(f"{shown} is there and is no plain file")
    if not os.access(os.path.realpath(folder), os.W_OK):
        raise SettingsError(f"{shown}: this user may not write in {printable(str(folder))}")


def write_good(path: str, nodes: Sequence[Node], good: Collection[str]) -> None:
    """Write the list, whole or not at all. Raises SettingsError where that fails."""
    target = Path(path).resolve()
    made = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        made.write_text(listing_of(nodes, good), encoding="utf-8")
        made.replace(target)
    except OSError as error:
        with suppress(OSError):
            made.unlink()
        raise SettingsError(f"--good-nodes: {printable(path)}: {error.strerror}") from None


def listing_of(nodes: Sequence[Node], good: Collection[str]) -> str:
    """Return the text: the lines of a file with their comments, a list for -H, or a node list as Slurm writes them."""
    forms = {line.form for node in nodes for line in node.lines}
    if forms == {"file"}:
        return "".join(f"{line}\n" for line in _file(nodes, good))
    if forms == {"hosts"}:
        return ",".join(part for line, names in _lines(nodes, good) for part in _again(line, names)) + "\n"
    return fold(node.name for node in nodes if node.name in good) + "\n"


def _file(nodes: Sequence[Node], good: Collection[str]) -> Iterator[str]:
    for line, names in _lines(nodes, good):
        yield from line.before
        yield from _again(line, names)


def _lines(nodes: Sequence[Node], good: Collection[str]) -> Iterator[tuple[Line, list[tuple[str, bool]]]]:
    """Yield each line once, in its order, with the names in it and whether each is good."""
    members: dict[Line, list[tuple[str, bool]]] = {}
    for node in nodes:
        for line in node.lines:
            members.setdefault(line, []).append((node.name, node.name in good))
    order = sorted(members, key=lambda line: _number(line.place))
    yield from ((line, members[line]) for line in order)


def _number(place: str) -> int:
    number = place.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _again(line: Line, names: list[tuple[str, bool]]) -> list[str]:
    """Write a line again for the good ones of its names: as it was, narrowed to a smaller range, or not at all."""
    good = [name for name, is_good in names if is_good]
    if not good or len(good) == len(names):
        return [line.text] if good else []
    return [line.text.replace(line.names, part, 1) for part in split_list(fold(good))]
