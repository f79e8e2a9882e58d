"""The proxy of bench/wall.py: what it passes on comes later, and many chunks come as soon as one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

PROXY = Path(__file__).parents[1] / "bench" / "delay_proxy.py"
ROUND_TRIP = 0.1  # seconds
CHUNKS = 64  # of a flight: one after the other they would travel for 3.2 s
FLIGHT = CHUNKS * 4096  # bytes


def echo(listener: socket.socket) -> None:
    """Greet one client, and send back all that it sends."""
    server, _ = listener.accept()
    with server:
        server.sendall(b"hello")
        while data := server.recv(65536):
            server.sendall(data)


def test_a_flight_takes_one_round_trip_however_many_chunks_it_has() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=[listener], daemon=True).start()
        address, port = listener.getsockname()
        argv = [sys.executable, str(PROXY), address, str(port), str(ROUND_TRIP)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as proxy, ExitStack() as stack:
            stack.callback(proxy.terminate)
            assert proxy.stdout
            far = "127.0.0.1", int(proxy.stdout.readline())
            clock = [time.monotonic()]
            with socket.create_connection(far) as sock, sock.makefile("rb") as replies:
                assert replies.read(5) == b"hello"
                clock.append(time.monotonic())
                for _ in range(2):
                    sent = os.urandom(FLIGHT)
                    sock.sendall(sent)
                    assert replies.read(FLIGHT) == sent
                    clock.append(time.monotonic())
                sock.shutdown(socket.SHUT_WR)
                assert replies.read() == b""
            clock.append(time.monotonic())
            assert proxy.stdout.readline() == "1: 2\n"
    handshake, *flights, end = (after - before for before, after in pairwise(clock))
    assert handshake >= 2 * ROUND_TRIP
    assert all(ROUND_TRIP <= flight < CHUNKS * ROUND_TRIP / 4 for flight in flights)
    assert end >= ROUND_TRIP
