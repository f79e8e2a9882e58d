"""A recording: one JSON file a node, from which `ncheck replay` and the demo run everything after collection.

Secrets are cut out before anything is written. What is read back is not trusted: its size is bounded, every type is
held to, and a folder that lacks one of its nodes is refused, since a report of fewer nodes would look healthier.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ncheck.decode import MisfitError, decoded
from ncheck.errors import RecordingError
from ncheck.hostlist import is_name, is_v6, quoted
from ncheck.model.evidence import Evidence, Reply, too_deep
from ncheck.model.node import Node
from ncheck.redact import redact, redact_value
from ncheck.settings.options import LEVELS

FORMAT, OLDEST = 3, 2  # what is written, and the oldest that is read
MARK = "ncheck_recording"  # the key that says what the file is, and by its number which format
MAX_FILE = 64 * 2**20  # bytes: far above any node's answers, far below this machine's memory
MAX_NODES = 20_000
MAX_FOLDER = 2 * 2**30  # bytes of a whole recording

# Values in one file and in a whole recording: "[],[],[]" takes thirty times its size in memory. A node has some 2000.
MAX_VALUES, MAX_VALUES_OF_ALL = 4_000_000, 32_000_000
_MOST_ENTRIES = 100_000  # of a folder: what is more is no recording, and is not listed to its end
_MOST_SLOTS, _LARGEST_PORT = 999_999, 65535
_OPENS, _ENDS = b'"replies": {\n', "}}}"  # the end of a file's first line, and of the file
DEEPEST = 48  # levels: a reply's value may have 32 of its own
_LONGEST_NAME = 120  # characters of a file's name: file systems end at 255 bytes
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@")


class Recorder:
    """Writes evidence as it comes, so that a run that is cut short loses nothing of what it had."""

    def __init__(self, directory: str | os.PathLike[str], nodes: Iterable[str]) -> None:
        """Make the folder, mode 0700. It must be new or empty: two runs in one folder would be neither.

        Raises RecordingError. Call it before connecting: nobody wants to hear of a full disk after the run.
        """
        self._directory = Path(directory)
        self._positions: dict[str, list[int]] = {}
        self._saved: dict[str, tuple[int, Path]] = {}
        names = tuple(nodes)
        for position, name in enumerate(names):
            self._positions.setdefault(name, []).append(position)
        self._count = len(names)
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(self._directory.iterdir()):
                raise RecordingError(f"{self._directory}: not empty; name a new folder for --record")
            self._directory.chmod(0o700)
        except OSError as error:
            why = error.strerror or error
            raise RecordingError(f"{self._directory}: {why}; name another folder for --record") from None

    def save(self, evidence: Evidence) -> Path:
        """Write one node's evidence, all of it or nothing, mode 0600, and return where.

        What comes of a node later is added to what is there of it.
        """
        position, path = self._place(evidence.node)
        try:
            if path.exists():
                _, _, before = decode(path.read_bytes(), str(path))
                evidence = replace(
                    before, login=evidence.login, select=evidence.select,
                    replies={**before.replies, **evidence.replies}, notes={**before.notes, **evidence.notes},
                )  # fmt: skip
            _write(path, encode(evidence, position, self._count).encode("ascii"))
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror or error}") from None
        return path

    def _place(self, node: str) -> tuple[int, Path]:
        """Return a node's place in the listing and its file: a new one for each time that it is listed."""
        if self._positions[node]:
            position = self._positions[node].pop(0)
            self._saved[node] = (position, self._directory / f"{_file_name(node, position, self._directory)}.json")
        return self._saved[node]


def save(directory: str | os.PathLike[str], evidence: Iterable[Evidence]) -> None:
    """Write a whole cluster, in this order."""
    nodes = tuple(evidence)
    recorder = Recorder(directory, (node.node for node in nodes))
    for node in nodes:
        recorder.save(node)


def load(directory: str | os.PathLike[str]) -> tuple[Evidence, ...]:
    """Return the recorded nodes in the order of their listing, each with `recorded` set.

    Raises RecordingError for whatever is wrong with the folder or one of its files.
    """
    return tuple(Recording(directory).untrusted())


class Recording:
    """A recorded folder. `heads` are its nodes, in the order of their listing, without replies and notes.

    Its evidence is read node by node, so that memory does not grow with what all of them answered. Raises
    RecordingError, as `load` and `trusted` do.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = str(directory)
        beginnings = _bounded((str(path), _beginning(path)) for path in _paths(Path(directory)))
        self._files = _in_order((name, *_head(name, beginning)) for name, beginning in beginnings)

    @property
    def heads(self) -> tuple[Evidence, ...]:
        return trusted(self.directory, (head for _, head in self._files))

    def evidence(self) -> Iterator[Evidence]:
        """Yield all that each node answered, as `trusted` does."""
        for one in self.untrusted():
            yield from trusted(self.directory, (one,))

    def untrusted(self) -> Iterator[Evidence]:
        contents, replies = _bounded((name, _read(Path(name))) for name, _ in self._files), _Replies()
        for at, (name, content) in enumerate(contents):
            (position, _, evidence), (_, head) = decode(content, name, replies), self._files[at]
            if (position, evidence.node, evidence.select) != (at, head.node, head.select):
                raise RecordingError(f"{name}: it changed while it was read; try again")
            yield evidence


def _paths(folder: Path) -> list[Path]:
    """Return the files of a recorded folder."""
    try:
        entries = list(islice(folder.iterdir(), _MOST_ENTRIES + 1))
    except NotADirectoryError:
        raise RecordingError(f"{folder}: not a folder; a recording is a folder with one file per node") from None
    except OSError as error:
        raise RecordingError(f"{folder}: {error.strerror or error}") from None
    if len(entries) > _MOST_ENTRIES:
        raise RecordingError(f"{folder}: more than {_MOST_ENTRIES} files; name the folder of a recording")
    paths = sorted(path for path in entries if path.suffix == ".json" and not path.name.startswith("."))
    if not paths:
        raise RecordingError(f"{folder}: no recording is in it; {_hint(folder, entries)}")
    if len(paths) > MAX_NODES:
        raise RecordingError(f"{folder}: {len(paths)} files, more than the {MAX_NODES} nodes of the largest recording")
    return paths


def _hint(folder: Path, entries: Sequence[Path]) -> str:
    """Return what to type instead of a folder that holds no recording."""
    for beneath in sorted(entries)[:100]:
        if beneath.is_dir() and next(beneath.glob("*.json"), None):
            return f"name a folder beneath it, as {beneath}"
    return f"ncheck --record {folder} nodes.txt makes one"


def loaded(files: Iterable[tuple[str, bytes]]) -> tuple[Evidence, ...]:
    """Return the nodes of files that were read already (those inside a zip, say), each with its name for errors."""
    replies = _Replies()
    decoded = ((name, *decode(content, name, replies)) for name, content in _bounded(files))
    return tuple(evidence for _, evidence in _in_order(decoded))


def _bounded(files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Hand on the files of a recording, as long as all of them are no larger than one can be."""
    size = values = 0
    for name, content in files:
        size, values = size + len(content), values + _values(content)
        if size > MAX_FOLDER or values > MAX_VALUES_OF_ALL:
            raise RecordingError(f"{name}: with the files before it, larger than any recording")
        yield name, content


def _in_order(files: Iterable[tuple[str, int, int, Evidence]]) -> list[tuple[str, Evidence]]:
    """Return the names of files and their evidence, by position; each has that, and says how many there are."""
    found: dict[int, tuple[str, Evidence]] = {}
    counts: set[int] = set()
    for name, position, count, evidence in files:
        if position in found:
            twin = f"is node {position + 1} of its recording, and so is {found[position][1].node}"
            raise RecordingError(f"{name}: {twin}; copy the folder again")
        found[position] = name, evidence
        counts.add(count)
    if counts != {len(found)} or sorted(found) != list(range(len(found))):
        raise RecordingError(
            f"{len(found)} nodes are there of a recording of {'/'.join(map(str, sorted(counts)))}: "
            "a file is missing or belongs to another recording; copy the whole folder again"
        )
    return [found[position] for position in sorted(found)]


def _refuse_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def encode(evidence: Evidence, position: int, count: int) -> str:
    """Return one node's file: its place in the listing and its evidence, secrets cut out, defaults left out.

    Each reply is one line, so that two files or two versions of one differ in the lines of what was answered otherwise.
    """
    lean = _lean(_redacted(evidence))
    replies = [json.dumps({key: reply}, allow_nan=False)[1:-1] for key, reply in lean.pop("replies", {}).items()]
    document = {MARK: FORMAT, "position": position, "of": count, "evidence": {**lean, "replies": {}}}
    return json.dumps(document, allow_nan=False).removesuffix(_ENDS) + "\n" + ",\n".join(replies) + _ENDS + "\n"


def decode(content: bytes, name: str, replies: _Replies | None = None) -> tuple[int, int, Evidence]:
    """Return (position, count of nodes, evidence) of one file. `name` is for the words of a RecordingError.

    `replies` knows those of the files before.
    """
    if len(content) > MAX_VALUES and _values(content) > MAX_VALUES:
        raise RecordingError(f"{name}: more values than any node's recording")
    beginning, opens, lines = content.partition(_OPENS)
    known, written_so = replies or _Replies(), bool(_FORMAT_2.search(beginning))
    answered = known.read(lines, old=written_so) if opens else None
    if answered is not None:
        content = beginning + opens + _ENDS.encode()
    try:
        document = json.loads(content, parse_constant=_refuse_constant)
    except RecursionError:
        raise RecordingError(f"{name}: nested deeper than any recording") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise RecordingError(f"{name}: truncated or not a recording ({error})") from None
    if too_deep(document, DEEPEST):
        raise RecordingError(f"{name}: nested deeper than any recording")
    old = _hold_format(document, name) < FORMAT
    if answered is not None and old != written_so:  # another program wrote the file anew
        answered = known.read(lines, old=old)
    position, count = document.get("position"), document.get("of")
    if type(position) is not int or type(count) is not int or not 0 <= position < count <= MAX_NODES:
        raise RecordingError(f"{name}: its position {position!r} of {count!r} is not one of a recording"[:300])
    evidence = _evidence(_renamed(document.get("evidence")) if old else document.get("evidence"), name)
    evidence = replace(evidence, replies=answered or evidence.replies, recorded=True)
    return position, count, evidence


class _Replies:
    """Reads the replies of many files. What several nodes answered alike is decoded once, and is one object."""

    def __init__(self) -> None:
        self.known: dict[_Known, tuple[str, Reply]] = {}
        self.size = 0  # of the lines that are known, bytes

    def read(self, lines: bytes, *, old: bool = False) -> dict[str, Reply] | None:
        """Return all replies of a file; None where they are not one a line, as `encode` writes them, or are none."""
        ends = _ENDS.encode() + b"\n"
        if not lines.endswith(ends):
            return None
        try:
            each = lines.removesuffix(ends).split(b",\n") if lines != ends else ()
            return dict(self._reply(line, old=old) for line in each)
        except (ValueError, RecursionError):
            return None  # read as a whole, the file says itself what is wrong

    def _reply(self, line: bytes, *, old: bool) -> tuple[str, Reply]:
        """Return a reply and its key. What it took in seconds differs where all else is alike."""
        before, _, after = line.rpartition(_TOOK)
        timed = bool(before and _SECONDS.fullmatch(after))
        known = before if timed else line, timed, old
        name, reply = self.known.get(known) or self._decoded(line, known)
        if timed and (seconds := float(after[:-1])) != reply.seconds:
            return name, replace(reply, seconds=seconds)
        return name, reply

    def _decoded(self, line: bytes, known: _Known) -> tuple[str, Reply]:
        document = _JSON.decode(f"{{{line.decode(errors='surrogatepass')}}}")
        ((name, given),) = (_names_of_today(document) if known[2] else document).items()
        reply: Reply = decoded(given, Reply)
        levels = line.count(b"[") + line.count(b"{")  # at most
        if levels > _DEEPEST and too_deep(given, _DEEPEST):
            raise ValueError(name)
        self.size += len(line)
        if self.size > _MOST_KNOWN:
            self.known.clear()
            self.size = len(line)
        self.known[known] = name, reply
        return name, reply


_TOOK, _SECONDS = b', "seconds": ', re.compile(rb"(?:0|[1-9]\d{0,8})(?:\.\d{1,18})?(?:e-\d\d)?\}")
_DEEPEST = DEEPEST - 3  # levels of a reply
_Known = tuple[bytes, bool, bool]  # a line, whether its seconds are cut off, and whether it is of format 2
_MOST_KNOWN = 2 * 2**20  # bytes of lines


def _beginning(path: Path) -> bytes:
    """Return what is before a file's replies: its first line, as `encode` writes it; of any other file all of it."""
    first = _read(path, first_line=True)
    return first if first.endswith(_OPENS) else _read(path)


def _head(name: str, beginning: bytes) -> tuple[int, int, Evidence]:
    """Return what `decode` does, but for what the node answered and what is noted about it."""
    whole = beginning + _ENDS.encode() if beginning.endswith(_OPENS) else beginning
    position, count, evidence = decode(whole, name)
    return position, count, replace(evidence, replies={}, notes={})


def _values(content: bytes) -> int:
    """Return about how many values a file holds, at least as many as it does: what is text may count, too."""
    return len(content) - len(content.translate(None, b",[{"))


_FORMAT_2 = re.compile(rb'"ncheck_recording": 2\b')  # within a text, its quotes would be escaped
_NAMED_2 = re.compile(r"answer:turn(?=#|$)")  # format 2 called a step a turn, and its method its means


def _renamed(evidence: object) -> object:
    """Return evidence of format 2 under today's names. What it is made of is judged by who decodes it."""
    if not isinstance(evidence, dict):
        return evidence
    return {key: _names_of_today(part) if key in {"replies", "notes"} else part for key, part in evidence.items()}


def _names_of_today(by_key: Any) -> Any:  # noqa: ANN401  JSON
    """Return replies or notes of format 2 by the keys of today, with what was asked of a step."""
    if not isinstance(by_key, dict):
        return by_key
    return {_NAMED_2.sub("answer:step", key): _asked_today(key, part) for key, part in by_key.items()}


def _asked_today(key: str, part: Any) -> Any:  # noqa: ANN401  JSON
    asked = part.get("asked") if isinstance(part, dict) and key.startswith(("answer:turn", "answer:meeting")) else None
    if not isinstance(asked, dict):
        return part
    return {**part, "asked": {"method" if name == "means" else name: value for name, value in asked.items()}}


def _hold_format(document: object, name: str) -> int:
    """Return the format of a file. Raises RecordingError for one that this ncheck does not read."""
    number = document.get(MARK) if isinstance(document, dict) else None
    if type(number) is not int or number < 1:
        raise RecordingError(f"{name}: not a recording of ncheck")
    if not OLDEST <= number <= FORMAT:
        why = "newer than this ncheck reads" if number > FORMAT else "which this ncheck no longer reads"
        raise RecordingError(f"{name}: format {number}, {why}; install the ncheck that wrote it, or record it again")
    if unknown := set(document) - {MARK, "position", "of", "evidence"}:  # type: ignore[call-overload]  # a dict by now
        raise RecordingError(f"{name}: unknown field {min(unknown)!r}")
    return number


def _evidence(document: object, name: str) -> Evidence:
    if isinstance(document, dict) and "recorded" in document:
        raise RecordingError(f"{name}: unknown field 'recorded'")
    try:
        evidence: Evidence = decoded(document, Evidence)
    except MisfitError as wrong:
        raise RecordingError(f"{name}: {str(wrong)[:300]}") from None
    return evidence


def _plain(value: object) -> Any:  # noqa: ANN401  JSON, of dataclasses
    """Return the JSON form of a record, every field written out."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return getattr(value, "value", value)


def _lean(value: object) -> Any:  # noqa: ANN401  JSON, of dataclasses
    """Return the JSON form of a record without the fields that stand at their defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        values = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: _lean(inner) for field, inner in values if inner != _default(field)}
    if isinstance(value, Mapping):
        return {name: _lean(inner) for name, inner in value.items()}
    return _plain(value)


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _redacted(evidence: Evidence) -> Evidence:
    replies = {redact(key): _reply(reply) for key, reply in evidence.replies.items()}
    greeting = evidence.greeting and _strings(evidence.greeting)
    notes = {
        redact(key): replace(_strings(note), asked=redact_value(note.asked)) for key, note in evidence.notes.items()
    }
    login = _strings(evidence.login)
    return replace(evidence, replies=replies, notes=notes, login=login, greeting=greeting, recorded=False)


def _reply(reply: Reply) -> Reply:
    plain: Reply = _strings(reply)
    return replace(plain, value=redact_value(reply.value), asked=redact_value(reply.asked))


def _strings(record: Any) -> Any:  # noqa: ANN401  a record in, the same record out
    """Redact the plain strings of a login, greeting or reply."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return replace(record, **{name: redact(text) for name, text in values.items() if type(text) is str})


def _file_name(node: str, position: int, directory: Path) -> str:
    """Return a name that any file system takes, for any host name: odd bytes as %XX, long ones cut and numbered."""
    plain = "".join(chr(b) if chr(b) in _PLAIN else f"%{b:02X}" for b in node.encode("utf-8", "surrogatepass"))
    name = "%2E" + plain[1:] if plain.startswith(".") else plain
    unsure = not name or len(name) > _LONGEST_NAME or (directory / f"{name}.json").exists()
    return f"{name[:_LONGEST_NAME]}%{position:05d}" if unsure else name


def _write(path: Path, content: bytes) -> None:
    """Write beside and rename: whoever looks sees the whole file or none."""
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _read(path: Path, *, first_line: bool = False) -> bytes:
    try:
        if not path.is_file():
            raise RecordingError(f"{path}: not a file")
        with path.open("rb") as file:
            content = file.readline(MAX_FILE + 1) if first_line else file.read(MAX_FILE + 1)
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None
    if len(content) > MAX_FILE:
        raise RecordingError(f"{path}: more than {MAX_FILE // 2**20} MiB, larger than any node's recording")
    return content


def nodes_of(evidence: Iterable[Evidence]) -> tuple[Node, ...]:
    """Return the nodes of a recording, as they were listed."""
    return tuple(Node(one.node, slots=one.slots, places=one.places) for one in evidence)


def level_of(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Return the level of the recorded run and what was not as it has it; ("",) where the files do not say one."""
    found = {one.level for one in evidence}
    level = found.pop() if len(found) == 1 else ()
    return level if level[:1] and level[0] in LEVELS else ("",)


def trusted(where: str, recorded: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return recorded nodes without the commands to type that their files brought along: the checks have their own.

    Raises RecordingError, with the words `where` they come from, for what no listing and no login can have: it would
    end up in commands to type.
    """
    nodes = tuple(recorded)
    for one in nodes:
        if not (is_name(one.node) or is_v6(one.node)):
            raise RecordingError(f"{where}: a node called {quoted(one.node)} is in no listing")
        if wrong := _impossible(one):
            raise RecordingError(f"{where}: {one.node} {wrong}")
    return tuple(replace(one, login=replace(one.login, fix="", options=())) for one in nodes)


def _impossible(evidence: Evidence) -> str:
    """Say what no listing and no login can have: ssh would take the user "-oProxyCommand=..." for an option."""
    login, slots = evidence.login, evidence.slots
    if slots is not None and not 0 < slots <= _MOST_SLOTS:
        return f"has {slots} slots"
    if not 0 <= login.port <= _LARGEST_PORT:
        return f"has the port {login.port}"
    if login.user.startswith("-") or not login.user.isprintable():
        return f"has the user {quoted(login.user)}"
    if login.address and not (is_name(login.address) or is_v6(login.address)):
        return f"has the address {quoted(login.address)}"
    return ""
