"""Which settings files the user approved: `ncheck allow` notes a file's path and content, and any change ends it. The
content of the ssh configuration that it names counts, because that can contain commands, too.

The notes are lines of ~/.local/state/ncheck/allowed, a hash of path and content, and the path for people.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ncheck.errors import SettingsError
from ncheck.text import printable

_LARGEST = 2**20  # bytes: thousands of notes, or hosts
_MOST_FILES = 100  # of an ssh configuration


def own_folder(environ: Mapping[str, str], variable: str, usual: str) -> Path | None:
    """Return ncheck's folder for this user's configuration or state; None where the user has no home."""
    chosen, home = environ.get(variable, ""), environ.get("HOME", "")
    if not chosen.startswith("/"):  # the XDG specification: relative paths are invalid
        chosen = f"{home}/{usual}" if home.startswith("/") else ""
    return Path(chosen) / "ncheck" if chosen else None


def covered(content: bytes, ssh_config: str, home: str) -> bytes | None:
    """Return the content with that of an ssh configuration ("none" is no file) and of all files that it includes; those
    below ~/.ssh are the user's own and left out. `home`: of the user, as ssh knows it. None where it is unknown which
    files ssh would read.
    """
    if ssh_config == "none":
        return content
    parts = [content]
    files = [str(Path(ssh_config).absolute())]
    for count, file in enumerate(files):  # which grows
        data = _content(Path(file))
        if count >= _MOST_FILES or data is None:
            return None
        parts.append(os.fsencode(file) + b"\0" + hashlib.sha256(data).digest())
        try:
            found = [one for pattern in _included(data, home) for one in sorted(glob.glob(pattern))]  # noqa: PTH207  an absolute pattern
        except ValueError:
            return None
        files += [one for one in dict.fromkeys(found) if one not in files and not _is_below(f"{home}/.ssh", one)]
    return b"\n".join(parts)


def _included(data: bytes, home: str) -> Iterator[str]:
    """Yield the patterns of the files that an ssh configuration includes. Raises ValueError for what is uncertain."""
    from ncheck.ssh.config_syntax import anchored_include, arguments, keyword_and_rest, strdelim

    if b"\0" in data:
        raise ValueError("a line has an end within it")
    for line in os.fsdecode(data).split("\n"):
        keyword, rest = keyword_and_rest(line)
        if keyword != "include":
            continue
        words, left = [*arguments(rest)], rest
        while left:  # as releases before 8.7 split it
            word, more = strdelim(left)
            words.append(word)
            left = more or ""
        yield from (anchored_include(word, home, f"{home}/.ssh") for word in words if word)


def _is_below(folder: str, path: str) -> bool:
    return path.startswith(f"{folder}/") and ".." not in Path(path).parts


def _content(path: Path) -> bytes | None:
    """Return the content of a file; nothing where there is none, None where it is no plain file or cannot be read."""
    try:
        if not path.is_file():
            return None if path.exists() and str(path) != os.devnull else b""
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return None
    return data if len(data) <= _LARGEST else None


def approved(path: Path, content: bytes | None, environ: Mapping[str, str]) -> bool:
    """Return whether the user approved this file with this content, which is what `covered` returned."""
    notes = _file(environ)
    if notes is None or content is None:
        return False
    return _mark(path, content) in (line.split(" ")[0] for line in _lines(notes))


def approve(path: Path, content: bytes | None, environ: Mapping[str, str]) -> None:
    """Note that the user approves this file with this content. Raises SettingsError."""
    if content is None:
        raise SettingsError(
            "ssh-config: the files that it includes are unknown or unreadable, so it cannot be approved"
        )
    notes = _file(environ)
    if notes is None:
        raise SettingsError("this cannot be noted: HOME is not set")
    shown = printable(str(path.resolve()), 4096)
    kept = [line for line in _lines(notes) if line.partition(" ")[2] != shown]
    try:
        notes.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = notes.with_name(f".{notes.name}.{os.getpid()}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in (*kept, f"{_mark(path, content)} {shown}"))
        beside.replace(notes)
    except OSError as error:
        raise SettingsError(f"{notes}: {error.strerror}") from None


def _file(environ: Mapping[str, str]) -> Path | None:
    folder = own_folder(environ, "XDG_STATE_HOME", ".local/state")
    return folder / "allowed" if folder else None


def _mark(path: Path, content: bytes) -> str:
    return hashlib.sha256(os.fsencode(path.resolve()) + b"\0" + content).hexdigest()


def _lines(notes: Path) -> list[str]:
    """Return the notes; none of a file that others could have written."""
    try:
        with notes.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return []
            return file.read(_LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
