"""A message as its difference from another one: what the nodes are asked of each other is nearly the same for all.

Each node tries the same addresses in an order of its own. agent/broadcast.py puts the message together again.
"""

from __future__ import annotations

from ncheck.agent.broadcast import PART

GRAIN = 32  # bytes that must be the same
STRIDE = 8  # bytes between two looks for a piece that is the same
MOST_ALONE = 2000  # bytes that are found nowhere: more, and the messages are not alike


def delta(text: bytes, base: bytes) -> bytes:
    """Return `text` in parts, each a piece of `base` and some bytes of its own; b"" where they are not alike."""
    parts, alone, at = [], 0, 0
    offset = length = own = 0  # of the part that is being made; its own bytes end at `at`
    while at < len(text):
        found = base.find(text[at : at + GRAIN])
        if found < 0:
            alone += STRIDE
            at += STRIDE
            if alone > MOST_ALONE:
                return b""
            continue
        parts.append(_part(offset, length, text[own:at]))
        offset, length = found, _common(text, at, base, found)
        at = own = at + length
    return b"".join([*parts, _part(offset, length, text[own:])])


def _part(offset: int, length: int, own: bytes) -> bytes:
    packed: bytes = PART.pack(offset, length, len(own))
    return packed + own


def _common(text: bytes, at: int, base: bytes, start: int) -> int:
    """Return how many bytes are the same from these places on."""
    least, most = 0, min(len(text) - at, len(base) - start)
    while least < most:
        middle = (least + most + 1) // 2
        if text[at + least : at + middle] == base[start + least : start + middle]:
            least = middle
        else:
            most = middle - 1
    return least
