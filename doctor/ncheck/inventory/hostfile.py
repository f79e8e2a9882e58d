"""One line of a host file, in the syntax of any launcher.

Open MPI and DeepSpeed: `host slots=8 max_slots=8`. MPICH and Horovod: `host:8`. ssh: `user@host` and `[v6]:port`.
Every function here raises ValueError with the correct form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace

from ncheck.expression import expression
from ncheck.hostlist import is_v6, quoted, split_list, unfold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.node import ListLine

MOST_SLOTS = 256  # a larger number after a colon is not a number of GPUs but a port
_SSH_PORT = 22
_MOST_NUMBER_DIGITS = 6
_LONGEST_LINE = 4096


@dataclass(frozen=True)
class ListedHosts:
    """The hosts of one line and their settings. `written` is the text in the line that names them."""

    names: tuple[str, ...]
    place: str
    user: str | None = None
    port: int | None = None
    slots: int | None = None
    max_slots: int | None = None
    written: str = field(default="", compare=False)
    line: ListLine | None = field(default=None, compare=False)


# user@domain.example
_USER = expression(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,126}\$?", re.ASCII)

# [fe80::1%eth0]:2222
_BRACKETED = expression(r"\[(?P<address>(?=[^\[\]:]*:)[^\[\]]*)\](?::(?P<port>.*))?", re.ASCII)

# Spellings of Open MPI. Other keys of MPICH and Open MPI are accepted and not used ("").
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


def listed_line(text: str, place: str) -> ListedHosts:
    """Read one line without its comment: a host, then `key=value` words."""
    _refuse_other_formats(text)
    if len(text) > _LONGEST_LINE:
        raise ValueError(f"{quoted(text)} is too long for a line with one host")
    _refuse_look_alikes(text)
    host, *words = " ".join(text.split()).replace(" =", "=").replace("= ", "=").split()
    if "=" in host:
        raise ValueError(f"{quoted(host)}: write the host first, as in: node01 slots=8")
    listed = listed_host(host, place)
    for word in words:
        listed = _with_word(listed, host, word)
    if listed.max_slots is not None and listed.max_slots < (listed.slots or 0):
        raise ValueError(f"max_slots={listed.max_slots} is less than slots={listed.slots}")
    return listed


def listed_host(text: str, place: str) -> ListedHosts:
    """Read one host as in -H: `node[01-16]`, `host:8`, `user@host`, `[v6]:port`, a plain IPv6 address."""
    _refuse_look_alikes(text)
    if len(parts := split_list(text)) > 1:
        if len([part for part in parts if part]) < 2:  # noqa: PLR2004  "node01,"
            raise ValueError(f"{quoted(text)} has a comma too many: write one host per line, without commas")
        raise ValueError(f"{quoted(text)} names several hosts: write one host per line, or use -H for a list")
    user, at, rest = ("", "", text) if text.startswith("@") else text.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise ValueError(f"{quoted(user)} is not a user name; write user@host")
    if at and not rest:
        raise ValueError(f"{quoted(text)} names no host; write user@host")
    if bracketed := _BRACKETED.fullmatch(rest):
        return _v6_in_brackets(bracketed, place, user or None)
    if is_v6(rest):
        return ListedHosts((rest,), place, user or None, written=rest)
    names, colon, number = rest.rpartition(":") if "]:" in rest or rest.count(":") == 1 else (rest, "", "")
    slots = _slots_after_colon(names, number) if colon else None
    if ":" in names:
        raise ValueError(f"{quoted(text)} is not a host; write an IPv6 address with a port as [fe80::1]:22")
    return ListedHosts(unfold(names), place, user or None, slots=slots, written=names)


def _v6_in_brackets(found: re.Match[str], place: str, user: str | None) -> ListedHosts:
    if not is_v6(found["address"]):
        raise ValueError(f"{quoted(found['address'])} is not an IPv6 address")
    port = None if found["port"] is None else _port(found["port"])
    return ListedHosts((found["address"],), place, user, port, written=found["address"])


def _slots_after_colon(host: str, text: str) -> int:
    """Read `host:8`. A large number, or 22, is probably meant as a port."""
    slots = _number(text, f"{quoted(host + ':' + text)}: expected a number of slots after the colon, as in node01:8")
    if slots > MOST_SLOTS:
        raise ValueError(f":{slots} means {slots} slots; for SSH port {slots} write -p {slots} or port={slots}")
    if slots == _SSH_PORT:
        raise ValueError(":22 can mean slots or the SSH port; write slots=22, or remove it: port 22 is the default")
    if slots == 0:
        raise ValueError(f"{quoted(host)} has no slots (:0); remove the host, or write a number, as in :8")
    return slots


def _with_word(listed: ListedHosts, host: str, word: str) -> ListedHosts:
    name, equals, value = word.partition("=")
    if not equals:
        is_number = word.isascii() and word.isdigit() and len(word) <= _MOST_NUMBER_DIGITS
        hint = f"write slots={word} or port={word}" if is_number else "one host per line, as in: node01 slots=8"
        raise ValueError(f"{quoted(word)} after {quoted(host)} is not understood; {hint}")
    if name.lower() not in _KEYS:
        raise ValueError(f"{quoted(name)} is unknown; a host can have slots=, max_slots=, user= and port=")
    key = _KEYS[name.lower()]
    if not key:
        return listed
    if getattr(listed, key) is not None:
        raise ValueError(f"{quoted(host)} has {key} twice")
    return _WITH[key](listed, value)


def _slots(text: str) -> int:
    slots = _number(text, f"slots={quoted(text)} is not a number of slots, as in slots=8")
    if slots == 0:
        raise ValueError("slots=0 gives the host no work; remove the line, or write slots=8")
    return slots


def _port(text: str) -> int:
    port = _number(text, f"{quoted(text)} is not a port, as in 22")
    if not 0 < port < 65536:  # noqa: PLR2004  16 bits
        raise ValueError(f"{port} is not a port: 1 to 65535")
    return port


def _user(text: str) -> str:
    if not _USER.fullmatch(text):
        raise ValueError(f"{quoted(text)} is not a user name")
    return text


def _number(text: str, error: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_NUMBER_DIGITS):
        raise ValueError(error)
    return int(text)


_WITH: Mapping[str, Callable[[ListedHosts, str], ListedHosts]] = {
    "slots": lambda listed, text: replace(listed, slots=_slots(text)),
    "max_slots": lambda listed, text: replace(listed, max_slots=_slots(text)),
    "user": lambda listed, text: replace(listed, user=_user(text)),
    "port": lambda listed, text: replace(listed, port=_port(text)),
}


def _refuse_other_formats(text: str) -> None:
    """Refuse other formats by name."""
    if '"' in text or "'" in text or text in ("[", "]", "],"):
        raise ValueError(
            f"{quoted(text)} is from a list in JSON, YAML or Python; write one host per line, without quotes"
        )
    if text.startswith("- "):
        raise ValueError(f"{quoted(text)} is an item of a YAML list; write one host per line, without the dash")
    if text.startswith("[") and text.endswith("]") and ":" not in text:
        raise ValueError(f"{quoted(text)} is a section of an Ansible inventory; write one host per line")
    if text.startswith("rank "):
        raise ValueError(f"{quoted(text)} is a line of a rankfile; write one host per line, as in: node01 slots=8")
    if text.startswith("^"):
        raise ValueError(f"{quoted(text)} excludes a host; remove the line instead")


def _refuse_look_alikes(text: str) -> None:
    """Name a full-width character, such as Chinese and Japanese input methods write in place of one of ASCII."""
    for character in text:
        wide = _WIDE[0] <= character <= _WIDE[1]
        meant = chr(ord(character) - _FROM_ASCII_TO_WIDE) if wide else _OTHER_WIDE.get(character)
        if meant:
            raise ValueError(f"{quoted(text)} has the full-width character {character}; write {meant} in its place")


_WIDE, _FROM_ASCII_TO_WIDE = ("\uff01", "\uff5e"), 0xFEE0  # the forms of "!" to "~"
_OTHER_WIDE = {"\u3001": ",", "\u3002": "."}
