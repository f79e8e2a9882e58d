"""The way into a node, over real sshd and over servers that misbehave: the same promises for both transports."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from doctor.model.evidence import Cause, Login
from doctor.settings import Settings
from doctor.transport.link import Stream

Handler = Callable[[socket.socket], None]
Served = Callable[[Handler], AbstractContextManager[int]]
BANNER = b"SSH-2.0-OpenSSH_9.2p1\r\n"


class Keys(Protocol):
    def path(self, name: str) -> Path: ...
    def public(self, name: str) -> str: ...


class Sshd(Protocol):
    def __call__(self, *lines: str, authorized: tuple[str, ...] = ("user",)) -> int: ...


class Site(Protocol):
    kind: str
    folder: Path
    settings: Settings
    environ: dict[str, str]
    extra: tuple[str, ...]

    def with_lines(self, **lines: object) -> Site: ...
    def connect(self, timeout: float = 60.0) -> Stream: ...
    def failure(self, timeout: float = 60.0) -> Login: ...
    def says(self, script: str, timeout: float = 60.0) -> tuple[bytes, int | None]: ...


Known = Callable[[int], None]


def fingerprint(keys: Keys, name: str) -> str:
    told = subprocess.run(
        ["ssh-keygen", "-lf", str(keys.path(name)) + ".pub"], check=True, capture_output=True, text=True
    )
    return told.stdout.split()[1]


# What works


def test_a_command_runs_and_tells_its_output_its_errors_and_its_status(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    stream = site.with_lines(Port=port).connect()
    stream.send(b"echo out; echo err >&2; exit 3\n", 60)
    assert stream.receive(60) == b"out\n"
    assert stream.receive(60) == b""
    assert (stream.exit_status(60), stream.stderr()) == (3, b"err\n")
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
        login = site.with_lines(Port=full.getsockname()[1]).failure(timeout=5)
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
        login = site.with_lines(Port=port).failure(timeout=6)
    assert login.cause is Cause.NOT_SSH


def test_a_frozen_server_that_accepts_and_says_nothing(site: Site, served: Served) -> None:
    began = time.monotonic()
    with served(waiting) as port:
        login = site.with_lines(Port=port).failure(timeout=5)
    assert login.cause is Cause.SILENT
    assert time.monotonic() - began < 60


def test_a_server_that_goes_quiet_after_its_banner(site: Site, served: Served) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(BANNER)
        waiting(connection)

    began = time.monotonic()
    with served(answer) as port:
        login = site.with_lines(Port=port).failure(timeout=5)
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


# Whose host key it is


def test_an_unknown_host_key_is_refused_before_any_key_of_ours_is_shown(site: Site, sshd: Sshd, keys: Keys) -> None:
    port = sshd()
    login = site.with_lines(Port=port).failure()
    assert (login.cause, login.offered_keys) == (Cause.HOST_KEY_UNKNOWN, ())
    assert fingerprint(keys, "host_ed25519") in login.detail
    assert login.fix == f"ssh -F {site.folder}/config-{site.kind} -o StrictHostKeyChecking=ask {where(port)}"


def where(port: int) -> str:
    import getpass  # noqa: PLC0415  only here

    return f"-p {port} {getpass.getuser()}@node07"


def test_a_changed_host_key_names_file_and_line_and_how_to_forget_it(site: Site, sshd: Sshd, keys: Keys) -> None:
    port, file = sshd(), site.folder / "known_hosts"
    file.write_text(f"# comment\n[127.0.0.1]:{port} {keys.public('other')}\n")
    login = site.with_lines(Port=port).failure()
    assert (login.cause, login.offered_keys) == (Cause.HOST_KEY_CHANGED, ())
    assert f"{file}:2" in login.detail
    assert login.fix == f"ssh-keygen -f {file} -R '[127.0.0.1]:{port}'"


def test_a_revoked_host_key(site: Site, sshd: Sshd, known: Known, keys: Keys) -> None:
    known(port := sshd())
    with (site.folder / "known_hosts").open("a") as file:
        file.write(f"@revoked * {keys.public('host_ed25519')}\n")
    assert site.with_lines(Port=port).failure().cause is Cause.HOST_KEY_REVOKED


def test_a_host_that_is_known_by_its_other_key_is_asked_for_that_one(site: Site, sshd: Sshd, keys: Keys) -> None:
    port = sshd()
    (site.folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {keys.public('host_ecdsa')}\n")
    stream = site.with_lines(Port=port).connect()
    stream.close()
    assert stream.login.host_key == f"ecdsa-sha2-nistp256 {fingerprint(keys, 'host_ecdsa')}"


def test_a_new_host_key_is_written_only_when_asked_for(site: Site, sshd: Sshd, keys: Keys) -> None:
    port, file = sshd(), site.folder / "known_hosts"
    file.write_text("# mine, without a newline at its end" + ("\n" if site.kind == "openssh" else ""))
    file.chmod(0o640)
    asked = replace(site, settings=Settings(accept_new_host_keys=True)).with_lines(Port=port)  # type: ignore[type-var]
    asked.connect().close()
    assert f"[127.0.0.1]:{port} {keys.public('host_ed25519')}" in file.read_text().splitlines()
    assert file.read_text().splitlines()[0] == "# mine, without a newline at its end"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    site.with_lines(Port=port).connect().close()


def test_a_changed_host_key_is_never_taken_for_a_new_one(site: Site, sshd: Sshd, keys: Keys) -> None:
    port, file = sshd(), site.folder / "known_hosts"
    file.write_text(text := f"[127.0.0.1]:{port} {keys.public('other')}\n")
    asked = replace(site, settings=Settings(accept_new_host_keys=True)).with_lines(Port=port)  # type: ignore[type-var]
    assert asked.failure().cause is Cause.HOST_KEY_CHANGED
    assert file.read_text() == text


# Who we are


@pytest.mark.parametrize("name", ["user", "ecdsa", "rsa"])
def test_each_type_of_key_logs_in(site: Site, sshd: Sshd, known: Known, keys: Keys, name: str) -> None:
    known(port := sshd(authorized=(name,)))
    assert site.with_lines(Port=port, IdentityFile=keys.path(name)).says("echo in") == (b"in\n", 0)


def test_refused_keys_are_listed_with_the_line_that_installs_one(
    site: Site, sshd: Sshd, known: Known, keys: Keys
) -> None:
    known(port := sshd(authorized=("other",)))
    login = site.with_lines(Port=port).failure()
    assert (login.cause, login.offered_keys) == (
        Cause.AUTH_REFUSED, (f"ED25519 {fingerprint(keys, 'user')} {keys.path('user')}",)
    )  # fmt: skip
    assert re.fullmatch(rf"ssh-copy-id .*{re.escape(where(port))}", login.fix)


def test_a_key_with_a_passphrase_is_never_asked_for(site: Site, sshd: Sshd, known: Known, keys: Keys) -> None:
    known(port := sshd(authorized=("locked",)))
    login = site.with_lines(Port=port, IdentityFile=keys.path("locked")).failure()
    assert login.cause is Cause.AUTH_REFUSED
    if site.kind == "paramiko":
        assert f"{keys.path('locked')} wants a passphrase and is in no agent" in login.detail
        assert login.fix == f"ssh-add {keys.path('locked')}"


def test_no_key_at_all(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    login = site.with_lines(Port=port, IdentityFile=site.folder / "none").failure()
    assert (login.cause, login.offered_keys, login.fix) == (Cause.AUTH_REFUSED, (), "ssh-keygen -t ed25519")


def test_too_many_keys(site: Site, sshd: Sshd, known: Known, keys: Keys) -> None:
    known(port := sshd("MaxAuthTries 2"))
    more = tuple(f"IdentityFile {keys.path(name)}" for name in ("third", "ecdsa", "user"))
    many = replace(site.with_lines(Port=port, IdentityFile=keys.path("other")), extra=more)  # type: ignore[type-var]
    login = many.failure()
    assert login.cause is Cause.TOO_MANY_KEYS
    assert login.fix.startswith(f"ssh -F {site.folder}/config-{site.kind} -o IdentitiesOnly=yes -i ")


def test_a_login_that_wants_a_password_too(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd("AuthenticationMethods publickey,password", "PasswordAuthentication yes"))
    assert site.with_lines(Port=port).failure().cause is Cause.PERSON_WANTED


def test_a_login_that_takes_no_keys(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd("AuthenticationMethods keyboard-interactive", "KbdInteractiveAuthentication yes"))
    assert site.with_lines(Port=port).failure().cause is Cause.PERSON_WANTED


def test_a_node_that_wants_a_slurm_job(site: Site, sshd: Sshd, known: Known) -> None:
    words = site.folder / "banner"
    words.write_text("Access denied by pam_slurm_adopt: you have no active jobs on this node\n")
    known(port := sshd(f"Banner {words}", authorized=()))
    login = site.with_lines(Port=port).failure()
    assert (login.cause, login.fix) == (Cause.SLURM_JOB_WANTED, "salloc -w node07")


def test_an_account_without_a_shell_is_for_the_stream_to_tell(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd("ForceCommand echo This account is currently not available.; exit 1"))
    assert site.with_lines(Port=port).says("echo in") == (b"This account is currently not available.\n", 1)


def test_a_user_certificate_logs_in(site: Site, sshd: Sshd, known: Known, keys: Keys, tmp_path: Path) -> None:
    signing = ["ssh-keygen", "-q", "-s", str(keys.path("ca")), "-I", "test", "-n", where(0).split()[2].split("@")[0]]
    certificate = tmp_path / "user-cert.pub"
    public = tmp_path / "user.pub"
    public.write_text(keys.path("user.pub").read_text())
    subprocess.run([*signing, str(public)], check=True)
    known(port := sshd(f"TrustedUserCAKeys {keys.path('ca')}.pub", authorized=()))
    assert site.with_lines(Port=port, CertificateFile=certificate).says("echo in") == (b"in\n", 0)


# The agent


@pytest.fixture
def agent(keys: Keys, empty_agent: Path) -> Path:
    environ = {**os.environ, "SSH_AUTH_SOCK": str(empty_agent)}
    names = [str(keys.path(name)) for name in ("rsa", "user")]
    subprocess.run(["ssh-add", "-q", *names], env=environ, check=True, stderr=subprocess.DEVNULL)
    return empty_agent


def test_the_agents_keys_log_in_after_those_that_are_configured(
    site: Site, sshd: Sshd, known: Known, keys: Keys, agent: Path
) -> None:
    known(port := sshd(authorized=("rsa",)))
    held = site.with_lines(Port=port, IdentitiesOnly="no", IdentityAgent=agent)
    stream = held.connect()
    stream.close()
    assert [told.split()[1] for told in stream.login.offered_keys] == [
        fingerprint(keys, "user"), fingerprint(keys, "rsa"),
    ]  # fmt: skip


def test_sixteen_logins_share_one_agent(site: Site, sshd: Sshd, known: Known, agent: Path) -> None:
    known(port := sshd("MaxStartups 100", authorized=("rsa",)))
    held = site.with_lines(Port=port, IdentitiesOnly="no", IdentityAgent=agent, IdentityFile=site.folder / "none")
    answers: list[object] = [held.says("echo in")]
    threads = [threading.Thread(target=lambda: answers.append(held.says("echo in"))) for _ in range(15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [(b"in\n", 0)] * 16
