"""What known_hosts says of a host's key, read exactly as OpenSSH does (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).

A host's key is verified before any key of the user is offered. Files are parsed once; a line that is no entry affects
no other. Nothing here uses paramiko: keys are bytes.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import Enum
from functools import cached_property
from pathlib import Path

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh import failures
from ncheck.ssh.failures import FailureError, LoginFailure, failed
from ncheck.ssh.login import LoginCause
from ncheck.ssh.public_keys import described, type_of
from ncheck.ssh.target import SSH_PORT, SshTarget


class Trust(str, Enum):
    """What known_hosts says of the key that a host showed."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True)
class KnownHostsLine:
    """One entry: its file and line number, its marker ("", "revoked" or "cert-authority"), and the key as written."""

    file: str
    number: int
    marker: str
    key_type: str
    key_text: str

    @cached_property
    def key(self) -> bytes | None:
        """The key's bytes, None when the text is no key: OpenSSH skips such a line."""
        try:
            raw = base64.b64decode(self.key_text, validate=True)
        except (binascii.Error, ValueError):
            return None
        return raw if type_of(raw) == self.key_type else None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class HostKeyAnswer:
    """`line` is the entry that decided: the one that matches, differs, or revokes."""

    trust: Trust
    line: KnownHostsLine | None = None


@dataclass
class _Index:
    """Entries by kind of name: exact names are looked up, hashes and patterns are tried in turn."""

    exact: dict[str, list[tuple[int, KnownHostsLine]]] = field(default_factory=dict)
    hashed: list[tuple[int, bytes, bytes, KnownHostsLine]] = field(default_factory=list)
    patterns: list[tuple[int, tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...], KnownHostsLine]] = field(
        default_factory=list
    )


class KnownHosts:
    """Several known_hosts files as one, in their order: the user's first, then the system's."""

    def __init__(self, files: Iterable[str]) -> None:
        self.files = tuple(files)
        self._index = _Index()
        self._count = 0
        for file in self.files:
            for line, names in _lines(file):
                self._add(line, names)

    def entries(self, host: str) -> tuple[KnownHostsLine, ...]:
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

    def learn(self, host: str, key: bytes) -> None:
        """Add one more key, which was just written to the first file."""
        text = base64.b64encode(key).decode()
        self._add(KnownHostsLine(self.files[0] if self.files else "", 0, "", type_of(key), text), host)

    def _add(self, line: KnownHostsLine, names: str) -> None:
        self._count += 1
        at = self._count
        if names.startswith("|1|"):
            if split := _hash_parts(names):
                self._index.hashed.append((at, *split, line))
        elif "*" in names or "?" in names or "!" in names:
            wanted, unwanted = _compiled(names)
            self._index.patterns.append((at, wanted, unwanted, line))
        else:
            for name in names.lower().split(","):
                self._index.exact.setdefault(name, []).append((at, line))


@dataclass(frozen=True)
class HostRecord:
    """What the files say of one host: under its own name, and under the bare name that OpenSSH falls back to."""

    named: tuple[KnownHostsLine, ...]
    bare: tuple[KnownHostsLine, ...] = ()

    @property
    def key_types(self) -> tuple[str, ...]:
        """The types of its known keys, to be requested first: a host known by another key would look changed."""
        return tuple(dict.fromkeys(line.key_type for line in (*self.named, *self.bare) if not line.marker))

    @property
    def has_authority(self) -> bool:
        """Tell whether a @cert-authority line names it: its host certificate counts, which paramiko cannot check."""
        return any(line.marker == "cert-authority" for line in (*self.named, *self.bare))

    def judge(self, key: bytes) -> HostKeyAnswer:
        """Return what is known of this key (its wire form)."""
        answer = _judge(self.named, key)
        if answer.trust is Trust.UNKNOWN and self.bare:
            fallback = _judge(self.bare, key)
            if fallback.trust in (Trust.KNOWN, Trust.REVOKED):
                return fallback
        return answer


def look_up(known: KnownHosts, host: str, port: int, alias: str = "") -> HostRecord:
    """Return the record of a host as ssh looks for it: by alias, or by [host]:port off port 22 and then by host."""
    if alias:
        return HostRecord(known.entries(alias))
    if port == SSH_PORT:
        return HostRecord(known.entries(host))
    return HostRecord(known.entries(f"[{host}]:{port}"), known.entries(host))


def _judge(lines: tuple[KnownHostsLine, ...], key: bytes) -> HostKeyAnswer:
    """Judge as ssh does: revoked outweighs all; a plain entry with another key, of whatever type, is a change."""
    revoked = next((line for line in lines if line.marker == "revoked" and line.key == key), None)
    if revoked:
        return HostKeyAnswer(Trust.REVOKED, revoked)
    plain = [line for line in lines if not line.marker]
    same = next((line for line in plain if line.key == key), None)
    if same:
        return HostKeyAnswer(Trust.KNOWN, same)
    if not plain:
        return HostKeyAnswer(Trust.UNKNOWN)
    key_type = type_of(key)
    return HostKeyAnswer(Trust.CHANGED, next((line for line in plain if line.key_type == key_type), plain[-1]))


def line_at(file: str, number: int) -> KnownHostsLine | None:
    """Return the entry in this line of a file; None where there is none."""
    return next((line for line, _ in _lines(file) if line.number == number), None)


def _lines(file: str) -> Iterator[tuple[KnownHostsLine, str]]:
    """Yield the entries of one file with their host fields. A file that does not exist has none."""
    try:
        text = Path(file).read_bytes().decode("utf-8", "replace")
    except OSError:
        return
    for number, raw in enumerate(text.split("\n"), 1):
        rest = raw.strip(" \t\r")
        marker, rest = _marked(rest) if rest.startswith("@") else ("", rest)
        fields = rest.split(None, 3)
        if rest.startswith("#") or len(fields) < 3:  # noqa: PLR2004  hosts, type, key
            continue
        if marker in ("", "revoked", "cert-authority"):
            yield KnownHostsLine(file, number, marker, fields[1], fields[2]), fields[0]


def _marked(line: str) -> tuple[str, str]:
    """Part "@revoked host ssh-ed25519 AAAA" into its marker and the rest."""
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


_ADDING = threading.Lock()


@dataclass(frozen=True)
class Verified:
    """A key that is trusted. `added`: it was new, and was added to the user's file. `warning`: why it should not be."""

    added: bool = False
    warning: str = ""


def verify(key: bytes, record: HostRecord, target: SshTarget, *, accept_new: bool) -> Verified:
    """Verify a host's key. Raises FailureError where ssh would not trust it."""
    answer = record.judge(key)
    if answer.trust is Trust.KNOWN:
        return Verified()
    if answer.trust is Trust.UNKNOWN:
        if accept_new:
            add_host_key(target, key)
            return Verified(added=True)
        if target.strict in ("no", "accept-new"):  # the user's configuration trusts it; nothing is written
            return Verified()
    failure = _FAILURES[answer.trust](target, key, answer)
    if target.strict == "no" and not accept_new:
        return Verified(warning=failure.detail)
    raise FailureError(failure, openssh_may_work=record.has_authority)


def _unknown(target: SshTarget, key: bytes, _answer: HostKeyAnswer) -> LoginFailure:
    files = " and ".join(target.known_hosts_files[:1] + target.global_known_hosts_files[:1]) or "any known_hosts file"
    detail = f"the host key of {target.known_as} is not in {files}: the host presents {described(key)}"
    return LoginFailure(LoginCause.HOST_KEY_UNKNOWN, detail, failures.by_hand(target, "-o StrictHostKeyChecking=ask"))


def _changed(target: SshTarget, key: bytes, answer: HostKeyAnswer) -> LoginFailure:
    line = answer.line
    known = f"{line.place} has {described(line.key or b'')}" if line else "known_hosts has another key"
    return failures.key_changed(target, described(key), known, line.file if line else "")


def _revoked(target: SshTarget, key: bytes, answer: HostKeyAnswer) -> LoginFailure:
    return failures.key_revoked(target, described(key), answer.line.place if answer.line else "")


_FAILURES = {Trust.UNKNOWN: _unknown, Trust.CHANGED: _changed, Trust.REVOKED: _revoked}


def add_host_key(target: SshTarget, key: bytes) -> None:
    """Append one line to the user's first known_hosts file, as ssh does: a single write, the file's mode kept."""
    if not target.known_hosts_files:
        raise failed(LoginCause.HOST_KEY_UNKNOWN, "there is no file to write a new key to (UserKnownHostsFile none)")
    path = Path(target.known_hosts_files[0])
    name = target.known_as.lower()
    line = f"{_hashed(name) if target.hash_known_hosts else name} {type_of(key)} {base64.b64encode(key).decode()}\n"
    try:
        with _ADDING:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _append(path, line.encode())
    except OSError as error:
        why = f"the new host key cannot be written to {path}: {error.strerror}"
        raise failed(LoginCause.TRANSPORT, why, f"ls -l {path}") from None


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        whole = size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
        os.write(descriptor, line if whole else b"\n" + line)
    finally:
        os.close(descriptor)


def _hashed(name: str) -> str:
    salt = os.urandom(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
