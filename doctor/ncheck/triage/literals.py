"""The words that a line must contain for a pattern to match: most lines lack them, and no pattern is tried.

They are derived from the patterns, so that there is no list to keep in step. Digits are no part of them: the template
of a line has none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Generic, TypeVar

from ncheck.expression import expression

SHORTEST = 3  # bytes: a shorter word is in most lines
_NOT_IN_TEMPLATES = expression(r"[\d*]+")  # EI0006: is ei: in a template
_OPEN = "\0"  # stands for any text that a pattern leaves open


def literals(pattern: re.Pattern[str]) -> frozenset[tuple[str, ...]]:
    """Return the words of each alternative of a pattern, in lower case, the longest first.

    A line that matches contains all words of one of them. () for an alternative without a word that is long enough, or
    if this version of Python does not tell the parts of a pattern.
    """
    parse = _parser()
    if parse is None:
        return frozenset({()})
    return frozenset(map(_words, _alternatives(parse(pattern.pattern, pattern.flags))))


def _words(text: str) -> tuple[str, ...]:
    left = _NOT_IN_TEMPLATES.sub("", text.lower()).split(_OPEN)
    words = sorted(filter(None, left), key=lambda word: (-len(word), word))
    return tuple(words) if words and len(words[0].encode()) >= SHORTEST else ()


def _parser() -> Any:  # noqa: ANN401  the parser of the standard library has no types
    """Return the standard library's parser of patterns, None if this version has none by this name.

    It is not public, and nothing public tells the parts of a pattern. Without it every pattern is tried on every line:
    the answers are the same, and they take longer.
    """
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


class WordIndex(Generic[Entry]):
    """Entries by the words that a line needs for them: pairs of alternatives, each some words, and an entry."""

    def __init__(self, entries: Sequence[tuple[Iterable[tuple[str, ...]], Entry]]) -> None:
        self._entries = [entry for _, entry in entries]
        self._always: list[int] = []
        self._by_word: dict[bytes, list[tuple[int, tuple[bytes, ...]]]] = {}
        for number, (alternatives, _) in enumerate(entries):
            for first, *rest in alternatives if () not in alternatives else ():
                needed = number, tuple(word.encode() for word in rest)
                self._by_word.setdefault(first.encode(), []).append(needed)
            if () in alternatives:
                self._always.append(number)
        # The pattern finds the shortest of the words that begin at a place; the longer ones are looked for then.
        self._any = re.compile(b"(?=(" + _trie(self._by_word) + b"))")
        self._beginning_with: dict[bytes, list[bytes]] = {}
        for word in self._by_word:
            found = self._any.match(word)
            self._beginning_with.setdefault(found[1] if found else word, []).append(word)

    def candidates(self, template: bytes) -> list[Entry]:
        """Return the entries for which a line with this template, in lower case, has the words, in their order."""
        numbers = set(self._always)
        for beginning in set(self._any.findall(template)):
            for word in self._beginning_with[beginning]:
                if word in template:
                    numbers.update(number for number, rest in self._by_word[word] if all(r in template for r in rest))
        return [self._entries[number] for number in sorted(numbers)]


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
