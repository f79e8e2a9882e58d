"""Which settings files the user approved: `ncheck allow` notes a file's path and content, and any change ends it.

The notes are lines of ~/.local/state/ncheck/allowed, a hash of path and content, and the path for people.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from ncheck.errors import SettingsError
from ncheck.text import printable

_LARGEST = 2**20  # bytes: thousands of notes


def own_folder(environ: Mapping[str, str], variable: str, usual: str) -> Path | None:
    """Return ncheck's folder for this user's configuration or state; None where the user has no home."""
    chosen, home = environ.get(variable, ""), environ.get("HOME", "")
    if not chosen.startswith("/"):  # the XDG specification: relative paths are invalid
        chosen = f"{home}/{usual}" if home.startswith("/") else ""
    return Path(chosen) / "ncheck" if chosen else None


def approved(path: Path, content: bytes, environ: Mapping[str, str]) -> bool:
    """Return whether the user approved this file with this content."""
    notes = _file(environ)
    return notes is not None and _mark(path, content) in (line.split(" ")[0] for line in _lines(notes))


def approve(path: Path, content: bytes, environ: Mapping[str, str]) -> None:
    """Note that the user approves this file with this content. Raises SettingsError."""
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
