"""A node's own ssh to its peers: what is typed, and how what is said comes back. The ssh here is a script."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.agent.answers import MissingError
from ncheck.agent.answers.ssh_peers import answer, line


def peer(name: str, **more: object) -> dict[str, object]:
    return {"target": name, "host": name, "port": None, "user": None, **more}


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an ssh of our own first on the PATH; its last two words are host and `true`."""
    path = tmp_path / "ssh"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return path


def script(path: Path, text: str) -> None:
    path.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; host=$2\n' + text)
    path.chmod(0o755)


def said(*names: str, timeout: float = 30.0, within: float = 120.0) -> dict[str, tuple[object, object, object]]:
    told = answer(None, {"peers": [peer(name) for name in names], "timeout": timeout}, within)["peers"]
    return {name: (one["exit_status"], one["stderr"], one["cut_short"]) for name, one in told.items()}


def test_nothing_is_asked_learned_or_kept_open_by_the_line() -> None:
    typed = line(peer("node02", port=10001, user="me"), 15.0)
    assert typed[-8:] == ["ConnectTimeout=15", "-p", "10001", "-l", "me", "--", "node02", "true"]
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no", "ControlMaster=no"):
        assert typed[typed.index(option) - 1] == "-o"


def test_a_host_that_looks_like_an_option_is_no_option() -> None:
    assert line(peer("-oProxyCommand=reboot"), 5.0)[-3:] == ["--", "-oProxyCommand=reboot", "true"]


def test_each_peer_is_told_by_its_name(ssh: Path) -> None:
    script(ssh, 'case $host in b) echo "Permission denied (publickey)." >&2; exit 255;; esac')
    assert said("a", "b") == {"a": (0, "", False), "b": (255, "Permission denied (publickey).\n", False)}


def test_a_login_that_was_dropped_for_want_of_room_is_tried_again(ssh: Path, tmp_path: Path) -> None:
    dropped = "echo kex_exchange_identification: read: Connection reset by peer >&2; exit 255"
    script(ssh, f"[ -e {tmp_path}/again ] || {{ touch {tmp_path}/again; {dropped}; }}")
    assert said("a") == {"a": (0, "", False)}


def test_an_ssh_that_does_not_end_is_ended(ssh: Path) -> None:
    script(ssh, "exec sleep 600")
    assert said("a", timeout=1.0, within=60.0) == {"a": (None, "", False)}


def test_peers_for_which_there_was_no_time_say_so(ssh: Path) -> None:
    script(ssh, "exec sleep 600")
    assert said("a", "b", timeout=15.0, within=2.0) == {"a": (None, "", True), "b": (None, "", True)}


def test_a_node_without_ssh_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError):
        said("a")
