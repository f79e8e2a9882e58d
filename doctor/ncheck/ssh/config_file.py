"""An ssh_config file as data: blocks of checked lines, with what it includes inside. It decides nothing about a host.

Read once a run. What would make ssh itself refuse the file, and what only ssh can decide, is kept as `trouble`:
then `ssh -G` is asked, whose words on it are the true ones.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ncheck.ssh.config_options import COMMANDS, KNOWN, MANY, NORMAL, REPEATED
from ncheck.ssh.config_words import SPACE, arguments, matches_list, strdelim

DEEPEST = 16  # OpenSSH's own bound on files that include files


@dataclass(frozen=True)
class Line:
    """One keyword in lower case with its checked values."""

    keyword: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Include:
    """The files of one Include line, each as its parts."""

    files: tuple[tuple[Part, ...], ...]


@dataclass(frozen=True)
class HostPatterns:
    """A Host line: any of `literal` or `patterns`, in their order, and none that is negated."""

    literal: frozenset[str]
    patterns: tuple[str, ...]


EVERY_HOST = HostPatterns(frozenset(), ("*",))


@dataclass(frozen=True)
class Criterion:
    """One criterion of a Match line."""

    kind: str  # all, canonical, exec, host, originalhost, user, localuser
    value: str = ""
    negated: bool = False


@dataclass(frozen=True)
class Block:
    """Lines under one Host or Match line; `when` None: the lines before the first."""

    when: HostPatterns | tuple[Criterion, ...] | None
    entries: tuple[Line | Include, ...]


@dataclass(frozen=True)
class Named:
    """Neighbouring blocks whose Host lines hold plain names only, by name: thousands of them cost one look."""

    by_name: Mapping[str, tuple[Block, ...]]


Part = Block | Named


@dataclass(frozen=True)
class ConfigFile:
    """A whole file. `trouble` is why our reading of it cannot be trusted, "" where it can."""

    parts: tuple[Part, ...] = ()
    trouble: str = ""


def _gathered(blocks: Iterable[Block]) -> Iterator[Part]:
    """Put neighbouring blocks of plain names into one table."""
    for plain, group in groupby(blocks, key=_is_plain):
        if not plain:
            yield from group
            continue
        table: dict[str, tuple[Block, ...]] = {}
        for block in group:
            for name in block.when.literal if isinstance(block.when, HostPatterns) else ():
                table[name] = (*table.get(name, ()), block)
        yield Named(table)


def _is_plain(block: Block) -> bool:
    return isinstance(block.when, HostPatterns) and not block.when.patterns


class TroubleError(Exception):
    """A line that ssh refuses, or that we cannot decide."""


def read_config_file(path: str, home: str, *, of_user: bool, checked: bool) -> ConfigFile:
    """Read one file and what it includes. A file that is not there is empty, as OpenSSH has it.

    `of_user` says where relative Include paths start (~/.ssh or /etc/ssh); `checked` that owner and mode are looked at.
    """
    try:
        return ConfigFile(_File(path, home, of_user=of_user).read(checked=checked, depth=0))
    except FileNotFoundError:
        return ConfigFile()
    except TroubleError as error:
        return ConfigFile(trouble=str(error))
    except OSError as error:
        return ConfigFile(trouble=f"{path}: {error.strerror}")


class _File:
    """The reading of one file."""

    def __init__(self, path: str, home: str, *, of_user: bool) -> None:
        self.path = path
        self.home = home
        self.of_user = of_user
        self.where = path
        self.blocks: list[Block] = []
        self.when: HostPatterns | tuple[Criterion, ...] | None = None
        self.entries: list[Line | Include] = []
        self.ignored = ""

    def read(self, *, checked: bool, depth: int) -> tuple[Part, ...]:
        self.depth = depth
        with Path(self.path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            if checked:
                self._look_at_owner(os.fstat(file.fileno()))
            for number, text in enumerate(file, 1):
                self.where = f"{self.path} line {number}"
                try:
                    self._line(text.rstrip(SPACE + "\f"))
                except ValueError as error:
                    raise TroubleError(f"{self.where}: {error}") from None
        self._close(None)
        return tuple(_gathered(self.blocks))

    def _look_at_owner(self, status: os.stat_result) -> None:
        if status.st_uid not in (0, os.getuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise TroubleError(f"{self.path}: bad owner or permissions")

    def _line(self, text: str) -> None:
        keyword, rest = strdelim(text.lstrip(SPACE))
        if not keyword or keyword.startswith("#"):
            return
        keyword, rest = keyword.lower(), (rest or "").lstrip(SPACE)
        arguments(rest)  # a quote that never ends is refused whatever the keyword
        if keyword not in KNOWN:
            if not matches_list(keyword, self.ignored):
                raise ValueError(f"{keyword} is nothing that ncheck knows")
        elif not rest:
            raise ValueError(f"{keyword} without a value")
        elif keyword in _STRUCTURE:
            _STRUCTURE[keyword](self, rest)
        elif values := _values(keyword, rest):
            self.entries.append(Line(keyword, values))

    def _close(self, when: HostPatterns | tuple[Criterion, ...] | None) -> None:
        """End the block that is open and begin the next."""
        if self.entries:
            self.blocks.append(Block(self.when, tuple(self.entries)))
        self.when, self.entries = when, []

    def _ignore_unknown(self, rest: str) -> None:
        """Take the list only where it holds for every host: elsewhere an unknown keyword is for ssh to judge."""
        if self.when is None or self.when == EVERY_HOST:
            self.ignored = self.ignored or arguments(rest)[0].lower()

    def _host(self, rest: str) -> None:
        patterns = arguments(rest)
        if not all(patterns):
            raise ValueError("Host with an empty pattern")
        plain = not any(char in pattern for pattern in patterns for char in "*?!")
        self._close(HostPatterns(frozenset(patterns), ()) if plain else HostPatterns(frozenset(), patterns))

    def _match(self, rest: str) -> None:
        self._close(tuple(_criteria(rest)))

    def _include(self, rest: str) -> None:
        if self.depth >= DEEPEST:
            raise ValueError("files include one another too deep")
        paths = [path for pattern in arguments(rest) for path in self._included(pattern)]
        self.entries.append(Include(tuple(self._read_included(path) for path in paths)))

    def _included(self, pattern: str) -> list[str]:
        if not pattern or "%" in pattern or "${" in pattern or (pattern[0] == "~" and not self.of_user):
            raise ValueError("an Include that only ssh can follow")
        if pattern == "~" or pattern.startswith("~/"):
            pattern = self.home + pattern[1:]
        if pattern.startswith("~"):
            raise ValueError("an Include in somebody's home folder, for ssh to find")
        folder = f"{self.home}/.ssh" if self.of_user else "/etc/ssh"
        anchored = pattern if pattern.startswith("/") else f"{folder}/{pattern}"
        return sorted(glob.glob(anchored))  # noqa: PTH207  an absolute pattern, which Path.glob does not take

    def _read_included(self, path: str) -> tuple[Part, ...]:
        file = _File(path, self.home, of_user=self.of_user)
        file.ignored = self.ignored
        try:
            return file.read(checked=True, depth=self.depth + 1)
        except FileNotFoundError:  # a link to nowhere: OpenSSH goes on too
            return ()


_STRUCTURE: Mapping[str, Callable[[_File, str], None]] = {
    "host": _File._host,  # noqa: SLF001  a table of the class's own steps
    "match": _File._match,  # noqa: SLF001
    "include": _File._include,  # noqa: SLF001
    "ignoreunknown": _File._ignore_unknown,  # noqa: SLF001
}


def _values(keyword: str, rest: str) -> tuple[str, ...]:
    """Return a keyword's checked values; none for a keyword that ncheck has no use for."""
    if keyword in COMMANDS:
        command = rest.lstrip(SPACE + "=")
        return (COMMANDS[keyword](command),)
    values = arguments(rest)
    if not values:
        raise ValueError(f"{keyword} without a value")
    if keyword in MANY:
        return values
    if keyword not in NORMAL:
        return () if keyword not in REPEATED else _only(keyword, values)
    value = NORMAL[keyword](_only(keyword, values)[0])
    return () if (keyword, value) == ("connecttimeout", "none") else (value,)  # that none leaves it to later lines


def _only(keyword: str, values: tuple[str, ...]) -> tuple[str]:
    if len(values) > 1:
        raise ValueError(f"{keyword} with more than one value")
    if not values[0]:
        raise ValueError(f"{keyword} with an empty value")
    return (values[0],)


def _criteria(rest: str | None) -> list[Criterion]:
    """Read the criteria of a Match line; TroubleError for what no single reading of the files can decide."""
    found: list[Criterion] = []
    while rest:
        word, rest = strdelim(rest)
        if word.startswith("#") or not word:
            break
        negated, kind = word.startswith("!"), word.removeprefix("!").lower()
        if kind in ("all", "canonical"):
            found.append(Criterion(kind, negated=negated))
            continue
        if kind not in ("host", "originalhost", "user", "localuser", "exec"):
            raise ValueError(f"Match {kind} is for ssh to decide")
        value, rest = strdelim(rest or "")
        if not value or value.startswith("#"):
            raise ValueError(f"Match {kind} without a value")
        found.append(Criterion(kind, value, negated))
    if any(c.kind == "all" for c in found) and len(found) > 1:
        raise ValueError("Match all beside other criteria")
    return found
