"""A module's text without what only its readers need: a node gets a quarter fewer bytes."""

from __future__ import annotations

import ast
import threading
from itertools import accumulate

_PARSING = threading.Lock()  # Python 3.11 counts the depth of a parse for all threads together, and then refuses it
_Placed = ast.expr | ast.stmt | ast.arg


def without_notes(text: str) -> str:
    """Return a module's text without annotations, docstrings, imports of types and lines of comments.

    Each line keeps its number: a traceback from a node names the line of the source.
    """
    notes = _Notes(text.encode())
    with _PARSING:
        tree = ast.parse(text)
    notes.visit(tree)
    return notes.left()


class _Notes(ast.NodeVisitor):
    """The places to cut out, as offsets in bytes, with what stands there instead."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = data.split(b"\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]  # offsets
        self.cuts: list[tuple[int, int, bytes]] = []
        self.quoted: set[int] = set()  # lines that begin within a text: a "#" there is no comment

    def left(self) -> str:
        for number, line in enumerate(self.lines):
            if number not in self.quoted and line.lstrip().startswith(b"#"):
                self.cuts.append((self.starts[number], self.starts[number] + len(line), b""))
        parts, at = [], 0
        for start, end, instead in sorted(self.cuts):
            if start >= at:  # not inside the one before
                parts += [self.data[at:start], instead, b"\n" * self.data.count(b"\n", start, end)]
                at = end
        return b"".join([*parts, self.data[at:]]).decode()

    def visit_Constant(self, node: ast.Constant) -> None:
        self.quoted.update(range(node.lineno, node.end_lineno or 0))

    def visit_arg(self, node: ast.arg) -> None:
        self._cut(self._start(node), node, node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self._cut(self._end(node.target), node.annotation)
            self.visit(node.value)
        else:
            self._cut(self._start(node), node, "pass")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            self._cut(self._start(node.body[0]), node.body[-1], "pass")
            node.body = []
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.returns:
            self._cut(self.data.rindex(b"->", 0, self._start(node.returns)), node.returns)
        self.visit_ClassDef(node)

    def visit_ClassDef(self, node: ast.ClassDef | ast.FunctionDef | ast.Module) -> None:
        if ast.get_docstring(node, clean=False) is not None:
            self._cut(self._start(node.body[0]), node.body[0], "pass")
        self.generic_visit(node)

    visit_Module = visit_ClassDef  # noqa: N815

    def _cut(self, start: int, last: _Placed, instead: str = "") -> None:
        self.cuts.append((start, self._end(last), instead.encode()))

    def _start(self, node: _Placed) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: _Placed) -> int:
        assert node.end_lineno is not None  # noqa: S101  of what was parsed
        assert node.end_col_offset is not None  # noqa: S101
        return self.starts[node.end_lineno - 1] + node.end_col_offset
