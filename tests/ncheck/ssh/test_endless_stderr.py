"""Standard error without an end: the time limit of a login holds, and memory stays bounded."""

from __future__ import annotations

import os
import resource
import shlex
import time
from pathlib import Path

import pytest
from ncheck.fleet.engine import Stream
from ncheck.fleet.engines.command import RshEngine
from ncheck.fleet.session import Known, Session, SessionEndedError, SessionTerms
from ncheck.model.evidence import Cause
from ncheck.model.node import Node
from ncheck.ssh.client import SshClient
from ncheck.ssh.failures import cause_of, main_line
from ncheck.ssh.login import ListedHost, LoginFailedError, Options
from ncheck.ssh.openssh import SshLog, failure
from ncheck.ssh.paramiko_internals import ParamikoStream
from ncheck.ssh.target import SshTarget

from .sites import Known as Knows
from .sites import Site, Sshd

pytestmark = pytest.mark.slow

LIMIT = 1.0  # seconds of a login
SOON = 30.0  # seconds that a busy machine may take for that
FLOODS = {
    "lines": "exec yes 'debug1: x'",
    "one line": "exec tr '\\0' x </dev/zero",
    "drip": "while :; do printf x; done",
}


def a_program(folder: Path, text: str) -> dict[str, str]:
    """Return an environment whose ssh program does this."""
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_before_the_login_it_ends_with_the_time_of_the_login(tmp_path: Path, flood: str) -> None:
    environ = a_program(tmp_path, f"exec >&2; {flood}")
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LoginFailedError):
        SshClient("true", Options(config_file="none"), "openssh", environ).connect(ListedHost("node07"), LIMIT)
    assert time.monotonic() - began < SOON
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024  # KiB


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_after_the_login_it_ends_with_the_time_of_the_greeting(
    site: Site, sshd: Sshd, known: Knows, tmp_path: Path, flood: str
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nexec >&2; {flood}\n")
    program.chmod(0o755)
    known(port := sshd(f"ForceCommand {program}"))
    greeted_in_time(site.with_lines(Port=port).connect())


def test_keys_that_are_renewed_without_an_end_are_silence(site: Site, sshd: Sshd, known: Knows, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nexec >&2; {FLOODS['one line']}\n")
    program.chmod(0o755)
    known(port := sshd(f"ForceCommand {program}"))
    stream = site.with_lines(Port=port).connect()
    if isinstance(stream, ParamikoStream):
        stream._link.clear_to_send.clear()  # as paramiko's thread does when keys are renewed
    greeted_in_time(stream)


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_command_in_place_of_ssh_ends_with_the_time_of_the_greeting(flood: str) -> None:
    words = f"sh -c {shlex.quote(f'({flood}) >&2; true')}"  # standard output stays open
    greeted_in_time(RshEngine(lambda _: words).connect(Node("node07"), LIMIT))


def greeted_in_time(stream: Stream) -> None:
    """Wait for a greeting that never comes."""
    wanted = SessionTerms("0f3a99bc12d4e5f6", time.monotonic() + 600, agent=False, connect_timeout=LIMIT)
    session = Session(stream, Known(Node("node07")), wanted, lambda _: None)
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SessionEndedError) as ended:
        session.greet(began)
    stream.close()
    assert ended.value.cause in {Cause.FLOODED, Cause.NO_SHELL}  # what looks like ssh's own log is not counted
    assert time.monotonic() - began < SOON
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024  # KiB


@pytest.mark.parametrize(
    "part",
    [
        "No ED25519 host key is known for ", "connect to host ", "Host key for ", "host key ", "Connection to ", "x",
        "OpenSSH_", "debug1: Offering public key: a ", " ", "@", "x\n", "OpenSSH_9 x\n", "Permission denied (\n",
    ],
)  # fmt: skip
def test_a_log_that_is_full_is_read_in_no_time(part: str) -> None:
    text = (part * (256 * 1024))[: 256 * 1024]
    began = time.process_time()
    failure(SshLog(text, SshTarget("node07", "node07")), 15, timed_out=False)
    cause_of(text)
    main_line(text)
    assert time.process_time() - began < SOON / 3
