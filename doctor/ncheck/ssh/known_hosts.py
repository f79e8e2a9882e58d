"""What known_hosts says of a host's key, word for word as OpenSSH reads it (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).

Files are parsed once; a line that is no entry harms no other. Nothing here knows of paramiko: keys are bytes.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

SSH_PORT = 22


class Standing(str, Enum):
    """What is known of the key that a host showed."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True)
class Line:
    """One entry: where it stands, its marker ("", "revoked" or "cert-authority"), and the key as written."""

    file: str
    number: int
    marker: str
    key_type: str
    key_text: str

    @cached_property
    def key(self) -> bytes | None:
        """The key's bytes, None when the text is no key: OpenSSH passes such a line over."""
        try:
            raw = base64.b64decode(self.key_text, validate=True)
        except (binascii.Error, ValueError):
            return None
        return raw if raw[4 : 4 + int.from_bytes(raw[:4], "big")] == self.key_type.encode() else None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class Answer:
    """`line` is the entry that decided: the one that matches, differs, or revokes."""

    standing: Standing
    line: Line | None = None


@dataclass
class _Index:
    """Entries by the way in which a name finds them: exact names are looked up, hashes and patterns tried in turn."""

    exact: dict[str, list[tuple[int, Line]]] = field(default_factory=dict)
    hashed: list[tuple[int, bytes, bytes, Line]] = field(default_factory=list)
    patterns: list[tuple[int, tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...], Line]] = field(
        default_factory=list
    )


class KnownHosts:
    """Some known_hosts files as one, in their order: the user's first, then the machine's."""

    def __init__(self, files: Iterable[str]) -> None:
        self.files = tuple(files)
        self._index = _Index()
        self._count = 0
        for file in self.files:
            for line, names in _lines(file):
                self._add(line, names)

    def entries(self, host: str) -> tuple[Line, ...]:
        """Return the readable entries for a name ("node07" or "[node07]:10001"), in the order of the files."""
        name = host.lower()
        found = list(self._index.exact.get(name, ()))
        plain = name.encode()
        digest = hmac.digest
        found += [(at, line) for at, salt, want, line in self._index.hashed if digest(salt, plain, "sha1") == want]
        for at, wanted, unwanted, line in self._index.patterns:
            if any(p.fullmatch(name) for p in wanted) and not any(p.fullmatch(name) for p in unwanted):
                found.append((at, line))
        return tuple(line for _, line in sorted(found, key=lambda pair: pair[0]) if line.key is not None)

    def learn(self, host: str, key_type: str, key: bytes) -> None:
        """Know one more key, which was just written to the first file."""
        text = base64.b64encode(key).decode()
        self._add(Line(self.files[0] if self.files else "", 0, "", key_type, text), host)

    def _add(self, line: Line, names: str) -> None:
        self._count += 1
        at = self._count
        if names.startswith("|1|"):
            if split := _hash_parts(names):
                self._index.hashed.append((at, *split, line))
        elif any(c in names for c in "*?!"):
            wanted, unwanted = _compiled(names)
            self._index.patterns.append((at, wanted, unwanted, line))
        else:
            for name in names.lower().split(","):
                self._index.exact.setdefault(name, []).append((at, line))


@dataclass(frozen=True)
class HostRecord:
    """What the files say of one host: under its own name, and under the bare name that OpenSSH falls back to."""

    named: tuple[Line, ...]
    bare: tuple[Line, ...] = ()

    @property
    def key_types(self) -> tuple[str, ...]:
        """The types of its known keys. They are asked for first, or a host known by another key looks changed."""
        return tuple(dict.fromkeys(line.key_type for line in (*self.named, *self.bare) if not line.marker))

    @property
    def has_authority(self) -> bool:
        """Tell whether a @cert-authority line names it: its host certificate counts, which paramiko cannot check."""
        return any(line.marker == "cert-authority" for line in (*self.named, *self.bare))

    def judge(self, key: bytes) -> Answer:
        """Say what is known of this key (its wire form)."""
        answer = _judge(self.named, key)
        if answer.standing is Standing.UNKNOWN and self.bare:
            fallback = _judge(self.bare, key)
            if fallback.standing in (Standing.KNOWN, Standing.REVOKED):
                return fallback
        return answer


def look_up(known: KnownHosts, host: str, port: int, alias: str = "") -> HostRecord:
    """Return the record of a host as ssh looks for it: by alias, or by [host]:port off port 22 and then by host."""
    if alias:
        return HostRecord(known.entries(alias))
    if port == SSH_PORT:
        return HostRecord(known.entries(host))
    return HostRecord(known.entries(f"[{host}]:{port}"), known.entries(host))


def _judge(lines: tuple[Line, ...], key: bytes) -> Answer:
    """Judge as ssh does: revoked outweighs all; a plain entry with another key, of whatever type, is a change."""
    revoked = next((line for line in lines if line.marker == "revoked" and line.key == key), None)
    if revoked:
        return Answer(Standing.REVOKED, revoked)
    plain = [line for line in lines if not line.marker]
    same = next((line for line in plain if line.key == key), None)
    if same:
        return Answer(Standing.KNOWN, same)
    if not plain:
        return Answer(Standing.UNKNOWN)
    key_type = key[4 : 4 + int.from_bytes(key[:4], "big")].decode("ascii", "replace")
    return Answer(Standing.CHANGED, next((line for line in plain if line.key_type == key_type), plain[-1]))


def _lines(file: str) -> Iterator[tuple[Line, str]]:
    """Yield the entries of one file with their host fields. A file that is not there has none."""
    try:
        text = Path(file).read_bytes().decode("utf-8", "replace")
    except OSError:
        return
    for number, raw in enumerate(text.split("\n"), 1):
        marker, rest = _marked(raw.strip(" \t\r"))
        fields = rest.split(None, 3)
        if rest.startswith("#") or len(fields) < 3:  # noqa: PLR2004  hosts, type, key
            continue
        if marker in ("", "revoked", "cert-authority"):
            yield Line(file, number, marker, fields[1], fields[2]), fields[0]


def _marked(line: str) -> tuple[str, str]:
    """Part "@revoked host ssh-ed25519 AAAA" into its marker and the rest."""
    if not line.startswith("@"):
        return "", line
    marker, _, rest = line[1:].partition(" ")
    return marker.strip() or "unreadable", rest.strip()


def _hash_parts(names: str) -> tuple[bytes, bytes] | None:
    """Return salt and hash of "|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg="."""
    parts = names.split("|")
    try:
        return base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except (IndexError, ValueError):
        return None


def _compiled(names: str) -> tuple[tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]]:
    """Return the patterns that a name must match one of, and those that it must match none of."""
    words = names.lower().split(",")
    wanted = tuple(_pattern(word) for word in words if not word.startswith("!"))
    return wanted, tuple(_pattern(word[1:]) for word in words if word.startswith("!"))


def _pattern(word: str) -> re.Pattern[str]:
    """Translate a host pattern: only * and ? are special, so that [node*]:2222 keeps its brackets."""
    # node*.example.org
    return re.compile("".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in word), re.DOTALL)
