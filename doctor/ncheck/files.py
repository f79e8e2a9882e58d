"""Files that a run writes on this machine: refused before any node is asked, written whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ncheck.errors import SettingsError
from ncheck.text import printable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MOST_LINKS = 40  # from one to the next, as in Linux
_STREAMS = ("/dev", "/dev/fd")  # /dev/stdout is the file that the report goes to


def writable(path: str, option: str, nodes_file: str | None = None) -> None:
    """Refuse a file that cannot be written, or that is the list of nodes. Raises SettingsError."""
    shown = f"{option}: {printable(path)}"
    if path == "-":
        raise SettingsError(f"{option}: expected a file; standard output (-) is used by the report")
    target = Path(path)
    folder = target.parent
    if str(folder.absolute()) in _STREAMS or folder.absolute().is_relative_to("/proc"):
        raise SettingsError(f"{shown} is not a regular file")
    try:
        if not folder.is_dir():
            raise SettingsError(f"{shown}: the folder {printable(str(folder))} does not exist")
        _target(target, option)
        if target.exists():
            if nodes_file not in (None, "-") and Path(nodes_file or "").exists() and target.samefile(nodes_file or ""):
                raise SettingsError(f"{shown} is the input list and is not overwritten: choose another file")
            if not stat.S_ISREG(target.stat().st_mode):
                raise SettingsError(f"{shown} exists and is not a regular file")
    except OSError as error:  # a folder on the way that this user cannot enter, a name that is too long
        raise SettingsError(f"{shown}: {error.strerror}") from None
    if not os.access(os.path.realpath(folder), os.W_OK):
        raise SettingsError(f"{shown}: no permission to write in {printable(str(folder))}")


def reading(path: str | Path) -> io.BufferedReader:
    """Open a file or a pipe. Raises OSError, at once also for a pipe that no process writes to."""
    stream = open(path, "rb", buffering=0, opener=_at_once)  # noqa: SIM115  closed with what is returned
    try:
        start = _first_byte(stream.fileno()) if stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode) else b""
        os.set_blocking(stream.fileno(), True)
    except OSError:
        stream.close()
        raise
    return io.BufferedReader(_After(start, stream) if start else stream)


def _at_once(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _first_byte(pipe: int) -> bytes:
    try:
        start = os.read(pipe, 1)
    except BlockingIOError:
        return b""  # its writer has written nothing yet
    if not start:
        raise OSError(errno.ENXIO, "is a pipe that no process writes to")
    return start


class _After(io.RawIOBase):
    """A stream, behind the bytes of it that were read already."""

    def __init__(self, start: bytes, rest: io.FileIO) -> None:
        self.start, self.rest = start, rest

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.rest.fileno()

    def close(self) -> None:
        self.rest.close()
        super().close()

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        if not self.start:
            return self.rest.readinto(buffer)
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(self.start))
        view[:count], self.start = self.start[:count], self.start[count:]
        return count


def write_whole(path: str, option: str, write: Callable[[TextIO], object], mode: int = 0o644) -> None:
    """Let `write` fill a file that replaces this one at once: a reader never sees half. Raises SettingsError.

    Only its owner can write to it, whatever the umask. In a folder where others can write, nothing is followed or
    opened that they put there.
    """
    target = _target(Path(path), option)
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:
        with open(temporary, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            write(stream)
        temporary.replace(target)
    except OSError as error:
        raise SettingsError(f"{option}: {printable(path)}: {error.strerror}") from None
    finally:
        with suppress(OSError):  # it is gone if it took its place
            temporary.unlink()


def new_place(path: str, option: str) -> None:
    """Refuse a folder or file to make that is there already, but for an empty folder, or whose own folder is missing.

    Raises SettingsError.
    """
    shown, target = f"{option}: {printable(path)}", Path(path)
    if path == "-":
        raise SettingsError(f"{option}: expected a folder or a file, not standard output (-)")
    try:
        if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
            raise SettingsError(f"{shown} exists and is not overwritten: choose another name")
        if not target.parent.is_dir():
            raise SettingsError(f"{shown}: the folder {printable(str(target.parent))} does not exist")
    except OSError as error:
        raise SettingsError(f"{shown}: {error.strerror}") from None
    if not os.access(os.path.realpath(target.parent), os.W_OK):
        raise SettingsError(f"{shown}: no permission to write in {printable(str(target.parent))}")


def write_folder(path: str, option: str, files: Mapping[str, str]) -> None:
    """Make a folder of these files, whole or not at all, for this user alone. Nothing is overwritten or followed.

    Raises SettingsError.
    """
    new_place(path, option)
    target = Path(path).parent.resolve() / Path(path).name
    beside = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:
        beside.mkdir(mode=0o700)
        for name, content in files.items():
            place = beside / name
            place.parent.mkdir(mode=0o700, exist_ok=True)
            with open(place, "x", encoding="utf-8", opener=_private) as stream:
                stream.write(content)
        beside.rename(target)  # the system refuses what came in between, unless it is an empty folder
    except OSError as error:
        raise SettingsError(f"{option}: {printable(path)}: {error.strerror}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)  # it is gone if it took its place


def write_zip(path: str, option: str, files: Mapping[str, str]) -> None:
    """Make a zip archive of these files, whole or not at all, for this user alone. Raises SettingsError."""

    def write(stream: TextIO) -> None:
        with zipfile.ZipFile(stream.buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)

    new_place(path, option)
    write_whole(path, option, write, 0o600)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _target(path: Path, option: str) -> Path:
    """Return the file that is replaced: what a link of this user or of root leads to. Raises SettingsError."""
    try:
        return followed(path)
    except ValueError as error:
        raise SettingsError(f"{option}: {printable(str(path))} {error}") from None


def followed(path: Path) -> Path:
    """Return what links of this user or of root lead to. Raises ValueError at a link of another user."""
    for _ in range(_MOST_LINKS):
        path = path.parent.resolve() / path.name
        if not path.is_symlink():
            return path
        if path.lstat().st_uid not in (0, os.geteuid()):
            raise ValueError("is a symbolic link of another user: choose another file")
        path = path.parent / path.readlink()
    raise ValueError("is a link that leads to no file")
