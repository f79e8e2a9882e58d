"""Moving the same number of bytes over both directions of a pair of nodes, both at once, over several streams."""

import socket
import threading
import time

from ncheck.agent.wire import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, List, Sequence, Tuple


class BrokenError(Exception):
    """A transfer that did not end; `late`: it reached its time limit."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        Exception.__init__(self, reason)
        self.late = late


class Transfer:
    """A thread for each stream. `outgoing` and `incoming` are blocking sockets; each carries its share of `amount`.

    The content means nothing and is not compared: the kernel checks it. Nothing is sent before `run`; bytes of the
    other node that arrive earlier are received.
    """

    def __init__(self, outgoing: "Sequence[socket.socket]", incoming: "Sequence[socket.socket]", amount: int) -> None:
        self.amount, self.socks = amount, list(outgoing) + list(incoming)
        self.begin, self.noting = threading.Event(), threading.Lock()
        self.broken: "List[str]" = []
        self.ended, self.at, self.moved = 0.0, 0.0, 0
        self.threads = [self.thread(self.receive, *pair) for pair in shared(incoming, amount)]
        self.threads += [self.thread(self.send, *pair) for pair in shared(outgoing, amount)]

    def thread(
        self, work: "Callable[[socket.socket, int], object]", sock: "socket.socket", share: int
    ) -> "threading.Thread":
        thread = threading.Thread(target=self.guarded, args=(work, sock, share), daemon=True)
        thread.start()
        return thread

    def run(self, ends: float) -> float:
        """Return the seconds from now to the last received byte. Raises BrokenError if not all bytes arrive."""
        began = self.at = time.monotonic()
        self.begin.set()
        for thread in self.threads:
            thread.join(max(0.0, ends - time.monotonic()))
        if any(thread.is_alive() for thread in self.threads) and not self.broken:
            reason = "{} of {} bytes had arrived, and no more for {:.0f} s"
            self.stop(reason.format(self.moved, self.amount, time.monotonic() - self.at))
            raise BrokenError(self.broken[0], late=True)
        if self.broken:
            raise BrokenError(self.broken[0])
        return max(0.0, self.ended - began)

    def guarded(self, work: "Callable[[socket.socket, int], object]", sock: "socket.socket", share: int) -> None:
        try:
            work(sock, share)
        except OSError as error:
            self.stop("the connection was cut: {}".format(error.strerror or error))
        except EOFError:
            self.stop("the other node closed the connection in the middle")

    def stop(self, why: str) -> None:
        """End all threads. The first reason counts: the others follow from it."""
        with self.noting:
            self.broken.append(why)
        self.begin.set()
        for sock in self.socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def send(self, sock: "socket.socket", share: int) -> None:
        self.begin.wait()
        block = memoryview(BLOCK)
        while share and not self.broken:
            part = block[:share]
            sock.sendall(part)
            share -= len(part)

    def receive(self, sock: "socket.socket", share: int) -> None:
        room = memoryview(bytearray(len(BLOCK)))
        while share:
            count = sock.recv_into(room[:share])
            if not count:
                raise EOFError
            share -= count
            self.note(count)

    def note(self, count: int) -> None:
        with self.noting:
            self.moved += count
            self.ended = self.at = time.monotonic()


def shared(socks: "Sequence[socket.socket]", amount: int) -> "Iterator[Tuple[socket.socket, int]]":
    """Yield each socket with its share of the bytes: all of them together carry the amount."""
    for number, sock in enumerate(socks):
        yield sock, amount // len(socks) + (number < amount % len(socks))
