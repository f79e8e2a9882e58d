"""Where logs come from: files, folders, standard input, packed or not. Each is a stream of chunks, and bounded.

What cannot be read is an Unreadable with the reason; nothing here ends the run.
"""

from __future__ import annotations

import codecs
import os
import shutil
import stat
import subprocess
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from ncheck.errors import NcheckError
from ncheck.lazy_dataclass import dataclass
from ncheck.text import printable, size

MOST_FILES, MOST_DEPTH = 10_000, 12  # of one folder
MOST_UNPACKED = 4 * 2**30  # bytes of one packed log: more is a bomb, or a log to look at in parts
_AT_ONCE = 2**20


class UnreadableError(Exception):
    """Why a log cannot be read, or why only its beginning was."""


@dataclass(frozen=True)
class LogSource:
    """One log by name. `chosen`: named by the user, not found in a folder."""

    name: str
    open: Callable[[], AbstractContextManager[Iterator[bytes]]]
    chosen: bool = True


@dataclass(frozen=True)
class Unreadable:
    """What could not be read, and why."""

    name: str
    reason: str


Refusal = Callable[[str], str]  # why a file of this real path must not be read, or ""


def not_refused(_path: str) -> str:
    """Refuse no file."""
    return ""


def sources(paths: Iterable[str], stdin: BinaryIO, refusal: Refusal = not_refused) -> Iterator[LogSource | Unreadable]:
    """Yield the logs that these paths name; `-` is standard input. Raises NcheckError for one that does not exist."""
    for path in paths:
        if path == "-":
            yield LogSource("-", lambda: _unpacked(_chunks(stdin)))
        elif problem := _refused(path):
            yield Unreadable(path, problem)
        elif Path(path).is_dir():
            yield from _in_folder(path, refusal)
        else:
            yield LogSource(path, _opener(path, refusal))


def _refused(path: str) -> str:
    """Return why nobody can tell what this is, "" if one can. Raises NcheckError if there is no such path."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise NcheckError(f"{printable(path, 400)}: no such file or folder") from None
    except OSError as error:
        return error.strerror or "cannot be read"
    return ""


# Files next to logs that are none: their text would be taken for messages.
_NO_LOGS = frozenset({
    ".py", ".pyc", ".pyi", ".ipynb", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go", ".java",
    ".js", ".ts", ".css", ".html", ".svg", ".md", ".rst", ".json", ".yaml", ".yml", ".toml", ".cfg", ".ini",
    ".conf", ".sh", ".bash", ".sbatch", ".slurm", ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".npy", ".npz",
    ".h5", ".hdf5", ".parquet", ".arrow", ".tfrecord", ".pkl", ".pickle", ".onnx", ".png", ".jpg", ".jpeg", ".gif",
    ".webp", ".mp4", ".pdf", ".so", ".a", ".o", ".whl", ".zip", ".tar", ".tgz", ".rpm", ".deb", ".csv", ".tsv",
    ".model", ".vocab", ".db", ".sqlite", ".lock",
})  # fmt: skip


def _in_folder(folder: str, refusal: Refusal) -> Iterator[LogSource | Unreadable]:
    """Yield the logs below a folder in the order of their names. Links to folders are not followed."""
    count = 0
    refused: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=refused.append):
        depth = place[len(folder) :].count(os.sep)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and depth < MOST_DEPTH)
        for name in sorted(names):
            if name.startswith(".") or Path(name).suffix.lower() in _NO_LOGS:
                continue
            path = os.path.join(place, name)  # noqa: PTH118  as the user wrote the folder
            try:
                regular = stat.S_ISREG(Path(path).stat().st_mode)
            except OSError as error:
                yield Unreadable(path, error.strerror or "cannot be read")
                continue
            if not regular:
                continue
            count += 1
            if count > MOST_FILES:
                yield Unreadable(folder, f"more than {MOST_FILES} files: the others were not read")
                return
            yield LogSource(path, _opener(path, refusal), chosen=False)
    yield from (Unreadable(str(error.filename), error.strerror or "cannot be read") for error in refused)


def _opener(path: str, refusal: Refusal) -> Callable[[], AbstractContextManager[Iterator[bytes]]]:
    return lambda: _opened(path, refusal)


def opened_path(descriptor: int) -> str:
    """Return the real path of a file that is open: nobody can change what it leads to any more."""
    return os.path.realpath(f"/proc/self/fd/{descriptor}")


@contextmanager
def _opened(path: str, refusal: Refusal) -> Iterator[Iterator[bytes]]:
    """Open a file or a pipe. A file that grows is read as far as it was when it was opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableError(error.strerror or "cannot be opened") from None
    with open(descriptor, "rb", buffering=0) as stream:  # noqa: PTH123  a descriptor has no path
        if reason := refusal(opened_path(descriptor)):
            raise UnreadableError(reason)
        found = os.fstat(descriptor)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode)):
            raise UnreadableError("is a device, not a log")
        if stat.S_ISFIFO(found.st_mode):
            start = _first_byte(descriptor)
            os.set_blocking(descriptor, True)
            log = _unpacked(_after(start, _chunks(stream)))
        else:
            log = _unpacked(_bounded(_chunks(stream), found.st_size), descriptor)
        with log as unpacked:
            yield unpacked


def _first_byte(descriptor: int) -> bytes:
    try:
        start = os.read(descriptor, 1)
    except BlockingIOError:
        return b""  # its writer has written nothing yet
    if not start:
        raise UnreadableError("is a pipe that no process writes to")
    return start


def _after(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if start:
        yield start
    yield from chunks


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    read = getattr(stream, "read1", stream.read)
    try:
        while chunk := read(_AT_ONCE):
            yield chunk
    except OSError as error:
        raise UnreadableError(error.strerror or "cannot be read") from None


@contextmanager
def _unpacked(chunks: Iterator[bytes], file: int | None = None) -> Iterator[Iterator[bytes]]:
    """Open a stream of text, unpacked if its first bytes say so. Raises UnreadableError if it is no text.

    `file` is the open file that the chunks come from, if they come from one.
    """
    start = b""
    while len(start) < _SNIFFED and (chunk := next(chunks, b"")):
        start += chunk
    packed = next((kind for mark, kind in _PACKED.items() if start.startswith(mark)), None)
    chunks = _after(start, chunks)
    if packed is None:
        yield _text(chunks)
        return
    with closing(_UNPACK[packed](_small(chunks), file)) as plain:
        yield _text(filter(None, _limited(plain, packed)))


def _small(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield small chunks: what is unpacked together is lost together where the log is damaged."""
    return (chunk[start : start + _SNIFFED] for chunk in chunks for start in range(0, len(chunk), _SNIFFED))


def _bounded(chunks: Iterator[bytes], end: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[:end]
        end -= len(chunk)
        if end <= 0:
            return


_SNIFFED = 4096
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def _text(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a text as UTF-8. Raises UnreadableError for what is no text."""
    start = b""
    while len(start) < _SNIFFED and (chunk := next(chunks, b"")):
        start += chunk
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from _decoded(_after(start, chunks), "utf-16")
        return
    if start[1:200:2].count(0) > 90 and 0 not in start[0:200:2]:  # noqa: PLR2004  nearly all of them: ASCII in UTF-16
        yield from _decoded(_after(start, chunks), "utf-16-le")
        return
    odd = sum(byte < 32 and byte not in b"\t\n\r\x08\x0c\x1b" for byte in start[:_SNIFFED])  # noqa: PLR2004
    if odd > len(start[:_SNIFFED]) / 50:
        raise UnreadableError("is not text")
    yield from _after(start.removeprefix(codecs.BOM_UTF8), chunks)


def _decoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")


def _limited(chunks: Iterator[bytes], packed: str) -> Iterator[bytes]:
    left = MOST_UNPACKED
    for chunk in chunks:
        yield chunk
        left -= len(chunk)
        if left < 0:
            raise UnreadableError(f"{packed}: only the first {size(MOST_UNPACKED)} of its content were read")


def _gzip(chunks: Iterator[bytes], _file: int | None) -> Generator[bytes, None, None]:
    """Unpack gzip: also several of them in one file."""
    unpacker = zlib.decompressobj(wbits=31)
    whole = True
    for chunk in chunks:
        data = chunk
        while data:
            try:
                yield unpacker.decompress(data, _AT_ONCE)
            except zlib.error:
                raise UnreadableError("gzip: damaged; only what comes before the damage was read") from None
            data = unpacker.unconsumed_tail
            whole = unpacker.eof
            if whole:
                data = unpacker.unused_data.lstrip(b"\0")
                unpacker = zlib.decompressobj(wbits=31)
    if not whole:
        raise UnreadableError("gzip: the end is missing; what is there was read")


def _xz(chunks: Iterator[bytes], _file: int | None) -> Generator[bytes, None, None]:
    import lzma

    def fresh() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(memlimit=2**28)

    unpacker = fresh()
    for chunk in chunks:
        data = chunk
        while data or not unpacker.needs_input:
            try:
                yield unpacker.decompress(data, _AT_ONCE)
            except lzma.LZMAError:
                raise UnreadableError("xz: damaged; only what comes before the damage was read") from None
            data = b""
            if unpacker.eof:
                data = unpacker.unused_data.lstrip(b"\0")
                unpacker = fresh()
                if not data:
                    break


def _bzip2(chunks: Iterator[bytes], _file: int | None) -> Generator[bytes, None, None]:
    import bz2

    unpacker = bz2.BZ2Decompressor()
    for chunk in chunks:
        data = chunk
        while data or not unpacker.needs_input:
            try:
                yield unpacker.decompress(data, _AT_ONCE)
            except OSError:
                raise UnreadableError("bzip2: damaged; only what comes before the damage was read") from None
            data = b""
            if unpacker.eof:
                data = unpacker.unused_data
                unpacker = bz2.BZ2Decompressor()
                if not data:
                    break


def _zstd(_unread: Iterator[bytes], file: int | None) -> Generator[bytes, None, None]:
    """Unpack zstd with the program of this name: the standard library has none before Python 3.14."""
    program = shutil.which("zstd")
    if program is None or file is None:
        how = "pipe it through zstdcat" if file is None else "install the zstd program"
        raise UnreadableError(f"is packed with zstd, which Python cannot unpack here: {how}")
    os.lseek(file, 0, os.SEEK_SET)  # the program reads the open file itself: its name may lead elsewhere by now
    with subprocess.Popen([program, "-dcq"], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as unpacker:
        try:
            assert unpacker.stdout is not None  # noqa: S101  it is a pipe
            yield from _chunks(unpacker.stdout)
            if unpacker.wait() != 0:
                raise UnreadableError("zstd: damaged; only what comes before the damage was read")
        finally:
            unpacker.kill()


_UNPACK: dict[str, Callable[[Iterator[bytes], int | None], Generator[bytes, None, None]]] = {
    "gzip": _gzip, "bzip2": _bzip2, "xz": _xz, "zstd": _zstd,
}  # fmt: skip
