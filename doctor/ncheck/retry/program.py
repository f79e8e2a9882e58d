"""The program's own words that name nodes: torchrun started by srun has an address of the first node, and a number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ncheck.hostlist import quoted

_MEETING = ("master_addr", "rdzv_endpoint", "main_process_ip")
_COUNTS = ("nnodes", "num_machines")


class NamesNodeError(Exception):
    """The program names a node that has lost its place, and ncheck cannot change that; the message says where."""


def moved(
    program: Sequence[str], before: Sequence[str], after: Sequence[str], known_as: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Return the program for other nodes: where the ranks meet, and how many nodes there are. Raises NamesNodeError.

    `known_as` are the names and addresses of each node of `before`.
    """
    gone = {name: node for node in before if node not in after for name in (node, *known_as.get(node, ()))}
    words = list(program)
    for at, word in enumerate(words):
        option, is_, value = word.rpartition("=") if "=" in word else (words[at - 1] if at else "", "", word)
        name = option.lstrip("-").replace("-", "_").lower()
        host, port, number = value.partition(":")
        if name in _MEETING and host in gone:
            words[at] = f"{option}{is_}{after[0]}{port}{number}" if is_ else f"{after[0]}{port}{number}"
        elif name in _COUNTS and len(after) != len(before):
            words[at] = f"{option}{is_}{_count(value, before, after)}" if is_ else _count(value, before, after)
        elif named := next((one for one in gone if _names(word, one)), None):
            raise NamesNodeError(f"the program names {named} itself, in {quoted(word)}")
    return tuple(words)


def require_movable(program: Sequence[str], names: Sequence[str], spare: str = "") -> None:
    """Raise NamesNodeError where the program could not be started with the spare in place of a node, or without it."""
    for name in names:
        after = [spare if spare and one == name else one for one in names if spare or one != name]
        if after:
            moved(program, names, after, {})


def _count(value: str, before: Sequence[str], after: Sequence[str]) -> str:
    """Return how many nodes there are: "4" becomes "3", and "3:4" stays."""
    least, colon, _ = value.partition(":")
    if colon and least.isdecimal() and int(least) <= len(after):
        return value
    if value == str(len(before)):
        return str(len(after))
    raise NamesNodeError(f"the program asks for {quoted(value)} nodes, and {len(after)} are left")


def _names(word: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", word) is not None
