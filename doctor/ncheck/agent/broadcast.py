"""One stream for many agents: srun copies its standard input to every task, and a task's output is lines of text.

What the head sends after the agent's modules is records: a header, then that many bytes. Each agent makes up an address
and says it in its first line, `MARK shared ADDRESS`; it takes the records with its address and skips the others. What
is the same for many agents is sent once: they all keep it, and the next ones get its number instead, or what is
different. The head and all agents forget the oldest of it at the same time.

What an agent says is cut into lines of base64, short enough that neither slurmstepd nor srun breaks them.
"""

import base64
import os
import struct
from collections import OrderedDict

from ncheck.agent.frames import framed, inflated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, MutableMapping

HEADER = struct.Struct(">8scI")  # address, kind, length of what follows or number of what was kept
OWN, KEPT, AGAIN = b"o", b"k", b"a"  # for this address; the same, and all keep it; what was kept under this number
DELTA = b"d"  # a frame in parts: the number of a frame that was kept, then pieces of its text and others
NUMBER, PART = struct.Struct(">I"), struct.Struct(">III")  # a part: offset and length of a piece, bytes that follow
ADDRESS = 8  # bytes
LENGTH = 4  # bytes before the body of a frame
MOST_KEPT = 1024 * 1024  # bytes that an agent keeps for others
LINE = 744  # bytes per line, 992 characters of base64: slurmstepd breaks lines at 1024


def forget_step(environ: "MutableMapping[str, str]") -> None:
    """Drop what Slurm says of this task: what the agent starts is no part of the step, and must not take its rank."""
    for name in [name for name in environ if name.startswith(("SLURM_", "SLURMD_", "SRUN_", "PMI_", "PMIX_"))]:
        del environ[name]


class Keeping:
    """What was sent to all, by number: the same on both sides."""

    def __init__(self) -> None:
        self.items: "OrderedDict[int, bytes]" = OrderedDict()
        self.next = self.size = 0

    def keep(self, data: bytes) -> int:
        """Keep it and return its number; forget the oldest where it is too much."""
        number = self.next
        self.next += 1
        self.items[number] = data
        self.size += len(data)
        while self.size > MOST_KEPT:
            _, oldest = self.items.popitem(last=False)
            self.size -= len(oldest)
        return number


class Broadcast:
    """The streams of one agent among many. An empty record for it is the end of its input."""

    def __init__(
        self,
        marker: str,
        read: "Callable[[], bytes]" = lambda: os.read(0, 65536),
        write: "Callable[[bytes], int]" = lambda data: os.write(1, data),
    ) -> None:
        self.address = os.urandom(ADDRESS)
        self.read, self.write = read, write
        self.kept = Keeping()
        self.raw = bytearray()
        self.own = bytearray()
        self.ended = False
        line = "{} shared {}\n".format(marker, base64.b16encode(self.address).decode())
        self.write(line.encode())

    def read_exactly(self, wanted: int) -> bytes:
        """Return that many bytes, fewer at the end."""
        while len(self.own) < wanted and not self.ended:
            self.take_record()
        data = bytes(self.own[:wanted])
        del self.own[:wanted]
        return data

    def take_record(self) -> None:
        if not self.fill(HEADER.size):
            return
        address, kind, number = HEADER.unpack(bytes(self.raw[: HEADER.size]))
        length = 0 if kind == AGAIN else number
        if not self.fill(HEADER.size + length):
            return
        data = bytes(self.raw[HEADER.size : HEADER.size + length])
        del self.raw[: HEADER.size + length]
        if kind == KEPT:
            self.kept.keep(data)
        if address == self.address:
            if kind == AGAIN:
                data = self.kept.items.get(number, b"")
            elif kind == DELTA:
                data = self.put_together(data)
            self.own += data
            self.ended = not data

    def put_together(self, parts: bytes) -> bytes:
        """Return the frame that these parts make."""
        base = inflated(self.kept.items[NUMBER.unpack_from(parts)[0]][LENGTH:])
        at = NUMBER.size
        pieces: "List[bytes]" = []
        while at < len(parts):
            offset, length, own = PART.unpack_from(parts, at)
            at += PART.size
            pieces += base[offset : offset + length], parts[at : at + own]
            at += own
        return framed(b"".join(pieces))

    def fill(self, wanted: int) -> bool:
        """Read until there are so many bytes; tell whether there are."""
        while len(self.raw) < wanted and not self.ended:
            data = self.read()
            self.raw += data
            self.ended = not data
        return not self.ended

    def write_all(self, data: bytes) -> None:
        """Write all of it, as lines."""
        pieces = (data[at : at + LINE] for at in range(0, len(data), LINE))
        view = memoryview(b"".join(base64.b64encode(piece) + b"\n" for piece in pieces))
        while view:
            view = view[self.write(bytes(view[:65536])) :]
