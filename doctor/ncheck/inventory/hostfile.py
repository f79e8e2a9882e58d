"""One line of a host file, whichever launcher it was written for.

Open MPI and DeepSpeed write `host slots=8 max_slots=8`, MPICH and Horovod `host:8`, ssh `user@host` and `[v6]:port`.
Every function here raises ValueError with what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ncheck.hostlist import is_v6, quoted, split_list, unfold
from ncheck.model.node import Line

MOST_SLOTS = 256  # a larger number behind a colon is no count of GPUs: it was meant as a port


_SSH_PORT = 22


_MOST_NUMBER_DIGITS = 6


_LONGEST_LINE = 4096


@dataclass(frozen=True)
class Listed:
    """The hosts of one line, and what the line says of each of them. `written` is what stands for their names in it."""

    names: tuple[str, ...]
    place: str
    user: str | None = None
    port: int | None = None
    slots: int | None = None
    max_slots: int | None = None
    written: str = field(default="", compare=False)
    line: Line | None = field(default=None, compare=False)


# user@domain.example
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,126}\$?", re.ASCII)


# [fe80::1%eth0]:2222
_BRACKETED = re.compile(r"\[(?P<address>[^\[\]]*:[^\[\]]*)\](?::(?P<port>.*))?", re.ASCII)


# Open MPI's own spellings; what MPICH's and Open MPI's files may also say of a host is read over.
_KEYS: Mapping[str, str] = {
    "slots": "slots", "slot": "slots", "cpu": "slots", "cpus": "slots", "count": "slots",
    "max_slots": "max_slots", "max-slots": "max_slots", "slots_max": "max_slots", "slots-max": "max_slots",
    "slotsmax": "max_slots", "maxslots": "max_slots", "cpu_max": "max_slots", "cpu-max": "max_slots",
    "cpus_max": "max_slots", "cpus-max": "max_slots", "count_max": "max_slots", "count-max": "max_slots",
    "user": "user", "username": "user", "user-name": "user", "user_name": "user",
    "port": "port",
    "boards": "", "sockets_per_board": "", "sockets": "", "cores_per_socket": "", "binding": "", "ifname": "",
    "topology": "",
}  # fmt: skip


def listed_line(text: str, place: str) -> Listed:
    """Read one line without its comment: a host, and perhaps `key=value` words behind it."""
    _refuse_other_formats(text)
    if len(text) > _LONGEST_LINE:
        raise ValueError(f"{quoted(text)} is far too long for a line about one host")
    host, *words = " ".join(text.split()).replace(" =", "=").replace("= ", "=").split()
    if "=" in host:
        raise ValueError(f"{quoted(host)}: the host comes first, like: node01 slots=8")
    told = listed_host(host, place)
    for word in words:
        told = _with_word(told, host, word)
    if told.max_slots is not None and told.max_slots < (told.slots or 0):
        raise ValueError(f"max_slots={told.max_slots} is less than slots={told.slots}")
    return told


def listed_host(text: str, place: str) -> Listed:
    """Read a host by itself, as -H takes it: `node[01-16]`, `host:8`, `user@host`, `[v6]:port`, a bare v6 address."""
    if len(split_list(text)) > 1:
        raise ValueError(f"{quoted(text)} names several hosts: write one host a line, or give the list to -H")
    user, at, rest = ("", "", text) if text.startswith("@") else text.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise ValueError(f"{quoted(user)} is no user name; write user@host")
    if at and not rest:
        raise ValueError(f"{quoted(text)} names no host; write user@host")
    if bracketed := _BRACKETED.fullmatch(rest):
        return _v6_in_brackets(bracketed, place, user or None)
    if is_v6(rest):
        return Listed((rest,), place, user or None, written=rest)
    names, colon, number = rest.rpartition(":") if "]:" in rest or rest.count(":") == 1 else (rest, "", "")
    slots = _slots_behind_colon(names, number) if colon else None
    if ":" in names:
        raise ValueError(f"{quoted(text)} is no host; an IPv6 address with a port is written [fe80::1]:22")
    return Listed(unfold(names), place, user or None, slots=slots, written=names)


def _v6_in_brackets(found: re.Match[str], place: str, user: str | None) -> Listed:
    if not is_v6(found["address"]):
        raise ValueError(f"{quoted(found['address'])} is no IPv6 address")
    port = None if found["port"] is None else _port(found["port"])
    return Listed((found["address"],), place, user, port, written=found["address"])


def _slots_behind_colon(host: str, text: str) -> int:
    """Read `host:8`. A number that is meant as a port is told by its size, and 22 by what it is."""
    slots = _number(text, f"{quoted(host + ':' + text)}: behind the colon stands the number of slots, like node01:8")
    if slots > MOST_SLOTS:
        raise ValueError(f":{slots} reads as {slots} slots; for the SSH port {slots} write -p {slots}, or port={slots}")
    if slots == _SSH_PORT:
        raise ValueError(":22 may be slots or the SSH port; write slots=22, or leave it away: port 22 is the default")
    if slots == 0:
        raise ValueError(f"{quoted(host)} has no slots (:0); leave the host out, or write the number, like :8")
    return slots


def _with_word(told: Listed, host: str, word: str) -> Listed:
    name, equals, value = word.partition("=")
    if not equals:
        is_number = word.isascii() and word.isdigit() and len(word) <= _MOST_NUMBER_DIGITS
        hint = f"write slots={word} or port={word}" if is_number else "one host a line, like: node01 slots=8"
        raise ValueError(f"{quoted(word)} behind {quoted(host)} is not understood; {hint}")
    if name.lower() not in _KEYS:
        raise ValueError(f"{quoted(name)} is not known here; a host may have slots=, max_slots=, user= and port=")
    key = _KEYS[name.lower()]
    if not key:
        return told
    if getattr(told, key) is not None:
        raise ValueError(f"{quoted(host)} is given {key} twice")
    return _WITH[key](told, value)


def _slots(text: str) -> int:
    slots = _number(text, f"slots={quoted(text)} is no number of slots, like slots=8")
    if slots == 0:
        raise ValueError("slots=0 leaves the host without work; leave the line out, or write slots=8")
    return slots


def _port(text: str) -> int:
    port = _number(text, f"{quoted(text)} is no port, like 22")
    if not 0 < port < 65536:  # noqa: PLR2004  16 bits
        raise ValueError(f"{port} is no port: 1 to 65535")
    return port


def _user(text: str) -> str:
    if not _USER.fullmatch(text):
        raise ValueError(f"{quoted(text)} is no user name")
    return text


def _number(text: str, otherwise: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_NUMBER_DIGITS):
        raise ValueError(otherwise)
    return int(text)


_WITH: Mapping[str, Callable[[Listed, str], Listed]] = {
    "slots": lambda told, text: replace(told, slots=_slots(text)),
    "max_slots": lambda told, text: replace(told, max_slots=_slots(text)),
    "user": lambda told, text: replace(told, user=_user(text)),
    "port": lambda told, text: replace(told, port=_port(text)),
}


def _refuse_other_formats(text: str) -> None:
    """Name the formats that are taken for host files and are none."""
    if text.startswith("[") and text.endswith("]") and ":" not in text:
        raise ValueError(f"{quoted(text)} heads a section of an Ansible inventory; write one host a line")
    if text.startswith("rank "):
        raise ValueError(f"{quoted(text)} is a line of a rankfile; write one host a line, like: node01 slots=8")
    if text.startswith("^"):
        raise ValueError(f"{quoted(text)} leaves a host out; leave the line out instead")
