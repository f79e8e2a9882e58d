"""Who holds a port, by the kernel's tables of sockets: as much as this user may see."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest
from ncheck.agent.answers.listen import owner_of

ROOT = pwd.getpwuid(0).pw_name
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def line(port: int, state: str, user: int, inode: int) -> str:
    return (
        f"   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {user:5} 0 {inode} 1\n"
    )


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Return a /proc of two processes, of which one may be looked into."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net/tcp").write_text(HEAD + line(29500, "01", 0, 71) + line(80, "0A", 0, 73))
    (tmp_path / "net/tcp6").write_text(HEAD + line(29500, "0A", 0, 72) + line(81, "06", 0, 0))
    (tmp_path / "4711/fd").mkdir(parents=True)
    (tmp_path / "4711/comm").write_text("python3\n")
    (tmp_path / "4711/fd/0").symlink_to("/dev/null")
    (tmp_path / "4711/fd/3").symlink_to("socket:[72]")
    (tmp_path / "4712").mkdir()
    return tmp_path


def test_who_listens_is_named_before_who_is_only_connected(proc: Path) -> None:
    assert owner_of(29500, str(proc)) == f"python3 (pid 4711) of {ROOT}"


def test_a_process_that_may_not_be_looked_into_is_told_by_its_user(proc: Path) -> None:
    assert owner_of(80, str(proc)) == f"a program of {ROOT}"


def test_a_user_without_a_name_is_told_by_number(proc: Path) -> None:
    (proc / "net/tcp").write_text(HEAD + line(80, "0A", 987654, 73))
    assert owner_of(80, str(proc)) == "a program of user 987654"


def test_what_nobody_holds_has_no_owner(proc: Path) -> None:
    assert owner_of(81, str(proc)) == ""
    assert owner_of(82, str(proc)) == ""
    assert owner_of(80, str(proc / "nowhere")) == ""
