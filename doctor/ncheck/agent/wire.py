"""What two agents say to each other over one TCP connection, in a fixed order and in bounded sizes.

The one that connects sends a proof that it belongs to this run, and gets the other's; then small messages that come
back as they are; then a large block, of which every part is acknowledged, and one of the same size comes back. So who
connects can tell in which direction large packets are lost. Last, the other one says how often it had to send again.

Or it sends the proof of a stream and a ticket, gets the other's proof, and is handed over to the part of the probe that
the ticket names (streams.py).
"""

import hashlib
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Generator, Union

    Script = Generator[Union[int, bytes], bytes, None]

PROOF = 32  # bytes
SMALL = 16  # bytes of one small message
SMALLS = 3
LARGE = 262144  # bytes there, and as many back
COUNTS = struct.Struct("!II")  # segments that were lost, and that were sent: see lost_segments.py
PART = 32768  # bytes that one acknowledgement stands for
BLOCK = bytes(range(256)) * (LARGE // 256)


def proof(token: str, node: str, side: str) -> bytes:
    """Return what "client", "stream" or "server" sends first, and tickets.

    It differs by the node that listens: who took over its address is a stranger.
    """
    return hashlib.sha256("{} {} {}".format(token, node, side).encode("utf-8")).digest()


class Talk:
    """One connection, and what is said on it: a generator that yields bytes to send them, and a number to get as many.

    `go_on` goes as far as the socket allows and tells whether anything moved. It raises OSError, EOFError where the
    other side ended, and whatever the script does.
    """

    def __init__(self, sock: "socket.socket", script: "Script") -> None:
        self.sock, self.script = sock, script
        self.sending, self.wanted, self.received = memoryview(b""), 0, bytearray()
        self.ended = False
        self._take(next(script))

    def go_on(self) -> bool:
        moved = False
        try:
            while not self.ended:
                self._move()
                moved = True
        except BlockingIOError:
            pass
        return moved

    def _move(self) -> None:
        if self.sending:
            self.sending = self.sending[self.sock.send(self.sending) :]
        elif len(self.received) < self.wanted:
            data = self.sock.recv(PART)
            if not data:
                raise EOFError
            self.received += data
        else:
            message, self.received = bytes(self.received[: self.wanted]), self.received[self.wanted :]
            self._ask(message)

    def _ask(self, message: bytes) -> None:
        try:
            self._take(self.script.send(message))
        except StopIteration:
            self.ended = True

    def _take(self, wish: "Union[int, bytes]") -> None:
        if isinstance(wish, int):
            self.wanted = wish
        else:
            self.wanted, self.sending = 0, memoryview(wish)
