"""ncheck.toml: in the current folder, else in ~/.config/ncheck; or any file named by --config. An example:

    nodes = "hosts.txt"            # and port, user, identity, ssh-config, via, transport, sudo, width,
    setup = "module load nccl"     # connect-timeout, command-timeout, deadline, mesh, probe, probe-time,
    ignore = ["NC305=node07"]      # probe-launcher, sizes, repeats, expect, data, storage-probe, select, ignore,
                                   # fail-on, output, python, setup, enter, rsh, as the flags

    [host."node[01-04]"]           # other values for these nodes: python, setup, enter, rsh; "" for none
    python = "/opt/conda/bin/python"

    [[check]]                      # a check of this site: see own_checks.py
    code = "X001"

Some keys run code: setup, enter, rsh, python, sudo, [[check]], and ssh-config, which can contain commands. Others name
a file that is written (history) or opened (nodes, identity, requirements). A file that was only found in the current
folder may have come with a download, so these keys of it are ignored until `ncheck allow` has approved this path with
this content, with that of the files in checks.d, and of the ssh configuration that it names. A file to open that lies
beside it came with it, and is used; one that lies elsewhere is refused. All keys are used of a file that --config
names, and of ~/.config/ncheck. The headline names what a found file makes milder.

A file that was found is used only if you or root own it and nobody else can write to it; otherwise the run ends with an
error.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ncheck.errors import SettingsError
from ncheck.files import reading
from ncheck.hostlist import quoted, unfold
from ncheck.lazy_dataclass import dataclass
from ncheck.settings import values as read
from ncheck.settings.approval import approved, covered, own_folder
from ncheck.settings.options import ALWAYS, ENVIRONMENT, OPTIONS, OUTSIDE
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.settings.own_checks import OwnCheck
    from ncheck.settings.values import Output

NAME, FOLDER = "ncheck.toml", "checks.d"  # of [[check]], beside it
LARGEST = 2**20
STREAMS = ("-", "none")  # paths that are none: standard input, and no file
_KEYS = {row.key: name for name, row in OPTIONS.items() if not row.not_in_file}
_NOT_IN_FILE = {
    "config": "a settings file cannot name another one",
    **{row.key: row.not_in_file for row in OPTIONS.values() if row.not_in_file},
}


@dataclass(frozen=True)
class FileSettings:
    """The content of a file: validated values by field, and values per host set in the order of the file.

    `name` is what messages call the file, `folder` where it is. `ignored` are keys that need an approval, in a file
    that nobody approved: they are not among the values. `found`: it lay in the current folder, and nobody named it.
    """

    name: str = NAME
    folder: Path = Path()
    found: bool = False

    values: Mapping[str, object] = field(default_factory=dict)
    hosts: tuple[tuple[str, Mapping[str, str]], ...] = ()
    ignored: tuple[str, ...] = ()
    checks: tuple[OwnCheck, ...] = ()  # with those of checks.d
    also: tuple[bytes, ...] = ()  # the contents of the files in checks.d

    @property
    def sources(self) -> Mapping[str, str]:
        """What messages call each value: "ncheck.toml: port"."""
        return {name: f"{self.name}: {OPTIONS[name].key}" for name in self.values}

    @property
    def to_approve(self) -> tuple[tuple[str, str], ...]:
        """The keys that count after an approval, each with its value."""
        rows = [(OPTIONS[name].key, value) for name, value in self.values.items() if self._needs_approval(name)]
        rows += [(f"{name} of {nodes}", value) for nodes, own in self.hosts for name, value in own.items()]
        rows += [(f"check {one.code}", one.run) for one in self.checks]
        return tuple((name, str(value)) for name, value in rows if value)

    def approval_of(self, content: bytes, environ: Mapping[str, str]) -> bytes | None:
        """Return what an approval is for: the content of the file, of checks.d, and of the ssh configuration."""
        from ncheck.ssh.config_syntax import local_user

        chosen = str(self.values.get("ssh_config") or "none")
        whole = b"\0".join((content, *self.also)) if self.also else content
        return covered(whole, chosen, "" if chosen == "none" else local_user(environ).home)

    def _needs_approval(self, name: str) -> bool:
        return OPTIONS[name].approval == ALWAYS or self._opened_elsewhere(name)

    def _opened_elsewhere(self, name: str) -> bool:
        if OPTIONS[name].approval != OUTSIDE or (value := str(self.values[name])) in STREAMS:
            return False
        return self.folder.resolve() not in Path(os.path.realpath(value)).parents

    def unapproved(self) -> FileSettings:
        """Return what counts without an approval. Raises SettingsError where too little would: no list of nodes."""
        if named := [OPTIONS[name].key for name in self.values if self._opened_elsewhere(name)]:
            raise SettingsError(
                f"{self.name}: {named[0]} is a file outside this folder; to trust what you found here: ncheck allow"
            )
        values = {name: value for name, value in self.values.items() if not self._needs_approval(name)}
        return replace(self, values=values, hosts=(), checks=(), ignored=tuple(name for name, _ in self.to_approve))


def read_settings_file(chosen: str | None, environ: Mapping[str, str], cwd: Path) -> FileSettings:
    """Read the chosen file, that of NCHECK_CONFIG, or the ncheck.toml that is found ("none" reads nothing).

    Raises SettingsError with the file and the key.
    """
    shown = chosen
    if not chosen and (chosen := environ.get("NCHECK_CONFIG")):
        shown = f"NCHECK_CONFIG={chosen}"
    if chosen == "none":
        return FileSettings()
    if chosen:
        return read_file(cwd / Path(chosen).expanduser(), str(shown), None)[0]
    path = cwd / NAME
    if not os.access(cwd, os.X_OK):  # after su or sudo -u: as without a file
        return FileSettings()
    if path.exists() and not path.is_file():
        raise SettingsError(f"{NAME}: it is not a file; to run without it: --config none")
    own = own_folder(environ, "XDG_CONFIG_HOME", ".config")
    if not os.path.lexists(path):
        return read_file(own / NAME, str(own / NAME), environ)[0] if own and (own / NAME).exists() else FileSettings()
    settings, content = read_file(path, NAME, environ)
    if own and path.parent.resolve() == own.resolve():
        return settings
    settings = replace(settings, found=True)
    return settings if approved(path, settings.approval_of(content, environ), environ) else settings.unapproved()


def read_file(path: Path, shown: str, environ: Mapping[str, str] | None) -> tuple[FileSettings, bytes]:
    """Return the settings of a file, and its content; without a file, nothing. `environ` is given for one that was only
    found: it must belong to this user. Raises SettingsError.
    """
    shown = printable(shown)
    try:
        with reading(path) as file:
            if environ is not None:
                _trusted(os.fstat(file.fileno()), environ)
            data = file.read(LARGEST + 1)
        settings = _Reading(path.parent, shown).settings(_table(data))
        return _with_folder(settings, path.parent), data
    except FileNotFoundError:
        if environ is not None and not path.is_symlink():
            return FileSettings(), b""
        raise SettingsError(f"{shown}: no such file") from None
    except OSError as error:
        raise SettingsError(f"{shown}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{shown}: {error}") from None


def _with_folder(settings: FileSettings, folder: Path) -> FileSettings:
    """Add the checks of the folder checks.d beside the file. Raises ValueError.

    Nobody named its files, so they must be this user's own, also where the settings file was named.
    """
    if not (folder / FOLDER).is_dir():
        return settings
    from ncheck.settings.own_checks import once_each, own_checks

    checks, contents = [*settings.checks], []
    _trusted((folder / FOLDER).stat(), os.environ, FOLDER)
    for path in sorted((folder / FOLDER).glob("[!.]*.toml")):  # an editor's own files begin with a dot
        shown = f"{FOLDER}/{printable(path.name)}"
        try:
            with reading(path) as file:
                _trusted(os.fstat(file.fileno()), os.environ, shown)
                data = file.read(LARGEST + 1)
            table = _table(data)
            checks += own_checks(table.pop("check", []), *table)
        except OSError as error:
            raise ValueError(f"{shown}: {error.strerror or error}") from None
        except ValueError as error:
            raise ValueError(f"{shown}: {error}") from None
        contents.append(os.fsencode(path.name) + b"\0" + data)
    return replace(settings, checks=once_each(checks), also=tuple(contents))


def _trusted(status: os.stat_result, environ: Mapping[str, str], name: str = NAME) -> None:
    """Refuse a file that another user could have created or changed. The folder does not matter: a file that another
    user puts there is theirs. The user's own group may write: on most systems nobody else is in it.
    """
    mine = {os.getuid()}
    if os.getuid() == 0 and environ.get("SUDO_UID", "").isdecimal():
        mine.add(int(environ["SUDO_UID"]))
    if status.st_uid not in mine | {0}:
        otherwise = f"; read it, then use --config {NAME} (or --config none to run without it)" if name == NAME else ""
        raise ValueError(
            f"it belongs to user {status.st_uid}, not to you, and can contain commands that run on the nodes{otherwise}"
        )
    if status.st_mode & stat.S_IWOTH:
        raise ValueError(
            f"all users can write to it, and it can contain commands that run on the nodes: chmod o-w {name}"
        )
    if status.st_mode & stat.S_IWGRP and status.st_gid not in (0, os.getgid()):
        raise ValueError(
            f"its group can write to it, and it can contain commands that run on the nodes: chmod g-w {name}"
        )


def _table(data: bytes) -> dict[str, object]:
    if len(data) > LARGEST:
        raise ValueError("it is larger than 1 MiB, so not a settings file")
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("invalid TOML: it is nested too deep") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"invalid TOML: {printable(str(error))}") from None


class _Reading:
    """Reads one file; relative paths in it are relative to its folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def settings(self, table: Mapping[str, object]) -> FileSettings:
        hosts = table.get("host", {})
        values = {key: value for key, value in table.items() if key not in ("host", "check")}
        if not isinstance(hosts, dict):
            raise ValueError('host: expected a table for a set of nodes: [host."node[01-04]"]')  # noqa: TRY004  a wrong value, reported like others
        of_hosts = tuple(self._host(nodes, rows) for nodes, rows in hosts.items())
        made = FileSettings(self.name, self.folder, values=self._values(values), hosts=of_hosts)
        if "check" not in table:
            return made
        from ncheck.settings.own_checks import once_each, own_checks

        return replace(made, checks=once_each(own_checks(table["check"])))

    def _values(self, table: Mapping[str, object]) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, value in table.items():
            name = _known(key, _KEYS, "host", "check")
            made = _read(key, name, value)
            if name == "output" and any(one.path for one in cast("tuple[Output, ...]", made)):
                raise ValueError("output: a file is not allowed here: give -o FORMAT=FILE as an option of each run")
            values[name] = anchored(self.folder, str(made)) if OPTIONS[name].read is read.path else made
        return values

    def _host(self, nodes: str, table: object) -> tuple[str, Mapping[str, str]]:
        where = f"host.{quoted(nodes)}"
        if not isinstance(table, dict):
            raise ValueError(f"{where}: expected a table")  # noqa: TRY004  a wrong value, reported like others
        try:
            unfold(nodes)
            keys = {name: name for name in ENVIRONMENT}
            return nodes, {_known(key, keys): str(_read(key, key, value)) for key, value in table.items()}
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def anchored(folder: Path, path: str) -> str:
    """Return a path relative to this folder as an absolute one."""
    return path if path in STREAMS else str(folder / Path(path).expanduser())


def _known(key: str, keys: Mapping[str, str], *tables: str) -> str:
    dashed = key.replace("_", "-")
    if dashed in keys:
        return keys[dashed]
    if dashed in _NOT_IN_FILE:
        raise ValueError(f"{dashed} is not allowed in a settings file: {_NOT_IN_FILE[dashed]}")
    from difflib import get_close_matches

    near = get_close_matches(dashed, [*keys, *tables], n=1)
    raise ValueError(f"unknown setting {quoted(key)}; " + (f"did you mean {near[0]}?" if near else "known settings: "
                     + ", ".join(sorted(keys))))  # fmt: skip


def _read(key: str, name: str, value: object) -> object:
    try:
        return OPTIONS[name].read(value)
    except ValueError as error:
        raise ValueError(f"[{key}] {error}" if isinstance(value, Mapping) else f"{key}: {error}") from None
