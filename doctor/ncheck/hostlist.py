"""Node sets: node[01-16] to names and back, by ClusterShell. Its input is validated here first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ncheck.expression import expression
from ncheck.text import printable

MOST = 65536  # names in one list

# gpu-07.rack2.example.com
_NAME = expression(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)

# rack[1-4]-node[01-16,20,30-40/2].ib
_PATTERN = expression(r"(?:[A-Za-z0-9_.-]|\[[0-9,/-]+\])+", re.ASCII)

# 01-16/5
_RANGE = expression(r"(?P<first>\d+)(?:-(?P<last>\d+)(?:/(?P<step>\d+))?)?", re.ASCII)

# [01-16,20]
_BRACKETS = expression(r"\[([^\[\]]*)\]")

# n[1-2].example.org, which Slurm calls an invalid hostlist; it accepts r[1-2]n[1-4]
_SUFFIX = expression(r"\][^][,]+(?:,|$)")

# commas and brackets in node[01-16,20],login
_STRUCTURE = expression(r"[\[\],]")

# fe80::1%eth0
_V6 = expression(r"[0-9A-Fa-f:]+(?:\d{1,3}(?:\.\d{1,3}){3})?(?:%[A-Za-z0-9_.-]+)?", re.ASCII)
_LONGEST_NAME = 253  # limit of DNS
_LONGEST_NUMBER = 9


def fold(names: Iterable[str]) -> str:
    """Return the names as one node set in natural order: node[01-03,07]. IPv6 addresses are listed as they are."""
    return _folded(tuple(dict.fromkeys(names)))


@lru_cache(maxsize=512)  # a report names the same nodes again and again
def _folded(listed: tuple[str, ...]) -> str:
    if len(listed) == 1:
        return listed[0]
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    foldable = [name for name in listed if is_name(name)]
    rest = sorted(name for name in listed if not is_name(name))
    folded = str(NodeSet.fromlist(foldable, resolver=RESOLVER_NOGROUP)) if foldable else ""
    return ",".join([*([folded] if folded else []), *rest])


def slurm_list(names: Iterable[str]) -> str:
    """Return the names as Slurm reads them: folded, unless something follows a bracket."""
    names = tuple(names)
    folded = fold(names)
    return ",".join(names) if _SUFFIX.search(folded) else folded


def unfold(text: str, most: int = MOST) -> tuple[str, ...]:
    """Return the names in a list of hosts, each once: "node[01-16,20],login", an address, a plain name.

    Raises ValueError with a message for the user who wrote the list.
    """
    names: dict[str, None] = {}
    for part in split_list(text):
        names.update(dict.fromkeys(_unfolded(part, most)))
        if len(names) > most:
            raise ValueError(f"{quoted(text)} expands to more than {most} hosts")
    return tuple(names)


def is_name(text: str) -> bool:
    """Return whether this can be a host name or an IPv4 address; it is then safe on any command line."""
    return len(text) <= _LONGEST_NAME and _reads_as_name(text)


@lru_cache(maxsize=4096)  # every node of a cluster names all the others
def _reads_as_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_v6(text: str) -> bool:
    """Return whether this is an IPv6 address, also with a zone ("fe80::1%eth0")."""
    if text.count(":") < 2 or len(text) > _LONGEST_NAME or not _V6.fullmatch(text):  # noqa: PLR2004  "::" is the shortest
        return False
    import ipaddress

    try:
        ipaddress.IPv6Address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def split_list(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts: list[str] = []
    depth = start = 0
    for found in _STRUCTURE.finditer(text):
        if found[0] == "," and depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
        depth += {"[": 1, "]": -1}.get(found[0], 0)
    return [*parts, text[start:].strip()]


def quoted(text: str) -> str:
    """Return user text for a message: printable, cut, in quotes."""
    return "'" + printable(text, 60) + "'"


def _unfolded(part: str, most: int) -> Iterable[str]:
    if is_name(part) or is_v6(part):
        return (part,)
    if not part:
        raise ValueError("a host name is missing before or after a comma")
    if "[" not in part and "]" not in part:
        raise ValueError(f"{quoted(part)} is not a host name: only letters, digits, '.', '_' and '-' are allowed")
    if not _PATTERN.fullmatch(part) or part.startswith("-"):
        raise ValueError(f"{quoted(part)} is not a host range; write it as node[01-16,20]")
    return _from_nodeset(part, most)


def _from_nodeset(part: str, most: int) -> Iterable[str]:
    if _size(part) > most:
        raise ValueError(f"{quoted(part)} expands to more than {most} hosts")
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        names = list(NodeSet(part, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        raise ValueError(f"{quoted(part)} is not a host range; write it as node[01-16,20]") from None
    if not all(is_name(name) for name in names):
        raise ValueError(f"{quoted(part)} expands to invalid host names")
    return names


def _size(part: str) -> int:
    """Count the names of a pattern before expanding it."""
    total = 1
    for brackets in _BRACKETS.findall(part):
        total *= sum(_ranges(brackets))
    return total


def _ranges(brackets: str) -> Iterator[int]:
    for text in brackets.split(","):
        found = _RANGE.fullmatch(text)
        if not found or any(len(number or "") > _LONGEST_NUMBER for number in found.groups()):
            raise ValueError(f"[{printable(brackets, 40)}] is not a range; write it as [01-16,20]")
        first, last = found["first"], found["last"] or found["first"]
        if int(last) < int(first):
            raise ValueError(f"the range {first}-{last} is reversed; write {last}-{first}")
        if len(first) > len(last) or (first[0] == "0" and len(first) != len(last) and first != "0"):
            raise ValueError(f"the range {first}-{last} mixes widths; write {first.zfill(len(last))}-{last}")
        yield (int(last) - int(first)) // max(int(found["step"] or 1), 1) + 1
