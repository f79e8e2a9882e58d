"""The kernel's table of TCP sockets, which every user may read."""

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, NamedTuple

LISTENS, SYN_SENT, SYN_RECEIVED = "0A", "02", "03"  # states, as the table writes them

# `sent`: bytes that are not acknowledged; `unread`: bytes that the program has not read, or connections that it has not
# accepted; `timer`: 1 sends again, 2 keeps alive, 4 probes a full receiver; `retransmits`: in a row, without an answer.
if TYPE_CHECKING:

    class TcpRow(NamedTuple):
        local: str
        remote: str
        state: str
        user: int
        inode: str
        sent: int
        unread: int
        timer: int
        retransmits: int
else:
    TcpRow = namedtuple("TcpRow", "local remote state user inode sent unread timer retransmits")


def tcp_rows(folder: str) -> "Iterator[TcpRow]":
    """Yield every socket of the network namespace that a folder of /proc shows: addresses as "0100007F:1F90"."""
    for table in ("tcp", "tcp6"):
        try:
            with open("{}/net/{}".format(folder, table)) as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            # 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000 100 0
            fields = line.split()
            if len(fields) > 9:
                sent, _, unread = fields[4].partition(":")
                yield TcpRow(
                    fields[1], fields[2], fields[3], int(fields[7]), fields[9],
                    int(sent, 16), int(unread, 16), int(fields[5].partition(":")[0], 16), int(fields[6], 16),
                )  # fmt: skip
