"""The part of ELF that names a library: what it needs and where it looks for that, its symbols, constants and build.

It is read, not mapped: a page that cannot be had would hold up or end the whole agent.
"""

import os
import struct

from ncheck.agent.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Tuple

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<qQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_NEEDED, _RPATH, _RUNPATH = 1, 15, 29
_MOST_SEARCHED = 256 * 1024 * 1024  # bytes of constants; libtorch_cuda.so has about 100 MB of them
_BLOCK = 1024 * 1024  # bytes of constants at a time
_MOST_DYNAMIC = 64 * 1024  # bytes; each library that is needed has 16
_MOST_SYMBOLS = 4 * 1024 * 1024  # bytes of symbols, and of their names
_LONGEST = 64 * 1024  # bytes of a text, which may be a list of folders


class Library:
    """A 64-bit little-endian shared object, which is all that NCCL is built as; ValueError for anything else."""

    descriptor = -1

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = open_regular(path)
        try:
            self.sections = self._sections()
        except (struct.error, IndexError):
            raise ValueError("{}: cut off".format(path)) from None

    def _sections(self) -> "Dict[str, Tuple[int, int]]":
        header = _HEADER.unpack(self._read(0, _HEADER.size))
        if header[0][:6] != b"\x7fELF\x02\x01":
            raise ValueError("{}: not a 64-bit ELF library".format(self.path))
        start, count, names = header[6], header[12], header[13]
        rows = list(_SECTION.iter_unpack(self._read(start, count * _SECTION.size)))
        if len(rows) < count:
            raise ValueError("{}: cut off".format(self.path))
        named: "Dict[str, Tuple[int, int]]" = {}
        for row in rows:
            named.setdefault(self._text(rows[names][4] + row[0], 256), (row[4], row[5]))
        return named

    def _read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file, fewer at its end."""
        try:
            return os.pread(self.descriptor, size, offset)
        except OverflowError:  # more than a file can have
            raise ValueError("{}: cut off".format(self.path)) from None

    def _text(self, offset: int, most: int = _LONGEST) -> str:
        return self._read(offset, most).partition(b"\0")[0].decode("utf-8", "backslashreplace")

    def _entries(self, wanted: int) -> "Iterator[str]":
        start, size = self.sections.get(".dynamic", (0, 0))
        strings = self.sections.get(".dynstr", (0, 0))[0]
        data = self._read(start, min(size, _MOST_DYNAMIC))
        for tag, value in _DYNAMIC.iter_unpack(data[: len(data) // _DYNAMIC.size * _DYNAMIC.size]):
            if tag == wanted:
                yield self._text(strings + value)

    def needed(self) -> "List[str]":
        """Return the names of the libraries that it asks for: ["libnccl.so.2", ...]."""
        return list(self._entries(_NEEDED))

    def search_paths(self) -> "Tuple[List[str], List[str]]":
        """Return (DT_RPATH, DT_RUNPATH) as folders, $ORIGIN put in; with a DT_RUNPATH the other one does not count."""
        run, old = self._folders(_RUNPATH), self._folders(_RPATH)
        return ([] if run else old), run

    def _folders(self, tag: int) -> "List[str]":
        origin = os.path.dirname(os.path.realpath(self.path))
        folders = [folder for text in self._entries(tag) for folder in text.split(":") if folder]
        return [os.path.normpath(f.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)) for f in folders]

    def exported(self, beginning: bytes) -> "List[str]":
        """Return the names of the symbols that it has for others and that begin so, sorted."""
        (start, size), (names, length) = (self.sections.get(name, (0, 0)) for name in (".dynsym", ".dynstr"))
        data, text = self._read(start, min(size, _MOST_SYMBOLS)), self._read(names, min(length, _MOST_SYMBOLS))
        rows = _SYMBOL.iter_unpack(data[: len(data) // _SYMBOL.size * _SYMBOL.size])
        # One of section 0 is what it asks others for.
        places = [row[0] for row in rows if row[3] and text.startswith(beginning, row[0])]
        return sorted({text[place:].partition(b"\0")[0].decode("utf-8", "backslashreplace") for place in places})

    def build(self) -> str:
        """Return the build ID that the linker gave it, in hexadecimal; "" where there is none."""
        start, size = self.sections.get(".note.gnu.build-id", (0, 0))
        note = self._read(start, min(size, _LONGEST))
        if len(note) < _NOTE.size:
            return ""
        owner, length, _ = _NOTE.unpack_from(note)
        begin = _NOTE.size + (owner + 3 & ~3)
        return note[begin : begin + length].hex()

    def constant(self, beginning: bytes, most: int = 80) -> str:
        """Return the first constant text that begins so, "" where there is none."""
        start, size = self.sections.get(".rodata", (0, 0))
        end = start + min(size, _MOST_SEARCHED)
        for offset in range(start, end, _BLOCK):
            # It may begin in one block and end in the next.
            at = self._read(offset, min(_BLOCK + len(beginning) - 1, end - offset)).find(beginning)
            if at >= 0:
                return self._text(offset + at, most)
        return ""

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    __del__ = close
