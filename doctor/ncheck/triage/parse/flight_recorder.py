"""PyTorch's flight recorder: what one rank wrote of its last collectives, as pickle or as JSON.

A dump comes from a stranger, so nothing is built of it but dictionaries, lists, tuples, texts and numbers: of the
opcodes of pickle, those for plain data are read, and any other refuses the file. The C unpickler is used where a look
at the opcodes shows that it cannot take much time or memory; else, and for a dump that is cut, a reader of our own,
which keeps what came before the end. Of the data, only texts and numbers are turned into words: a list may hold itself.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import re
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.model.fact import Unread
from ncheck.text import printable


@dataclass(frozen=True)
class Call:
    """One collective, or one send or receive, as a rank recorded it.

    `number` counts the collectives of its group, or its transfers; the same number is the same collective on all
    ranks. `what` is its name and what must be equal on all ranks: "all_reduce of 1024 Float". `state` is scheduled,
    started (its kernel runs), completed, or called: gloo says no more. `frames` are the nearest of the program's own,
    the innermost first: "train.py:41 in step". `peer` is the other rank of a transfer, counted in its group.
    """

    number: int
    what: str
    state: str
    frames: tuple[str, ...] = ()
    peer: int | None = None
    sends: bool = False


@dataclass(frozen=True)
class DumpGroup:
    """One process group as one rank sees it. `ranks`: its members, as text; "" if the dump does not say.

    `last` is the number of the last collective that the rank called, `waiting` the first that is not completed.
    `calls` says of the last ones what they were, from number `first` on; "" for one that is not recorded.
    `transfers` are the sends and receives that are not completed.
    """

    name: str
    about: str
    ranks: str
    first: int
    calls: tuple[str, ...]
    last: int
    waiting: Call | None = None
    latest: Call | None = None
    transfers: tuple[Call, ...] = ()

    def what(self, number: int) -> str:
        """Return what the collective with this number was; "" if that is not recorded."""
        at = number - self.first
        return self.calls[at] if 0 <= at < len(self.calls) else ""


@dataclass(frozen=True)
class Dump:
    """One rank's dump. `cut`: why it is not whole: its newest entries are missing. `entries` were read.

    `limit`: the least seconds after which one of those that are not completed ends the job, None if it is not recorded.
    """

    version: str
    groups: tuple[DumpGroup, ...]
    entries: int
    cut: str = ""
    limit: float | None = None


ENDED = "it ends in the middle"  # a dump that the rank itself did not write to its end
MOST = 16 * 2**20  # bytes of one dump that are read
_MOST_OPERATIONS = 1_500_000  # of our own reader
_MOST_CONTAINERS = 500_000  # that the C unpickler may make: 32 MB
_MOST_HASHES = 60_000  # values whose hash is no secret: with more, a dictionary can be made that takes minutes
_MOST_DEEP = 40  # lists within lists, of JSON
_KEPT = 256  # calls of a group, before the last
_MOST_GROUPS, _MOST_TRANSFERS, _MOST_FRAMES, _MOST_SHAPES = 512, 64, 4, 4096
_MOST_AHEAD = 4096  # calls of a group that are kept
_LONGEST = 400
_BEFORE = 16  # calls before the first that is not completed
_LARGEST = 2**63


def is_dump(head: bytes) -> bool:
    """Tell whether a file that begins so may be a dump of the flight recorder."""
    if head[:1] == b"\x80":
        return b"version" in head[:200] and (b"pg_config" in head[:400] or b"entries" in head[:400])
    return head.lstrip()[:1] == b"{" and any(key in head[:4096] for key in _JSON_KEYS)


_JSON_KEYS = (b'"comm_lib_version"', b'"nccl_comm_state"', b'"pg_config"', b'"collective_seq_id"')


def read(data: bytes, cut: str = "") -> Dump | Unread:
    """Read a dump. `cut`: why this is only its beginning."""
    if not data:
        return Unread("the dump is empty: the rank ended, or the disk was full, when it was to be written")
    if not data.strip(b"\0"):
        return Unread("the dump has only zeros: the node or its file system failed while it was written")
    if len(data) > MOST:
        data, cut = data[:MOST], cut or f"only the first {MOST // 2**20} MiB are read"
    try:
        value, end = _pickled(data) if data[:1] == b"\x80" else _json(data)
        return _dump(value, cut or end)
    except _RefusedError as error:
        return Unread(f"no dump of the flight recorder: {error}")
    except RecursionError:
        return Unread("no dump of the flight recorder: it nests too deep")
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, struct.error, MemoryError) as error:
        return Unread(f"no dump of the flight recorder: {printable(str(error) or type(error).__name__, _LONGEST)}")


class _RefusedError(Exception):
    """The file is none that torch writes."""


def _json(data: bytes) -> tuple[object, str]:
    if data.lstrip()[:1] != b"{":
        raise _RefusedError("neither pickle nor JSON")
    text = data.decode("utf-8", "replace")
    if re.search(rf"(?:\[\s*){{{_MOST_DEEP}}}", text) or text.count("{") + text.count("[") > _MOST_CONTAINERS:
        raise _RefusedError("it nests too deep, or holds too much")
    if re.search(r"\d{25}", text):
        raise _RefusedError("it holds a number that is too large")
    try:
        return json.loads(text), ""
    except json.JSONDecodeError as error:
        if error.pos < len(text) - 1 and "Unterminated" not in error.msg:
            raise _RefusedError("it is no valid JSON") from None
    return json.loads(_closed(text)), ENDED


def _closed(text: str) -> str:
    """Return JSON that ends in the middle, with the last whole entry as its end."""
    end = text.rfind("},{")
    if end < 0:
        raise _RefusedError("its JSON ends before the first entry")
    opened: list[str] = []
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', text[: end + 1]):
        if found[0] in "{[":
            opened.append("}" if found[0] == "{" else "]")
        elif found[0] in "}]":
            opened.pop()
    return text[: end + 1] + "".join(reversed(opened))


# Pickle


class _Plain(pickle.Unpickler):
    """Builds plain data: a pickle that names a class or a function is refused."""

    def find_class(self, module: str, name: str) -> object:
        raise _RefusedError(f"its pickle names {printable(f'{module}.{name}', _LONGEST)}")


# Opcodes of a fixed length that build plain data. torch writes protocol 2, Python's own pickle up to 5.
# qX rXxxx \x94: into the memo. hX jXxxx: out of it. KX Mxx Jxxxx \x8a\x08xxxxxxxx: whole numbers. Gxxxxxxxx: another.
_RUN = re.compile(
    rb"(?:[qhK].|[(uesat\]})N\x85-\x89\x94]|\x8a\x08.{8}|[rj]..[\x00-\x0f]\x00|M..|J....|G.{8}"
    rb"|\x8a\x07.{7}|\x8a\x06.{6}|\x8a\x05.{5}|\x95.{8}){0,8192}",
    re.DOTALL,
)
_TEXT, _SHORT_TEXT, _STOP = b"X\x8c."
_PROTOCOL = 2  # bytes of the first opcode


def _pickled(data: bytes) -> tuple[object, str]:
    """Return what a pickle holds, and why that is not all."""
    if not _is_harmless(data):
        return _PickleReader(data).read()
    try:
        return _Plain(io.BufferedReader(io.BytesIO(data), len(data))).load(), ""  # unbuffered, it takes twice as long
    except (pickle.UnpicklingError, EOFError) as error:
        raise _RefusedError(f"its pickle is broken: {printable(str(error), _LONGEST)}") from None


def _is_harmless(data: bytes) -> bool:
    """Tell whether the C unpickler can read this without taking much time or memory.

    It is whole, has no opcode but those above, no large index into the memo, and not too many containers or keys.
    """
    if _count(data, b"}]t\x85\x86\x87") > _MOST_CONTAINERS or _count(data, b"JG\x8at\x85\x86\x87") > _MOST_HASHES:
        return False
    at, end = _PROTOCOL, len(data)
    while at < end:
        found = _RUN.match(data, at)
        after = found.end() if found else at
        if after == end:
            return False
        opcode = data[after]
        if opcode == _TEXT:
            at = after + 5 + int.from_bytes(data[after + 1 : after + 5], "little")
        elif opcode == _SHORT_TEXT and after + 1 < end:
            at = after + 2 + data[after + 1]
        elif opcode == _STOP:
            return True
        elif after == at:
            return False
        else:
            at = after
    return False


def _count(data: bytes, chosen: bytes) -> int:
    """Count these bytes, wherever they are: no opcode is used more often."""
    return len(data) - len(data.translate(None, chosen))


class _PickleReader:
    """Reads a pickle of plain data opcode by opcode, and keeps what it has when the data ends."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = _PROTOCOL
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}

    def read(self) -> tuple[object, str]:
        """Return the value, and why it is not whole."""
        for _ in range(_MOST_OPERATIONS):
            if self.at >= len(self.data):
                return self._so_far(), ENDED
            opcode = self.data[self.at]
            if opcode == _STOP:
                if self.marks or len(self.stack) != 1:
                    raise _RefusedError("its pickle is broken")
                return self.stack[0], ""
            step = _STEPS.get(opcode)
            if step is None:
                raise _RefusedError(f"its pickle has the opcode {opcode:#04x}, which builds more than plain data")
            length, act = step
            operand = self.data[self.at + 1 : self.at + 1 + length]
            if len(operand) < length:
                return self._so_far(), ENDED
            self.at += 1 + length
            if opcode in _WITH_LENGTH:
                size = int.from_bytes(operand, "little")
                if opcode == _LONG and size > _MOST_LONG:
                    raise _RefusedError("it holds a number that is too large")
                operand = self.data[self.at : self.at + size]
                if len(operand) < size:
                    return self._so_far(), ENDED
                self.at += size
            act(self, operand)
        return self._so_far(), f"only its first {_MOST_OPERATIONS:,} operations are read"

    def _so_far(self) -> object:
        """Close all that is open, the innermost first."""
        while self.marks:
            items = self.since_mark()
            if self.stack and isinstance(self.stack[-1], dict):
                _into(self.stack[-1], items[: len(items) // 2 * 2])
            elif self.stack and isinstance(self.stack[-1], list):
                self.stack[-1].extend(items)
        return self.stack[0] if self.stack else None

    def push(self, value: object) -> None:
        self.stack.append(value)

    def since_mark(self) -> list[object]:
        """Take what was pushed since the last mark."""
        at = self.marks.pop()
        items = self.stack[at:]
        del self.stack[at:]
        return items

    def append(self, items: Sequence[object]) -> None:
        held = self.stack[-1]
        if not isinstance(held, list):
            raise _RefusedError("its pickle is broken")
        held.extend(items)

    def put(self, items: Sequence[object]) -> None:
        held = self.stack[-1]
        if not isinstance(held, dict) or len(items) % 2:
            raise _RefusedError("its pickle is broken")
        _into(held, items)

    def gather(self, count: int) -> None:
        """Make a tuple of the last values."""
        if len(self.stack) < count:
            raise _RefusedError("its pickle is broken")
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def remember(self, index: int) -> None:
        self.memo[index] = self.stack[-1]


def _into(held: dict[object, object], items: Sequence[object]) -> None:
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, str):
            raise _RefusedError("it has a key that is no text")
        held[key] = value


def _little(operand: bytes) -> int:
    return int.from_bytes(operand, "little")


def _signed(operand: bytes) -> int:
    return int.from_bytes(operand, "little", signed=True)


_LONG, _MOST_LONG = 0x8A, 16
_WITH_LENGTH = frozenset({_TEXT, _SHORT_TEXT, _LONG})
_Step = Callable[[_PickleReader, bytes], None]
_STEPS: Mapping[int, tuple[int, _Step]] = {
    _TEXT: (4, lambda reader, text: reader.push(text.decode("utf-8", "replace"))),
    _SHORT_TEXT: (1, lambda reader, text: reader.push(text.decode("utf-8", "replace"))),
    _LONG: (1, lambda reader, number: reader.push(_signed(number))),
    b"K"[0]: (1, lambda reader, number: reader.push(_little(number))),
    b"M"[0]: (2, lambda reader, number: reader.push(_little(number))),
    b"J"[0]: (4, lambda reader, number: reader.push(_signed(number))),
    b"G"[0]: (8, lambda reader, number: reader.push(struct.unpack(">d", number)[0])),
    b"N"[0]: (0, lambda reader, _: reader.push(None)),
    0x88: (0, lambda reader, _: reader.push(value=True)),
    0x89: (0, lambda reader, _: reader.push(value=False)),
    b"}"[0]: (0, lambda reader, _: reader.push({})),
    b"]"[0]: (0, lambda reader, _: reader.push([])),
    b")"[0]: (0, lambda reader, _: reader.push(())),
    b"("[0]: (0, lambda reader, _: reader.marks.append(len(reader.stack))),
    b"t"[0]: (0, lambda reader, _: reader.push(tuple(reader.since_mark()))),
    0x85: (0, lambda reader, _: reader.gather(1)),
    0x86: (0, lambda reader, _: reader.gather(2)),
    0x87: (0, lambda reader, _: reader.gather(3)),
    b"a"[0]: (0, lambda reader, _: reader.append([reader.stack.pop()])),
    b"e"[0]: (0, lambda reader, _: reader.append(reader.since_mark())),
    b"s"[0]: (0, lambda reader, _: reader.put([reader.stack.pop(-2), reader.stack.pop()])),
    b"u"[0]: (0, lambda reader, _: reader.put(reader.since_mark())),
    b"q"[0]: (1, lambda reader, index: reader.remember(_little(index))),
    b"r"[0]: (4, lambda reader, index: reader.remember(_little(index))),
    0x94: (0, lambda reader, _: reader.remember(len(reader.memo))),
    b"h"[0]: (1, lambda reader, index: reader.push(reader.memo[_little(index)])),
    b"j"[0]: (4, lambda reader, index: reader.push(reader.memo[_little(index)])),
    0x95: (8, lambda _reader, _length: None),
}

# What a dump holds

_Entry = dict[str, object]


def _dump(value: object, cut: str) -> Dump:
    if not isinstance(value, dict) or not any(key in value for key in ("entries", "pg_config", "pg_status")):
        raise _RefusedError("it has no entries")
    entries, config = value.get("entries", []), value.get("pg_config")
    if not isinstance(entries, (list, tuple)):
        raise _RefusedError("its entries are no list")
    by_group: dict[tuple[str, str], list[_Entry]] = {}
    for entry in entries:
        if type(entry) is dict and "state" in entry:  # the last one of a dump that is cut is not whole
            by_group.setdefault(_group_of(entry), []).append(entry)
    config = config if isinstance(config, dict) else {}
    chosen = sorted(by_group.items(), key=lambda one: -len(one[1]))[:_MOST_GROUPS]
    groups = tuple(_group(name, _members(config, name), held) for name, held in sorted(chosen, key=lambda one: one[0]))
    version = printable(_text(value.get("version")), 40)
    limits = [limit for held in by_group.values() for one in held if not _is_done(one) and (limit := _limit(one))]
    return Dump(version, groups, sum(map(len, by_group.values())), cut, min(limits, default=None))


def _limit(entry: _Entry) -> float | None:
    found = entry.get("timeout_ms")
    return found / 1000 if type(found) is int and 0 < found < _LARGEST else None


def _group_of(entry: _Entry) -> tuple[str, str]:
    """Return a group's name and description; the oldest dumps have a number alone."""
    group = entry.get("process_group")
    if isinstance(group, (tuple, list)) and len(group) == len(("name", "description")):
        name, about = group
        return (name, about) if type(name) is type(about) is str else (_text(name), _text(about))
    return _text(entry.get("pg_id") if group is None else group), ""


def _text(value: object) -> str:
    """Return a text or a number as words, and anything else as none."""
    if isinstance(value, str):
        return value[:_LONGEST]
    return str(value) if isinstance(value, (int, float)) and abs(value) < _LARGEST else ""


def _members(config: Mapping[object, object], group: tuple[str, str]) -> str:
    """Return the ranks of a group as pg_config lists them: "[0, 1]"."""
    held = config.get(group[0])
    ranks = held.get("ranks") if isinstance(held, dict) else None
    if isinstance(ranks, (list, tuple)):
        ranks = str([one for one in ranks if type(one) is int and 0 <= one < _LARGEST])
    if not isinstance(ranks, str) or not re.fullmatch(r"\[\d[\d, ]{0,600000}\]", ranks):
        return ""
    return sys.intern(ranks)


def _group(name: tuple[str, str], ranks: str, entries: Iterable[_Entry]) -> DumpGroup:
    collectives: dict[int, _Entry] = {}  # the last entry of each number: it has the state of all that are coalesced
    transfers: dict[int, _Entry] = {}
    kept: list[tuple[int, _Entry]] = []
    sent: list[tuple[int, _Entry]] = []
    for entry in entries:
        if entry["is_p2p"] if "is_p2p" in entry else _TRANSFER.search(_text(entry.get("profiling_name"))):
            number = entry.get("p2p_seq_id", entry.get("seq_id"))
            if type(number) is int and 0 <= number < _LARGEST:
                transfers[number] = entry
                sent.append((number, entry))
            continue
        number = entry.get("collective_seq_id", entry.get("seq_id"))
        if type(number) is int and 0 <= number < _LARGEST:
            collectives[number] = entry
            kept.append((number, entry))
    undone = tuple(_call(number, one) for number, one in sent if not _is_done(transfers[number]))[-_MOST_TRANSFERS:]
    title, about = (sys.intern(printable(one, _LONGEST)) for one in name)
    moved = tuple(one for one in undone if one.peer is not None)
    if not collectives:
        return DumpGroup(title, about, ranks, 0, (), 0, transfers=moved)
    last = max(collectives)
    waiting = _first_waiting(collectives)
    before = last - _KEPT if waiting is None else min(waiting - _BEFORE, last - _KEPT)
    first = max(min(collectives), before, last - _MOST_AHEAD)
    parts: dict[int, list[_Entry]] = {}
    for number, entry in kept:
        if number >= first:
            parts.setdefault(number, []).append(entry)
    calls = tuple(_what_all(parts[number]) if number in parts else "" for number in range(first, last + 1))
    return DumpGroup(
        title, about, ranks, first, calls, last,
        None if waiting is None else replace(_call(waiting, collectives[waiting]), what=_of(calls, waiting - first)),
        replace(_call(last, collectives[last]), what=calls[-1]), moved,
    )  # fmt: skip


def _first_waiting(collectives: Mapping[int, _Entry]) -> int | None:
    """Return the number of the first that is not completed; on one stream, none is completed before those ahead."""
    undone = [number for number, one in collectives.items() if not _is_done(one)]
    if not undone:
        return None
    if _text(collectives[undone[0]].get("profiling_name")).startswith(_GLOO):
        return min(undone)
    done = max((number for number, one in collectives.items() if one["state"] == "completed"), default=-1)
    return min((number for number in undone if number > done), default=None)


def _of(calls: Sequence[str], at: int) -> str:
    return calls[at] if 0 <= at < len(calls) else ""


# nccl:send 1->2 | nccl:recv 3<-0
_TRANSFER = expression(r":(send|recv) (\d{1,9})(?:->|<-)(\d{1,9})")
_GLOO = "gloo:"


def _is_done(entry: _Entry) -> bool:
    """Tell whether it has ended. gloo sets no state: it only retires what has ended."""
    if entry["state"] == "completed":
        return True
    return bool(entry.get("retired")) and _text(entry.get("profiling_name")).startswith(_GLOO)


def _call(number: int, entry: _Entry) -> Call:
    name = _text(entry.get("profiling_name"))
    found = _TRANSFER.search(name)
    state = "completed" if _is_done(entry) else "called" if name.startswith(_GLOO) else _text(entry["state"])
    return Call(
        number, _what(entry), state if state in _STATES else "called", _frames(entry.get("frames")),
        int(found[3]) if found else None, bool(found and found[1] == "send"),
    )  # fmt: skip


_STATES = ("scheduled", "started", "completed", "called")
# Which side of a collective has one size on all ranks; of others only the name must be equal.
_EQUAL = {
    "all_reduce": "input", "allreduce": "input", "broadcast": "input", "reduce": "input", "all_gather": "input",
    "all_gather_base": "input", "all_gather_into_tensor_coalesced": "input", "gather": "input", "scatter": "output",
    "reduce_scatter": "output", "reduce_scatter_base": "output", "reduce_scatter_tensor_coalesced": "output",
    "allreduce_coalesced": "input", "send": "input", "recv": "output",
}  # fmt: skip


def _what_all(entries: Sequence[_Entry]) -> str:
    if len(entries) == 1:
        return _what(entries[0])
    listed = [_what(one) for one in entries if not _text(one.get("profiling_name")).endswith("coalesced")]
    return sys.intern(printable(", ".join(listed[:8]) or _what(entries[-1]), _LONGEST))


def _what(entry: _Entry) -> str:
    """Return what all ranks must agree on: "all_reduce of 1024 Float", "barrier"."""
    name = _text(entry.get("profiling_name")).partition(" ")[0].rpartition(":")[2]
    name = name.strip("_").removesuffix("_oop") or "?"
    side = _EQUAL.get(name)
    sizes = entry.get(f"{side}_sizes") if side else None
    if not isinstance(sizes, (list, tuple)) or not sizes:
        return sys.intern(printable(name, 80))
    count = 0
    for shape in sizes[:_MOST_SHAPES]:
        if isinstance(shape, (list, tuple)) and len(shape) <= _MOST_DEEP and all(type(one) is int for one in shape):
            count += math.prod(shape)
    kinds = entry.get(f"{side}_dtypes")
    kind = f" {_text(kinds[0])[:40]}" if isinstance(kinds, (list, tuple)) and kinds else ""
    return sys.intern(printable(f"{name} of {count % _LARGEST}{kind}", 120))


def _frames(value: object) -> tuple[str, ...]:
    """Return the nearest frames of the program's own: "train.py:41 in step"."""
    if not isinstance(value, (list, tuple)):
        return ()
    shown = []
    for frame in value[:200]:
        if isinstance(frame, dict) and "/torch/" not in (path := _text(frame.get("filename"))):
            words = f"{path.rpartition('/')[2]}:{_text(frame.get('line'))} in {_text(frame.get('name'))}"
            shown.append(sys.intern(printable(words, _LONGEST)))
            if len(shown) == _MOST_FRAMES:
                break
    return tuple(shown)
