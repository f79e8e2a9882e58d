"""A run that ends closes its streams while others still speak on them: what those meet is a connection that is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from ncheck.fleet.link import Stream, Transport
from ncheck.fleet.local import LocalTransport
from ncheck.model.node import Node
from ncheck.ssh.program import RshTransport

TRIES = 40  # each is a race between two threads, and one in three met it in the middle


def spoken_on(stream: Stream, begun: threading.Event) -> OSError:
    """Speak until the stream is gone, and return what that was; whatever else is raised is a failure of the test."""
    try:
        while True:
            stream.send(b"x", 60)
            begun.set()
    except OSError as error:
        return error


def listened_to(stream: Stream, begun: threading.Event) -> OSError:
    try:
        while stream.receive(60):
            begun.set()
    except OSError as error:
        return error
    return OSError("it ended")


@pytest.mark.parametrize(("line", "speak"), [("exec cat >/dev/null", spoken_on), ("exec cat /dev/zero", listened_to)])
@pytest.mark.parametrize("transport", [LocalTransport(), RshTransport(lambda _node: "env")], ids=lambda way: way.name)
def test_a_stream_that_another_thread_closes_is_a_connection_that_is_gone(
    transport: Transport, line: str, speak: Callable[[Stream, threading.Event], OSError]
) -> None:
    with ThreadPoolExecutor(1) as pool:
        for _ in range(TRIES):
            stream, begun = transport.connect(Node("here"), 60), threading.Event()
            stream.send(line.encode() + b"\n", 60)
            met = pool.submit(speak, stream, begun)
            assert begun.wait(60)
            stream.close()
            assert isinstance(met.result(60), OSError)
