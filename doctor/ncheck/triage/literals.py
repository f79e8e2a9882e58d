"""The words that a line must contain for a pattern to match: most lines have none of them, and no pattern is tried.

They are derived from the patterns, so that there is no list to keep in step. Digits are no part of them: the template
of a line has none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Generic, TypeVar

SHORTEST = 3  # characters: a shorter word is in most lines


_NOT_LITERAL = re.compile(r"[\0\d*]+")


_OPEN = "\0"  # stands for any text that a pattern leaves open


def literals(pattern: re.Pattern[str]) -> frozenset[str]:
    """Return one word for each alternative of a pattern, in lower case: each line that matches contains one of them.

    "" if an alternative has no word, or if this version of Python does not tell the parts of a pattern.
    """
    parse = _parser()
    if parse is None:
        return frozenset({""})
    texts = _alternatives(parse(pattern.pattern, pattern.flags))
    words = {max(_NOT_LITERAL.split(text.lower()), key=len) for text in texts}
    return frozenset(word if len(word) >= SHORTEST else "" for word in words)


def _parser() -> Any:  # noqa: ANN401  the parser of the standard library has no types
    try:
        return import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse").parse
    except (ImportError, AttributeError):
        return None


def _alternatives(parsed: Iterable[tuple[Any, Any]]) -> list[str]:
    """Return the texts that a pattern requires, one per alternative."""
    found = [""]
    for kind, value in parsed:
        parts = list(dict.fromkeys(_part(str(kind), value)))
        found = [text + more for text in found for more in parts]
    return found


def _part(kind: str, value: Any) -> list[str]:  # noqa: ANN401  as above
    if kind == "LITERAL":
        return [chr(value)]
    if kind == "IN" and all(str(item) == "LITERAL" for item, _ in value):
        if len({chr(code).lower() for _, code in value}) == 1:
            return [chr(value[0][1])]  # [Ff]
    elif kind == "BRANCH":
        return [text for branch in value[1] for text in _alternatives(branch)]
    elif kind == "SUBPATTERN":
        return _alternatives(value[-1])
    elif kind in ("MAX_REPEAT", "MIN_REPEAT") and value[0] > 0:
        return [text + _OPEN for text in _alternatives(value[2])]
    return [_OPEN]


Entry = TypeVar("Entry")


class Index(Generic[Entry]):
    """Entries by the words that a line needs for them. `entries` are pairs of words and entry; order is kept."""

    def __init__(self, entries: Sequence[tuple[Iterable[str], Entry]]) -> None:
        self._entries = [entry for _, entry in entries]
        by_word: dict[str, list[int]] = {}
        for number, (words, _) in enumerate(entries):
            for word in words:
                by_word.setdefault(word, []).append(number)
        self._always = by_word.pop("", [])
        self._words: Mapping[bytes, list[int]] = {word.encode(): numbers for word, numbers in by_word.items()}
        self._any = re.compile(_trie(self._words))

    def candidates(self, template: bytes) -> list[Entry]:
        """Return the entries of which a line with this template, in lower case, contains a word."""
        if not self._always and not self._any.search(template):
            return []
        numbers = {number for word, numbers in self._words.items() if word in template for number in numbers}
        return [self._entries[number] for number in sorted(numbers.union(self._always))]


def _trie(words: Iterable[bytes]) -> bytes:
    """Return a pattern that finds any of the words; it looks at each character of a text once or twice."""
    tree: dict[bytes, Any] = {}
    for word in words:
        node = tree
        for at in range(len(word)):
            node = node.setdefault(word[at : at + 1], {})
        node[b""] = {}
    return _branches(tree)


def _branches(node: Mapping[bytes, Any]) -> bytes:
    if b"" in node:  # a longer word with this beginning is found with it
        return b""
    parts = [re.escape(char) + _branches(rest) for char, rest in sorted(node.items())]
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"
