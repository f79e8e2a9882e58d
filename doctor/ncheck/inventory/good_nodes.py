"""`--good-nodes FILE`, `--bad-nodes FILE`: some of the nodes, in the format in which all were listed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ncheck.hostlist import fold, split_list
from ncheck.model.node import ListLine, Node


def listing_of(nodes: Sequence[Node], good: Collection[str]) -> str:
    """Return the good ones as text: the lines of a file with comments, a list for -H, or a Slurm node list."""
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


def _lines(nodes: Sequence[Node], good: Collection[str]) -> Iterator[tuple[ListLine, list[tuple[str, bool]]]]:
    """Yield each line once, in order, with its names and whether each is good."""
    members: dict[ListLine, list[tuple[str, bool]]] = {}
    for node in nodes:
        for line in node.lines:
            members.setdefault(line, []).append((node.name, node.name in good))
    order = sorted(members, key=lambda line: _number(line.place))
    yield from ((line, members[line]) for line in order)


def _number(place: str) -> int:
    number = place.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _rewritten(line: ListLine, names: list[tuple[str, bool]]) -> list[str]:
    """Return a line for its good names: unchanged, with smaller ranges, or nothing."""
    good = [name for name, is_good in names if is_good]
    if not good or len(good) == len(names):
        return [line.text] if good else []
    return [line.text.replace(line.names, part, 1) for part in split_list(fold(good))]
