"""What ssh configuration says of each host: ~/.ssh/config and /etc/ssh/ssh_config, or -F FILE, as OpenSSH reads them.

The files are read once into blocks of checked lines; a host then costs microseconds. Where this reading cannot decide
(Match exec, Match final, CanonicalizeHostname, an unknown keyword or token, a line that ssh would refuse), `ssh -G` is
asked for that host, 5 ms each.

The command line outweighs the files, and the listing counts as command line: `user@host` and a port in it come first,
then the options -l and -p, then the files, then the local user and port 22.
"""

from __future__ import annotations

import glob
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from pathlib import Path

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh import child
from ncheck.ssh.config_syntax import (
    ALIASES,
    COMMANDS,
    KNOWN,
    NORMAL,
    REPEATED,
    SPACE,
    LocalUser,
    UnknownTokenError,
    anchored_include,
    arguments,
    keyword_and_rest,
    local_user,
    matches,
    matches_list,
    percent_expanded,
    strdelim,
)
from ncheck.ssh.login import ConfigError, ListedHost, Options
from ncheck.ssh.target import SshTarget, from_ssh_g, kerberos_ticket, target_of

SYSTEM_CONFIG = "/etc/ssh/ssh_config"
SSH_G_TIMEOUT = 10.0  # seconds: a Match exec may be slow


def read_ssh_config(options: Options, environ: Mapping[str, str], user: LocalUser | None = None) -> SshConfig:
    """Read the configuration of this run; ConfigError where -F names a file that cannot be read."""
    user = user or local_user(environ)
    return SshConfig(options, user, _files(options.config_file, user))


def _files(chosen: str | None, user: LocalUser) -> tuple[ConfigFile, ...]:
    """Read -F FILE alone, nothing for -F none, or the user's file and then the system's."""
    if chosen is None:
        return (
            read_config_file(f"{user.home}/.ssh/config", user.home, of_user=True, checked=True),
            read_config_file(SYSTEM_CONFIG, user.home, of_user=False, checked=False),
        )
    if chosen.lower() == "none":
        return ()
    try:
        chosen = str(Path(chosen).expanduser())
        with Path(chosen).open("rb"):
            return (read_config_file(chosen, user.home, of_user=True, checked=False),)
    except OSError as error:
        raise ConfigError(f"-F {chosen}: {error.strerror}") from None


class SshConfig:
    """The configuration of one run. `resolve` may be called from many threads at once."""

    def __init__(self, options: Options, user: LocalUser, files: tuple[ConfigFile, ...]) -> None:
        self.options = options
        self.user = user
        self.files = files
        self.trouble = next((file.trouble for file in files if file.trouble), "")

    def resolve(self, host: ListedHost) -> SshTarget:
        """Return what ssh would use for this host. ConfigError where `ssh -G` refuses the configuration."""
        target = self.read(host)
        if not target.unsure or not (ssh := shutil.which("ssh", path=self.user.environ.get("PATH"))):
            return target
        return self._from_ssh_g(ssh, host)

    def read(self, host: ListedHost) -> SshTarget:
        """Return our own reading; its `unsure` says why it cannot be trusted, if so."""
        reading = self._reading(host)
        return target_of(host.name, reading.options, self.user, self._has_ticket, self.trouble or reading.unsure)

    def written(self, host: ListedHost) -> Mapping[str, tuple[str, ...]]:
        """Return all options of this host as they are written, with their tokens."""
        return self._reading(host).options

    def _reading(self, host: ListedHost) -> _Reading:
        reading = _Reading(host.name, self.user.name, self._given(host))
        for file in self.files:
            reading.take(file.parts)
        return reading

    def ssh_arguments(self, host: ListedHost) -> list[str]:
        """Return the arguments that make ssh see this host as we do, its name last: ["-F", FILE, "-p", "22", ...]."""
        given = self._given(host)
        flags = {"-F": self.options.config_file, "-i": self.options.identity}
        flags |= {"-l": given.get("user", (None,))[0], "-p": given.get("port", (None,))[0]}
        return [word for flag, value in flags.items() if value for word in (flag, value)] + ["--", host.name]

    def _given(self, host: ListedHost) -> dict[str, tuple[str, ...]]:
        """Return what the command line and the listing give: it outweighs every file."""
        given: dict[str, tuple[str, ...]] = {}
        if user := host.user or self.options.user:
            given["user"] = (user,)
        if port := host.port or self.options.port:
            given["port"] = (str(port),)
        if self.options.identity:
            path = Path(self.options.identity).expanduser().absolute()
            given["identityfile"] = (str(path).replace("%", "%%"),)
        return given

    def _from_ssh_g(self, ssh: str, host: ListedHost) -> SshTarget:
        try:
            asked = child.run([ssh, "-G", *self.ssh_arguments(host)], SSH_G_TIMEOUT, self.user.environ)
        except OSError as error:
            raise ConfigError(f"ssh -G {host.name}: {error}") from None
        if asked.returncode != 0:
            raise ConfigError(f"ssh configuration: {_complaint(asked.stderr)}")
        return from_ssh_g(asked.stdout.decode(errors="surrogateescape"), self.user, self._has_ticket)

    def _has_ticket(self) -> bool:
        return self._ticket

    @cached_property
    def _ticket(self) -> bool:
        return kerberos_ticket(self.user.environ, self.user.uid)


def _complaint(stderr: bytes) -> str:
    """Return the first line of ssh's messages: those after it only sum up."""
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line and "Pseudo-terminal" not in line]
    return lines[0] if lines else "ssh -G failed without a message"


class _Reading:
    """The options of one host, taken from the files in turn: the first value of each keyword counts."""

    def __init__(self, name: str, local_name: str, given: dict[str, tuple[str, ...]]) -> None:
        self.name = name
        self.local_name = local_name
        self.options = given
        self.unsure = ""

    def take(self, parts: tuple[Part, ...]) -> None:
        for part in parts:
            if isinstance(part, Named):
                self.take(part.by_name.get(self.name, ()))
            elif part.when is None or self._applies(part.when):
                self._follow(part)

    def _follow(self, block: Block) -> None:
        for entry in block.entries:
            if isinstance(entry, ConfigLine):
                self._set(entry)
            else:
                for parts in entry.files:
                    self.take(parts)

    def _set(self, line: ConfigLine) -> None:
        keyword = line.keyword
        if keyword in REPEATED:
            earlier = self.options.get(keyword, ())
            self.options[keyword] = earlier if line.values[0] in earlier else earlier + line.values
        elif keyword == "proxyjump":
            if "proxycommand" not in self.options:
                self.options.setdefault(keyword, line.values)
        elif keyword == "proxycommand":
            if self.options.get("proxyjump", _NO_JUMP)[0].lower() == "none":
                self.options.setdefault(keyword, line.values)
        else:
            self.options.setdefault(keyword, line.values)
            if keyword == "canonicalizehostname" and self.options[keyword] != ("no",):
                self.unsure = self.unsure or "CanonicalizeHostname"

    def _applies(self, when: HostPatterns | tuple[Criterion, ...]) -> bool:
        if isinstance(when, HostPatterns):
            return self.name in when.literal or (bool(when.patterns) and self._named(when.patterns))
        return all(self._meets(criterion) is not criterion.negated for criterion in when)

    def _named(self, patterns: tuple[str, ...]) -> bool:
        found = False
        for pattern in patterns:
            if pattern.startswith("!"):
                if matches(self.name, pattern[1:]):
                    return False
            elif matches(self.name, pattern):
                found = True
        return found

    def _meets(self, criterion: Criterion) -> bool:
        return _CRITERIA[criterion.kind](self, criterion.value)

    def _host_name(self) -> str:
        written = self.options.get("hostname", (self.name,))[0]
        try:
            return percent_expanded(written, {"h": self.name, "%": "%"}) if "hostname" in self.options else self.name
        except UnknownTokenError as error:
            self.unsure = self.unsure or f"HostName {written}: {error}"
            return written

    def _exec(self) -> bool:
        """Leave it to ssh: this client runs no command of a configuration file."""
        self.unsure = self.unsure or "Match exec"
        return False


_NO_JUMP = ("none",)

_CRITERIA: Mapping[str, Callable[[_Reading, str], bool]] = {
    "all": lambda _reading, _value: True,
    "canonical": lambda _reading, _value: False,  # CanonicalizeHostname, which makes it true, goes to ssh anyway
    "exec": lambda reading, _value: reading._exec(),  # noqa: SLF001  a table of the class's own steps
    "host": lambda reading, value: matches_list(reading._host_name().lower(), value.lower()),  # noqa: SLF001
    "originalhost": lambda reading, value: matches_list(reading.name.lower(), value.lower()),
    "user": lambda reading, value: matches_list(reading.options.get("user", (reading.local_name,))[0], value),
    "localuser": lambda reading, value: matches_list(reading.local_name, value),
}

DEEPEST = 16  # OpenSSH's own bound on files that include files


@dataclass(frozen=True)
class ConfigLine:
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
    entries: tuple[ConfigLine | Include, ...]


@dataclass(frozen=True)
class Named:
    """Neighbouring blocks whose Host lines hold plain names only, by name: thousands of them cost one look-up."""

    by_name: Mapping[str, tuple[Block, ...]]


Part = Block | Named


@dataclass(frozen=True)
class ConfigFile:
    """A whole file. `trouble` is why this reading of it cannot be trusted, "" where it can."""

    parts: tuple[Part, ...] = ()
    trouble: str = ""


def _tabled(blocks: Iterable[Block]) -> Iterator[Part]:
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
    """A line that ssh refuses, or that this reading cannot decide."""


def read_config_file(path: str, home: str, *, of_user: bool, checked: bool) -> ConfigFile:
    """Read one file and what it includes. A file that does not exist is empty, as in OpenSSH.

    `of_user` says where relative Include paths start (~/.ssh or /etc/ssh); `checked` that owner and mode are checked.
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
    """Reads one file."""

    def __init__(self, path: str, home: str, *, of_user: bool) -> None:
        self.path = path
        self.home = home
        self.of_user = of_user
        self.where = path
        self.blocks: list[Block] = []
        self.when: HostPatterns | tuple[Criterion, ...] | None = None
        self.entries: list[ConfigLine | Include] = []
        self.ignored = ""

    def read(self, *, checked: bool, depth: int) -> tuple[Part, ...]:
        self.depth = depth
        with Path(self.path).open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            if checked:
                self._check_owner(os.fstat(file.fileno()))
            for number, text in enumerate(file, 1):
                self.where = f"{self.path} line {number}"
                try:
                    self._line(text)
                except ValueError as error:
                    raise TroubleError(f"{self.where}: {error}") from None
        self._close(None)
        return tuple(_tabled(self.blocks))

    def _check_owner(self, status: os.stat_result) -> None:
        if status.st_uid not in (0, os.getuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise TroubleError(f"{self.path}: bad owner or permissions")

    def _line(self, text: str) -> None:
        keyword, rest = keyword_and_rest(text)
        if not keyword:
            return
        keyword = ALIASES.get(keyword, keyword)
        arguments(rest)  # an unclosed quote is refused whatever the keyword
        if keyword not in KNOWN:
            if not matches_list(keyword, self.ignored):
                raise ValueError(f"unknown keyword {keyword}")
        elif not rest:
            raise ValueError(f"{keyword} without a value")
        elif keyword in _STRUCTURE:
            _STRUCTURE[keyword](self, rest)
        elif values := _values(keyword, rest):
            self.entries.append(ConfigLine(keyword, values))

    def _close(self, when: HostPatterns | tuple[Criterion, ...] | None) -> None:
        """End the block that is open and begin the next."""
        if self.entries:
            self.blocks.append(Block(self.when, tuple(self.entries)))
        self.when, self.entries = when, []

    def _ignore_unknown(self, rest: str) -> None:
        """Accept the list only where it holds for every host: elsewhere ssh decides about an unknown keyword."""
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
            raise ValueError("Include nested too deep")
        paths = [path for pattern in arguments(rest) for path in self._included(pattern)]
        self.entries.append(Include(tuple(self._read_included(path) for path in paths)))

    def _included(self, pattern: str) -> list[str]:
        if pattern.startswith("~") and not self.of_user:
            raise ValueError("only ssh can follow this Include")
        folder = f"{self.home}/.ssh" if self.of_user else "/etc/ssh"
        return sorted(glob.glob(anchored_include(pattern, self.home, folder)))  # noqa: PTH207  an absolute pattern, which Path.glob does not take

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
    """Return a keyword's values, checked if this client uses it."""
    if keyword in COMMANDS:
        command = rest.lstrip(SPACE + "=")
        return (COMMANDS[keyword](command),)
    values = arguments(rest)
    if not values:
        raise ValueError(f"{keyword} without a value")
    if keyword in REPEATED:
        return _only(keyword, values)
    if keyword not in NORMAL:
        return values
    value = NORMAL[keyword](_only(keyword, values)[0])
    return () if (keyword, value) == ("connecttimeout", "none") else (value,)  # "none" leaves it to later lines


def _only(keyword: str, values: tuple[str, ...]) -> tuple[str]:
    if len(values) > 1:
        raise ValueError(f"{keyword} with more than one value")
    if not values[0]:
        raise ValueError(f"{keyword} with an empty value")
    return (values[0],)


def _criteria(rest: str | None) -> list[Criterion]:
    """Read the criteria of a Match line; ValueError for what only ssh can decide."""
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
            raise ValueError(f"only ssh can decide Match {kind}")
        value, rest = strdelim(rest or "")
        if not value or value.startswith("#"):
            raise ValueError(f"Match {kind} without a value")
        found.append(Criterion(kind, value, negated))
    if any(c.kind == "all" for c in found) and len(found) > 1:
        raise ValueError("Match all beside other criteria")
    return found
