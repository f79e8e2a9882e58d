"""Logging in, to real sshd and to servers that misbehave: the same promises for both clients."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ncheck.fleet.engine import Stream
from ncheck.model.evidence import Cause

from .sites import BANNER, Keys, Known, Served, Site, Sshd, fingerprint

# What works


def test_a_command_runs_and_tells_its_output_its_errors_and_its_status(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    stream = site.with_lines(Port=port).connect()
    stream.send(b"echo out; echo err >&2; exit 3\n", 60)
    assert stream.receive(60) == b"out\n"
    assert stream.receive(60) == b""
    assert (stream.exit_status(60), stream.stderr()) == (3, b"err\n")
    stream.close()


THREADS = {"paramiko": 1, "openssh": 1}  # that a connection adds to the one that uses it


def test_a_connection_holds_no_more_threads_than_before(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    threads = threading.active_count()
    stream = site.with_lines(Port=port).connect()
    stream.send(b"echo out\n", 60)
    assert stream.receive(60) == b"out\n"
    assert threading.active_count() - threads <= THREADS[site.kind]
    stream.close()


def test_the_login_tells_address_port_key_and_host_key(site: Site, sshd: Sshd, known: Known, keys: Keys) -> None:
    known(port := sshd())
    stream = site.with_lines(Port=port).connect()
    stream.close()
    login = stream.login
    assert (login.reached, login.transport, login.address, login.port) == (True, site.kind, "127.0.0.1", port)
    assert login.offered_keys == (f"ED25519 {fingerprint(keys, 'user')} {keys.path('user')}",)
    assert login.host_key == f"ssh-ed25519 {fingerprint(keys, 'host_ed25519')}"


def test_twenty_megabytes_come_back_whole(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    output, status = site.with_lines(Port=port).says("head -c 20000000 /dev/zero")
    assert (len(output), status) == (20_000_000, 0)


def test_five_megabytes_go_there_whole(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    stream = site.with_lines(Port=port).connect()
    stream.send(b"head -c 5000000 | wc -c\n", 60)
    stream.send(bytes(5_000_000), 60)
    assert stream.receive(60).strip() == b"5000000"
    stream.close()


def test_a_flood_on_standard_error_does_not_hold_back_standard_output(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    output, status = site.with_lines(Port=port).says("head -c 9000000 /dev/zero >&2; echo done")
    assert (output, status) == (b"done\n", 0)


def test_waiting_for_a_silent_command_ends_in_its_time(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    stream = site.with_lines(Port=port).connect()
    stream.send(b"read never\n", 60)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        stream.receive(0.3)
    assert time.monotonic() - began < 60
    stream.close()


def test_a_command_that_takes_no_input_does_not_hold_the_sender(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    stream = site.with_lines(Port=port).connect()
    stream.send(b"sleep 30\n", 60)
    with pytest.raises(TimeoutError):
        stream.send(bytes(20_000_000), 0.5)
    stream.close()


def test_closing_ends_the_far_side_and_leaves_nothing_here(
    site: Site, sshd: Sshd, known: Known, tmp_path: Path
) -> None:
    known(port := sshd())
    ended = tmp_path / "ended"
    os.mkfifo(ended)
    stream = site.with_lines(Port=port).connect()
    stream.send(f"echo ready; read line; echo over > {ended}\n".encode(), 60)
    assert stream.receive(60) == b"ready\n"
    stream.close()
    assert ended.read_text() == "over\n"  # the far side saw the end of its input
    with pytest.raises(OSError):  # noqa: PT011  a closed stream is closed, in whatever words
        stream.send(b"x", 1)


def test_a_connection_that_is_cut_is_told_from_one_that_ended(
    site: Site, sshd: Sshd, known: Known, served: Served, relayed: Callable[..., None]
) -> None:
    port = sshd()
    with served(lambda connection: relayed(connection, port, cut_after=200_000)) as front:
        known(front)
        stream = site.with_lines(Port=front).connect()
        stream.send(b"cat /dev/zero\n", 60)
        with pytest.raises(ConnectionError):
            drained(stream)
        stream.close()


def drained(stream: Stream) -> None:
    while stream.receive(60):
        pass


# How far it comes otherwise


def test_a_name_without_an_address(site: Site) -> None:
    login = site.with_lines(HostName="no-such-host.invalid").failure()
    assert (login.cause, login.fix) == (Cause.NAME_UNKNOWN, "getent hosts no-such-host.invalid")


def test_a_port_that_nothing_listens_on(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        login = site.with_lines(Port=taken.getsockname()[1]).failure()
    assert login.cause is Cause.REFUSED
    assert login.detail.startswith("127.0.0.1 refuses connections on port ")


def test_packets_that_are_dropped(site: Site) -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # a full queue drops what comes next, as a firewall does
        for client in (first, second):
            client.setblocking(False)  # noqa: FBT003
            client.connect_ex(full.getsockname())
        login = site.with_lines(Port=full.getsockname()[1]).failure(timeout=3)
    assert login.cause is Cause.FILTERED


def test_an_address_that_no_route_leads_to(site: Site) -> None:
    login = site.with_lines(HostName="255.255.255.255").failure()
    assert (login.cause, login.fix) == (Cause.UNROUTABLE, "ip route get 255.255.255.255")


def test_a_web_server(site: Site, served: Served) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    with served(answer) as port:
        login = site.with_lines(Port=port).failure()
    assert login.cause is Cause.NOT_SSH


def test_a_server_that_greets_in_another_protocol_and_waits(site: Site, served: Served) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b"220 mail.example.org ESMTP\r\n")
        while connection.recv(100):
            pass

    with served(answer) as port:
        login = site.with_lines(Port=port).failure(timeout=3)
    assert login.cause is Cause.NOT_SSH


def test_a_frozen_server_that_accepts_and_says_nothing(site: Site, served: Served) -> None:
    began = time.monotonic()
    with served(waiting) as port:
        login = site.with_lines(Port=port).failure(timeout=3)
    assert login.cause is Cause.SILENT
    assert time.monotonic() - began < 60


def test_a_server_that_goes_quiet_after_its_banner(site: Site, served: Served) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(BANNER)
        waiting(connection)

    began = time.monotonic()
    with served(answer) as port:
        login = site.with_lines(Port=port).failure(timeout=3)
    assert (login.cause, login.fix) == (Cause.STALLED, "ping -M do -s 1472 -c 3 127.0.0.1")
    assert time.monotonic() - began < 60


def waiting(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def test_dropped_connections_are_tried_again(
    site: Site, sshd: Sshd, known: Known, served: Served, relayed: Callable[..., None]
) -> None:
    port, seen = sshd(), iter(range(100))

    def answer(connection: socket.socket) -> None:
        if next(seen) >= 2:
            relayed(connection, port)

    with served(answer) as front:
        known(front)
        stream = site.with_lines(Port=front).connect()
        stream.close()
    assert stream.login.attempts == 3


def test_a_server_that_always_drops_us_is_overloaded_and_not_blamed(site: Site, served: Served) -> None:
    with served(lambda _connection: None) as port:
        login = site.with_lines(Port=port).failure(timeout=6)
    assert login.cause is Cause.OVERLOADED
    assert login.attempts > 1


def test_a_server_that_says_it_has_no_room_is_overloaded(site: Site, served: Served) -> None:
    with served(lambda connection: connection.sendall(b"Exceeded MaxStartups\r\n")) as port:
        login = site.with_lines(Port=port).failure(timeout=4)
    assert login.cause is Cause.OVERLOADED
