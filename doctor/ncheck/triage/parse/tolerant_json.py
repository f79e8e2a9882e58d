"""JSON that its writer spoiled: commas that are missing or too many, and text that is cut off. Nothing is made up.

NCCL 2.28.7 to 2.28.9 leave out a comma in each missing rank of their RAS answer (jsonWriteMissingRank in
src/ras/client_support.cc), and an answer may end in the middle where its process ends.
"""

from __future__ import annotations

import json

from ncheck.expression import expression

_DEEPEST = 32  # levels; RAS has seven


class Cut(dict[str, object]):
    """An object whose end is missing: its members so far."""


class CutList(list[object]):
    """A list whose end is missing: its items so far."""


def loads(text: str) -> tuple[object, bool]:
    """Return the value, and whether all of it was there. Raises ValueError if the text does not begin as JSON.

    A number, word or text that is not followed by anything may be cut itself: it is left out.
    """
    try:
        return json.loads(text), True
    except (ValueError, RecursionError):
        pass
    reader = _JsonReader(text)
    value = reader.value(0)
    if value is _NOTHING:
        raise ValueError("not JSON")
    return value, reader.whole and _SPACE.fullmatch(text, reader.at) is not None


_NOTHING = object()
_SPACE = expression(r"[ \t\r\n]*")

# "host": "172.16.64.245", -1.5e3 true {
_SYMBOL = expression(r'[ \t\r\n]*(?:([{}\[\],:])|("(?:[^"\\\x00-\x1f]|\\.)*")|([-+.\w]+))')


class _JsonReader:
    """Reads from left to right, and stops at what cannot be read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.whole = True

    def next(self) -> str:
        """Return the next symbol; "" at the end, and where there is none."""
        found = _SYMBOL.match(self.text, self.at)
        if not found:
            self.whole = False
            return ""
        self.at = found.end()
        return found[found.lastindex or 0]

    def value(self, depth: int) -> object:
        symbol = self.next()
        if symbol == "{" and depth < _DEEPEST:
            return self.members(depth + 1)
        if symbol == "[" and depth < _DEEPEST:
            return self.items(depth + 1)
        if not symbol or symbol in "{}[],:" or self.at == len(self.text):
            self.whole = False
            return _NOTHING
        return self.scalar(symbol)

    def scalar(self, symbol: str) -> object:
        if symbol.startswith('"') and "\\" not in symbol:
            return symbol[1:-1]
        try:
            found: object = json.loads(symbol)
        except ValueError:
            self.whole = False
            return _NOTHING
        return found

    def members(self, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while self.whole:
            symbol = self.next()
            if symbol == "}":
                return found
            if symbol == ",":
                continue
            name = self.scalar(symbol) if symbol.startswith('"') and self.next() == ":" else _NOTHING
            value = _NOTHING if name is _NOTHING else self.value(depth)
            if value is _NOTHING:
                break
            found[str(name)] = value
        self.whole = False
        return Cut(found)

    def items(self, depth: int) -> list[object]:
        values: list[object] = []
        while self.whole:
            before = self.at
            symbol = self.next()
            if symbol == "]":
                return values
            if symbol == ",":
                continue
            self.at = before
            value = self.value(depth)
            if value is not _NOTHING:
                values.append(value)
        self.whole = False
        return CutList(values)
