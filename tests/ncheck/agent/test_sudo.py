"""A command for root, where sudo refuses: denied, with sudo's own reason, and not the program's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from ncheck.agent.sources import Sources
from ncheck.facts.definition import trouble
from ncheck.facts.kernel_log import DMESG
from ncheck.fleet.framing import reply_from
from ncheck.model.evidence import Status
from ncheck.model.fact import Unread


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, sudo: str) -> Mapping[str, object]:
    """Return the reply to a command for root, on a node with this sudo."""
    program = folder / "sudo"
    program.write_text(f"#!/bin/sh\n{sudo}\n")
    program.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    sources = Sources({"PATH": str(folder)})
    sources.sudo = True
    return sources.read_command({"argv": ["dmesg"], "root": True})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sudo: a password is required", "a password is required"),
        ("sudo: sorry, you must have a tty to run sudo", "sorry, you must have a tty to run sudo"),
        ("ann is not in the sudoers file.", "ann is not in the sudoers file."),
        (
            "Sorry, user ann is not allowed to execute '/usr/bin/timeout' as root on gpu01.",
            "Sorry, user ann is not allowed to execute '/usr/bin/timeout' as root on gpu01.",
        ),
        ("Sorry, user ann may not run sudo on gpu01.", "Sorry, user ann may not run sudo on gpu01."),
    ],
)
def test_a_refusal_of_sudo_is_named_with_how_to_look_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, why: str
) -> None:
    reply = reply_from(refused(tmp_path, monkeypatch, f'echo "{line}" >&2; exit 1'))
    assert (reply.status, reply.reason) == (Status.DENIED, f"sudo: {why}")
    assert trouble(DMESG, reply) == Unread(f"sudo refused, although --sudo was given: {why}", fix="sudo -n true")


def test_a_node_without_sudo_is_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncheck.agent.commands.SYSTEM_FOLDERS", "")
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    sources = Sources({"PATH": str(tmp_path)})
    sources.sudo = True
    reply = reply_from(sources.read_command({"argv": ["dmesg"], "root": True}))
    assert (reply.status, reply.reason) == (Status.DENIED, "sudo: it is not installed")


def test_a_refusal_of_the_program_itself_is_no_refusal_of_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "dmesg: read kernel buffer failed: Operation not permitted"
    reply = reply_from(refused(tmp_path, monkeypatch, f'echo "{words}" >&2; exit 1'))
    assert (reply.status, reply.reason) == (Status.DENIED, words)
    assert trouble(DMESG, reply) == Unread("dmesg: permission denied", needs_root=True)
