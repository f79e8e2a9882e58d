"""A server at its MaxStartups limit, by idle connections that never log in: named as that, and tried again."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from ncheck.model.evidence import Cause
from ncheck.ssh import login as ssh
from ncheck.ssh.failures import DroppedError, FailureError, LoginFailure, Retries, failed, overloaded
from ncheck.ssh.openssh import SshLog, failure
from ncheck.ssh.target import SshTarget

from .sites import Known, Site, Sshd

FULL = "MaxStartups 2:100:2"


@contextmanager
def held(port: int) -> Iterator[None]:
    """Hold both places of a server with connections that never log in; it drops all that come after."""
    with ExitStack() as stack:
        places = 0
        while places < 2:  # a place may still be that of the connection which found the server ready
            places += banner(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)))
        yield


def banner(connection: socket.socket) -> bool:
    """Tell whether the server greets this connection, or drops it."""
    with suppress(ConnectionResetError):
        return connection.recv(100).startswith(b"SSH-")
    return False


def test_a_server_whose_places_are_held_is_named_as_full(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd(FULL))
    with held(port):
        login = site.with_lines(Port=port).failure(timeout=4)
    assert (login.cause, login.attempts > 1) == (Cause.OVERLOADED, True)
    assert login.detail.startswith(
        f"the SSH server at 127.0.0.1 is up, and dropped the connection before the login {login.attempts} times ("
    )
    assert "(MaxStartups" in login.detail


def test_a_server_that_may_open_too_few_files_is_not_called_full(site: Site, sshd: Sshd, known: Known) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    known(port := sshd())
    (server,) = [pid for pid in children() if b"sshd-1" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    resource.prlimit(server, resource.RLIMIT_NOFILE, (8, limits[1]))
    detail = site.with_lines(Port=port).failure(timeout=4).detail
    assert detail.partition("): ")[2].startswith("it does not say why: it lacks open files, processes or memory, ")


def children() -> list[int]:
    threads = Path("/proc/self/task").glob("*/children")
    return [int(pid) for thread in threads for pid in thread.read_text().split()]


def test_a_place_that_becomes_free_is_taken(site: Site, sshd: Sshd, known: Known) -> None:
    """The places are given back once the first attempt was dropped: it is the attempt after that which gets in."""
    known(port := sshd(FULL, "LoginGraceTime 3"))
    with held(port):
        stream = site.with_lines(Port=port).connect(timeout=60)
        stream.close()
    assert stream.login.attempts > 1


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_a_jump_host_whose_places_are_held_is_named_as_full(site: Site, sshd: Sshd, known: Known) -> None:
    known(jump := sshd(FULL))
    inner = "\n".join(f"{key} {value}" for key, value in site.lines.items())
    (site.folder / "jump").write_text(inner + "\n")
    command = f"ssh -F {site.folder}/jump -p {jump} -W %h:%p jump"
    with held(jump):
        login = site.with_lines(Port=1, ProxyCommand=command).failure(timeout=4)
    assert (login.cause, login.attempts > 1) == (Cause.OVERLOADED, True)
    assert login.detail.startswith("the SSH server at the jump host (ProxyCommand) is up, and dropped ")


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_a_node_behind_a_jump_host_whose_places_are_held_is_named_as_full(site: Site, sshd: Sshd, known: Known) -> None:
    jump, port = sshd(), sshd(FULL)
    known(jump)
    inner = "\n".join(f"{key} {value}" for key, value in site.lines.items())
    (site.folder / "jump").write_text(inner + "\n")
    command = f"ssh -F {site.folder}/jump -p {jump} -W %h:%p jump"
    with held(port):
        login = site.with_lines(Port=port, ProxyCommand=command).failure(timeout=4)
    assert login.cause is Cause.OVERLOADED
    assert login.detail.startswith("the SSH server at 127.0.0.1 is up, and dropped ")


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("Exceeded MaxStartups", "it has as many connections without a login as it accepts (MaxStartups)"),
        (
            "Not allowed at this time",
            "it refuses this client for a while because earlier connections failed (PerSourcePenalties)",
        ),
    ],
)
def test_what_newer_servers_say_is_taken_at_its_word(words: str, meaning: str) -> None:
    text = (
        f"debug1: kex_exchange_identification: banner line 0: {words}\n"
        "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.7 port 22\n"
    )
    error = failure(SshLog(text, SshTarget("node07", "node07")), 15, timed_out=False)
    assert error.failure.detail == f"it answered {words!r}"
    detail = overloaded("10.0.0.7", 3, error.failure.detail).detail
    assert detail.endswith(f"3 times (it answered {words!r}): {meaning}")


@pytest.mark.parametrize(("seconds", "cause"), [(2.0, ssh.LoginCause.OVERLOADED), (60.0, ssh.LoginCause.SILENT)])
def test_a_last_attempt_that_has_no_time_left_hides_no_drop(seconds: float, cause: ssh.LoginCause) -> None:
    ends = iter(
        (
            DroppedError(LoginFailure(ssh.LoginCause.OVERLOADED, "closed")),
            failed(ssh.LoginCause.SILENT, "nothing came for 1 s"),
        )
    )

    def attempt() -> None:
        raise next(ends)

    with pytest.raises(FailureError) as raised:
        Retries(time.monotonic() + seconds, pause=lambda _: None).run(attempt, lambda: "10.0.0.7")
    assert raised.value.failure.cause is cause
