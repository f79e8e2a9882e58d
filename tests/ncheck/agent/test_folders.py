"""The folders as the agent finds them: nothing is written, and what is not there is judged by the folder above it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ncheck.agent.answers.folders import answer, folder
from ncheck.agent.sources import Sources

NOBODY = 65534


def test_the_variables_name_more_folders_in_the_order_in_which_open_mpi_looks(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path / "a"), "TMP": "/unused"}
    named = [(one["path"], one["named_by"]) for one in answer(Sources(environment), None, 1.0)["temporary"]]
    assert named == [("/tmp", ""), (str(tmp_path / "a"), "TMPDIR")]  # noqa: S108
    own = {**environment, "OMPI_MCA_orte_tmpdir_base": "/local"}
    named = [(one["path"], one["named_by"]) for one in answer(Sources(own), None, 1.0)["temporary"]]
    assert ("/local", "OMPI_MCA_orte_tmpdir_base") in named


def test_a_folder_that_is_there_is_described_as_it_is(tmp_path: Path) -> None:
    found = folder(str(tmp_path))
    assert (found["exists"], found["writable"], found["read_only"]) == (True, True, False)
    assert found["free"] == pytest.approx(os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize, rel=0.1)


def test_the_file_system_is_that_of_the_longest_mount_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b").mkdir()
    table = tmp_path / "mountinfo"
    line = "36 35 98:0 / {} rw,noatime master:1 - {} server:/x rw\n"
    escaped = str(tmp_path / "a b").replace(" ", "\\040")
    rows = [("/", "ext4"), (str(tmp_path), "xfs"), (escaped, "autofs"), (escaped, "nfs4"), (f"{tmp_path}/a", "no")]
    table.write_text("".join(line.format(*row) for row in rows) + "37 35 - \n" + "cut off")
    monkeypatch.setattr("ncheck.agent.mount_table.OWN", str(table))
    kinds = [folder(str(path))["kind"] for path in (tmp_path / "a b", tmp_path, Path("/"))]
    assert kinds == ["nfs4", "xfs", "ext4"]
    monkeypatch.setattr("ncheck.agent.mount_table.OWN", str(tmp_path / "none"))
    assert folder("/")["kind"] is None


def test_one_that_is_not_there_is_judged_by_the_nearest_above_and_is_not_made(tmp_path: Path) -> None:
    found = folder(str(tmp_path / "a" / "b"))
    assert (found["exists"], found["writable"]) == (False, True)
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_leads_nowhere_has_a_target_and_what_is_above_that_decides(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    targets = {"gone": tmp_path / "scratch" / "tmp", "proc": Path("/proc/none"), "there": tmp_path / "good"}
    for name, target in targets.items():
        (tmp_path / name).symlink_to(target)
    found = [folder(str(tmp_path / name)) for name in targets]
    assert [(one["exists"], one["writable"], one["target"]) for one in found] == [
        (False, True, str(tmp_path / "scratch" / "tmp")), (False, os.geteuid() == 0, "/proc/none"), (True, True, ""),
    ]  # fmt: skip


def test_one_that_others_own_cannot_be_written_to() -> None:
    child = os.fork()  # root may write anywhere, so somebody else asks
    if child == 0:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        os._exit(0 if folder("/etc")["writable"] is False else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_only_a_session_folder_of_open_mpi_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, host = os.getuid(), os.uname().nodename
    others, own, foreign = (
        tmp_path / name for name in (f"ompi.other.{user}", f"prte.{host}.{user}", f"ompi.{host}.{user}")
    )
    for path in (others, own, foreign):
        path.mkdir()
    closed = {str(others), str(foreign)}
    monkeypatch.setattr(os, "access", lambda path, _: path not in closed)
    found = answer(Sources({"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}), None, 5.0)["temporary"]
    assert [(one["path"], one["writable"]) for one in found[2:]] == [(str(foreign), False)]
