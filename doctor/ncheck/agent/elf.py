"""The part of ELF that names the libraries a library needs, where it looks for them, and its constants."""

import mmap
import os
import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<qQ")
_NEEDED, _RPATH, _RUNPATH = 1, 15, 29
_MOST_SEARCHED = 256 * 1024 * 1024  # bytes of constants; libtorch_cuda.so has about 100 MB of them


class Library:
    """A 64-bit little-endian shared object, which is all that NCCL is built as; ValueError for anything else."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self.sections = self._sections()
        except struct.error:
            raise ValueError("{}: cut off".format(path)) from None

    def _sections(self):
        header = _HEADER.unpack_from(self.data)
        if header[0][:6] != b"\x7fELF\x02\x01":
            raise ValueError("{}: not a 64-bit ELF library".format(self.path))
        start, size, count, names = header[6], header[11], header[12], header[13]
        rows = [_SECTION.unpack_from(self.data, start + number * size) for number in range(count)]
        named = {}
        for row in rows:
            named.setdefault(self._text(rows[names][4] + row[0]), (row[4], row[5]))
        return named

    def _text(self, offset):
        return self.data[offset : self.data.find(b"\0", offset)].decode("utf-8", "backslashreplace")

    def _entries(self, wanted):
        start, size = self.sections.get(".dynamic", (0, 0))
        strings = self.sections.get(".dynstr", (0, 0))[0]
        for offset in range(start, start + size, _DYNAMIC.size):
            tag, value = _DYNAMIC.unpack_from(self.data, offset)
            if tag == wanted:
                yield self._text(strings + value)

    def needed(self):
        """Return the names of the libraries that it asks for: ["libnccl.so.2", ...]."""
        return list(self._entries(_NEEDED))

    def search_paths(self):
        """Return (DT_RPATH, DT_RUNPATH) as folders, $ORIGIN put in; with a DT_RUNPATH the other one does not count."""
        run, old = self._folders(_RUNPATH), self._folders(_RPATH)
        return ([] if run else old), run

    def _folders(self, tag):
        origin = os.path.dirname(os.path.realpath(self.path))
        folders = [folder for text in self._entries(tag) for folder in text.split(":") if folder]
        return [os.path.normpath(f.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)) for f in folders]

    def constant(self, beginning, most=80):
        """Return the first constant text that begins so, "" where there is none."""
        start, size = self.sections.get(".rodata", (0, 0))
        at = self.data.find(beginning, start, start + min(size, _MOST_SEARCHED))
        if at < 0:
            return ""
        end = self.data.find(b"\0", at, at + most)
        return self.data[at : end if end >= 0 else at + most].decode("utf-8", "backslashreplace")

    def close(self):
        self.data.close()
