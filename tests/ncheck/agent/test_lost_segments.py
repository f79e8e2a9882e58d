"""What the kernel counts of a connection, and what is said where it does not count."""

from __future__ import annotations

import socket
import struct
from contextlib import closing
from typing import Any

from ncheck.agent.lost_segments import counted, resent, unanswered


class OldKernel:
    """A socket of a kernel that knows how often it sent again, and not how many segments there were."""

    def getsockopt(self, *_: int) -> bytes:
        return struct.pack("=100sI", b"", 7)


def test_on_loopback_nothing_is_lost_of_what_is_sent() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with closing(server), closing(socket.create_connection(server.getsockname())) as client:
        assert (resent(client), unanswered(client)) == ((0, 0), 0)
        client.sendall(b"x")
        with closing(server.accept()[0]) as other:
            assert other.recv(1) == b"x"
            assert (resent(client), resent(other)) == ((0, 1), (0, 0))


def test_this_kernel_counts() -> None:
    assert counted()


def test_what_the_kernel_does_not_count_is_no_loss() -> None:
    with closing(socket.socket(socket.AF_UNIX)) as local:
        assert (resent(local), unanswered(local)) == ((0, 0), 0)
    old: Any = OldKernel()
    assert (resent(old), unanswered(old)) == ((0, 0), 7)
