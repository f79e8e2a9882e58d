"""ncheck.toml: found beside the job, or named by --config; a settings file like this one:

    nodes = "hosts.txt"            # and port, user, identity, ssh-config, transport, sudo, width, connect-timeout,
    setup = "module load nccl"     # command-timeout, deadline, mesh, probe, probe-time, probe-launcher, sizes, expect,
    ignore = ["NC305=node07"]      # select, ignore, fail-on, output, python, setup, enter, rsh, as the flags

    [host."node[01-04]"]           # what differs for these nodes: python, setup, enter, rsh; "" for none
    python = "/opt/conda/bin/python"

It can name commands that run on every node (setup, enter, rsh, python) and an ssh configuration, which may name more.
So a file that was merely found is used only if it is yours or root's, and nobody else may write to it; otherwise the
run ends and says so, rather than go on with other settings than the folder seems to ask for. --config is trust.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ncheck.errors import SettingsError
from ncheck.hostlist import quoted, unfold
from ncheck.settings.values import ENVIRONMENT, READ
from ncheck.text import printable

NAME = "ncheck.toml"


LARGEST = 2**20


# Flags only: what a file must not decide, or what makes no sense in one.
_FLAGS_ONLY = {
    "accept-new-host-keys": "it is a decision of the moment: give it as a flag",
    "hosts": 'name a host file by nodes = "hosts.txt", or give -H as a flag',
    "local": "run ncheck local",
    "record": "give it as a flag",
    "config": "a settings file names no other",
    "launcher": "give it as a flag: ncheck plan --for, ncheck launch --with",
    "program": "give it behind --",
    "good-nodes": "give it as a flag",
    "drop-bad": "it is a decision of the moment: give it as a flag",
    "force": "it is a decision of the moment: give it as a flag",
}


_PATHS = ("nodes_file", "identity", "ssh_config")


_KEYS = {
    ("nodes" if name == "nodes_file" else name.replace("_", "-")): name
    for name in READ
    if name.replace("_", "-") not in _FLAGS_ONLY
}


@dataclass(frozen=True)
class FileSettings:
    """What a file says: checked values by the name of the field, and what differs by host, in the file's order."""

    values: Mapping[str, object] = field(default_factory=dict)
    hosts: tuple[tuple[str, Mapping[str, str]], ...] = ()


def read_settings_file(chosen: str | None, environ: Mapping[str, str], cwd: Path) -> FileSettings:
    """Read the chosen file, or ncheck.toml of this folder where there is one ("none" reads nothing).

    Raises SettingsError, which names the file and the key.
    """
    if chosen == "none":
        return FileSettings()
    path = cwd / (Path(chosen).expanduser() if chosen else NAME)
    shown = printable(chosen or NAME)
    try:
        with path.open("rb") as file:
            if chosen is None:
                _trusted(os.fstat(file.fileno()), environ)
            data = file.read(LARGEST + 1)
        return _Reading(path.parent).settings(_table(data))
    except FileNotFoundError:
        if chosen is None and not path.is_symlink():
            return FileSettings()
        raise SettingsError(f"{shown}: no such file") from None
    except OSError as error:
        raise SettingsError(f"{shown}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{shown}: {error}") from None


def _trusted(status: os.stat_result, environ: Mapping[str, str]) -> None:
    """Refuse a file that somebody else could have put or changed there. The folder does not matter: what another user
    puts into one that is open to all is theirs. Our own group may write: on most systems nobody else is in it.
    """
    mine = {os.getuid()}
    if os.getuid() == 0 and environ.get("SUDO_UID", "").isdecimal():
        mine.add(int(environ["SUDO_UID"]))
    if status.st_uid not in mine | {0}:
        raise ValueError(
            f"it is not yours but user {status.st_uid}'s, and it may name commands to run on the nodes; read it, then"
            f" name it yourself: --config {NAME} (or --config none to go on without)"
        )
    if status.st_mode & stat.S_IWOTH:
        raise ValueError(f"anybody may write to it, and it may name commands to run on the nodes: chmod o-w {NAME}")
    if status.st_mode & stat.S_IWGRP and status.st_gid not in (0, os.getgid()):
        raise ValueError(f"its group may write to it, and it may name commands to run on the nodes: chmod g-w {NAME}")


def _table(data: bytes) -> Mapping[str, object]:
    if len(data) > LARGEST:
        raise ValueError("it is larger than 1 MiB: no settings file")
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML: {printable(str(error))}") from None


class _Reading:
    """The reading of one file; relative paths in it start at its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def settings(self, table: Mapping[str, object]) -> FileSettings:
        hosts = table.get("host", {})
        values = {key: value for key, value in table.items() if key != "host"}
        if not isinstance(hosts, dict):
            raise ValueError('host: a table a set of nodes is wanted: [host."node[01-04]"]')  # noqa: TRY004  a wrong value, told as any other
        return FileSettings(self._values(values), tuple(self._host(nodes, rows) for nodes, rows in hosts.items()))

    def _values(self, table: Mapping[str, object]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in table.items():
            name = _known(key, _KEYS, "host")
            read = _read(key, name, value)
            found[name] = self._anchored(str(read)) if name in _PATHS else read
        return found

    def _host(self, nodes: str, table: object) -> tuple[str, Mapping[str, str]]:
        where = f"host.{quoted(nodes)}"
        if not isinstance(table, dict):
            raise ValueError(f"{where}: a table is wanted")  # noqa: TRY004  a wrong value, told as any other
        try:
            unfold(nodes)
            keys = {name: name for name in ENVIRONMENT}
            return nodes, {_known(key, keys): str(_read(key, key, value)) for key, value in table.items()}
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    def _anchored(self, path: str) -> str:
        return path if path in ("-", "none") else str(self.folder / Path(path).expanduser())


def _known(key: str, keys: Mapping[str, str], *tables: str) -> str:
    dashed = key.replace("_", "-")
    if dashed in keys:
        return keys[dashed]
    if dashed in _FLAGS_ONLY:
        raise ValueError(f"{dashed} cannot stand in a settings file: {_FLAGS_ONLY[dashed]}")
    from difflib import get_close_matches

    near = get_close_matches(dashed, [*keys, *tables], n=1)
    raise ValueError(f"no setting is called {quoted(key)}; " + (f"did you mean {near[0]}?" if near else "known are "
                     + ", ".join(sorted(keys))))  # fmt: skip


def _read(key: str, name: str, value: object) -> object:
    try:
        return READ[name](value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
