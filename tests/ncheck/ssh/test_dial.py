"""One TCP connection to a host name."""

from __future__ import annotations

import socket
import time

import pytest
from ncheck.ssh.dial import IDENTIFICATION, dial
from ncheck.ssh.failures import FailureError
from ncheck.ssh.login import LoginCause
from ncheck.ssh.target import SshTarget

from .sites import Served


def test_the_next_address_is_tried_when_the_first_is_dead(served: Served) -> None:
    def speak(connection: socket.socket) -> None:
        connection.sendall(connection.recv(100))

    with served(speak) as port:  # localhost is ::1 too, where nothing listens
        arrival = dial(SshTarget("a", "localhost", port), 60)
    with arrival.sock:
        assert (arrival.address, arrival.sock.recv(100)) == ("127.0.0.1", IDENTIFICATION)


def test_an_address_that_refuses_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(FailureError) as raised:
            dial(SshTarget("a", "localhost", taken.getsockname()[1]), 60)
    assert raised.value.failure.cause is LoginCause.REFUSED


@pytest.mark.parametrize("name", ["a" * 300, "nöde", "node\x00", "-x", ""])
def test_no_name_is_too_strange(name: str) -> None:
    began = time.monotonic()
    with pytest.raises(FailureError):
        dial(SshTarget("a", name, 1), 5)
    assert time.monotonic() - began < 60
