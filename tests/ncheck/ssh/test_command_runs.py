"""A login is healthy only where the remote command itself runs: real sshd, real shells, both clients, and --rsh."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from ncheck.fleet.engine import Stream
from ncheck.fleet.engines.command import RshEngine
from ncheck.fleet.session import Known, Session, SessionEndedError, SessionTerms
from ncheck.model.evidence import Cause, Evidence
from ncheck.model.node import Node

from .sites import Known as Knows
from .sites import Site, Sshd

PASSES_ON = 'exec sh -c "$SSH_ORIGINAL_COMMAND"'


def greeted(stream: Stream, seconds: float = 60) -> Evidence:
    """Return what is known of a node after its greeting, for which it has so many seconds."""
    known = Known(Node("node07"))
    wanted = SessionTerms("0f3a99bc12d4e5f6", time.monotonic() + 60, agent=False, connect_timeout=seconds)
    session = Session(stream, known, wanted, lambda _: None)
    try:
        session.greet(time.monotonic())
    except SessionEndedError as error:
        known.fail(error.cause, error.detail)
    finally:
        stream.close()
    return known.evidence()


def of_bash(folder: Path, line: str) -> str:
    """Return the line of sshd's configuration that gives bash this start-up file."""
    home = folder / "home"
    home.mkdir()
    (home / ".bashrc").write_text(line + "\n")
    return f"SetEnv HOME={home}"


@pytest.mark.parametrize("line", ["exit 1", "cat"])
def test_a_program_that_cannot_run_the_script_is_named_by_its_complaint(
    site: Site, sshd: Sshd, known: Knows, tmp_path: Path, line: str
) -> None:
    program = tmp_path / "program"
    # as csh and fish do: "m=ncheck-0f3a: Command not found."
    program.write_text(f'#!/bin/bash\nread -r line; echo "${{line%%;*}}: Command not found." >&2; {line}\n')
    program.chmod(0o755)
    known(port := sshd(f"ForceCommand {program}"))
    login = greeted(site.with_lines(Port=port).connect(), seconds=2).login
    assert (login.reached, login.cause) == (False, Cause.COMMAND_REPLACED)
    assert login.detail.endswith("another program reads standard input, and the command is lost")


@pytest.mark.parametrize("line", ["exec sh", "newgrp daemon"])
def test_a_start_up_file_that_replaces_the_shell_loses_the_command(
    site: Site, sshd: Sshd, known: Knows, tmp_path: Path, line: str
) -> None:
    if "newgrp" in line and os.geteuid() != 0:
        pytest.skip("only root may change to any group")
    known(port := sshd(of_bash(tmp_path, line)))
    login = greeted(site.with_lines(Port=port).connect()).login
    assert (login.reached, login.cause) == (False, Cause.COMMAND_REPLACED)
    assert login.detail.startswith("a start-up file replaces the login shell (exec, newgrp): ")


def test_a_forced_command_loses_the_command(site: Site, sshd: Sshd, known: Knows) -> None:
    known(port := sshd("ForceCommand /bin/bash"))
    login = greeted(site.with_lines(Port=port).connect()).login
    assert (login.reached, login.cause) == (False, Cause.COMMAND_REPLACED)
    assert login.detail == (
        "sshd runs a forced command (ForceCommand, or command= in authorized_keys): "
        "/bin/bash reads standard input, and the command is lost"
    )


def test_a_forced_command_that_passes_the_command_on_is_healthy(site: Site, sshd: Sshd, known: Knows) -> None:
    known(port := sshd(f"ForceCommand {PASSES_ON}"))
    login = greeted(site.with_lines(Port=port).connect()).login
    assert (login.reached, login.cause) == (True, None)


def test_a_start_up_file_that_leaves_the_shell_is_healthy(site: Site, sshd: Sshd, known: Knows, tmp_path: Path) -> None:
    known(port := sshd(of_bash(tmp_path, "case $- in *i*) exec sh;; esac")))
    evidence = greeted(site.with_lines(Port=port).connect())
    assert (evidence.login.reached, evidence.login.cause) == (True, None)
    assert evidence.greeting is not None
    assert evidence.greeting.noise == ""


def test_a_command_in_place_of_ssh_that_drops_its_arguments_is_named() -> None:
    login = greeted(RshEngine(lambda _: "sh -c 'exec sh'").connect(Node("node07"), 60)).login
    assert (login.reached, login.cause) == (False, Cause.COMMAND_REPLACED)
    assert login.detail == (
        "the command given with --rsh does not run its arguments: sh reads standard input, and the command is lost"
    )


def test_a_command_in_place_of_ssh_that_runs_its_arguments_is_healthy() -> None:
    login = greeted(RshEngine(lambda _: "env").connect(Node("node07"), 60)).login
    assert (login.reached, login.cause) == (True, None)
