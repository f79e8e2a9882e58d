"""Whom a send or a receive is for, and its tag: as the line of code says it that a rank is at."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Message(NamedTuple):
    """What a call names: the other rank, and the tag. None where the line does not say it, or it cannot be computed."""

    peer: int | None = None
    tag: int | None = None


def message_of(line: str, function: str, rank: int | None, size: int | None) -> Message:
    """Return what one call in a line of code names, for the rank that runs it.

    WORLD.Send(BORDER, dest=1, tag=7) | dist.recv(activations, src=rank - 1) | comm.recv(source=(rank + 1) % size)
    """
    try:
        with warnings.catch_warnings():  # the code of a job may have what Python warns of
            warnings.simplefilter("ignore")
            tree = ast.parse(line.strip().rstrip(":"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Message()
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    call = next((one for one in calls if getattr(one.func, "attr", getattr(one.func, "id", "")) == function), None)
    if call is None:
        return Message()
    words = {one.arg: one.value for one in call.keywords}
    peer = next((words[name] for name in ("src", "dst", "source", "dest") if name in words), None)
    tag = words.get("tag")
    if peer is None and len(call.args) > 1:
        peer = call.args[1]
    return Message(_value(peer, rank, size), _value(tag, rank, size))


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mod: operator.mod, ast.BitXor: operator.xor,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip


def _value(node: ast.expr | None, rank: int | None, size: int | None) -> int | None:
    """Return a number of an expression of the rank and the world size."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name | ast.Attribute):
        name = (node.id if isinstance(node, ast.Name) else node.attr).lower().lstrip("_")
        return rank if name in ("rank", "my_rank", "myrank", "me") else size if name in _SIZES else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left, rank, size), _value(node.right, rank, size)
        if left is None or right is None or (right == 0 and isinstance(node.op, ast.Mod | ast.FloorDiv)):
            return None
        return _OPERATORS[type(node.op)](left, right)
    return None


_SIZES = frozenset({"size", "world_size", "worldsize", "world", "nranks", "nprocs", "n_ranks", "num_ranks"})
