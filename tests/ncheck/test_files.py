"""Files that a run writes: refused before any node is asked, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

import pytest
from ncheck.errors import SettingsError
from ncheck.files import writable, write_whole


def test_the_file_is_written_whole_over_an_older_one_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "good.txt"
    target.write_text("old\n")

    def write(file: TextIO) -> None:
        file.write("b\n")
        assert target.read_text() == "old\n"

    write_whole(str(target), "--good-nodes", write)
    assert (target.read_text(), list(tmp_path.iterdir())) == ("b\n", [target])


def test_what_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--good-nodes: .*/gone/good.txt: No such file or directory"):
        write_whole(str(tmp_path / "gone" / "good.txt"), "--good-nodes", lambda file: file.write("a"))


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), OSError(28, "No space left on device"), ZeroDivisionError()])
def test_what_ends_the_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path, cause: BaseException) -> None:
    target = tmp_path / "report.json"
    target.write_text("old\n")

    def write(file: TextIO) -> None:
        file.write("half")
        raise cause

    with pytest.raises((SettingsError, KeyboardInterrupt, ZeroDivisionError)):
        write_whole(str(target), "-o", write)
    assert (target.read_text(), list(tmp_path.iterdir())) == ("old\n", [target])


def test_the_list_that_is_read_is_not_written_over_by_whatever_name(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.txt"
    nodes.write_text("a\n")
    (tmp_path / "link").symlink_to(nodes)
    for name in ("nodes.txt", "link", "../" + tmp_path.name + "/nodes.txt"):
        with pytest.raises(SettingsError, match="is the input list and is not overwritten"):
            writable(str(tmp_path / name), "-o", str(nodes))


def test_what_is_no_file_to_write_is_refused_before_any_node_is_asked(tmp_path: Path) -> None:
    refused = dict.fromkeys((os.devnull, "/dev/stdout", "/proc/self/fd/1"), "is not a regular file")
    for path, why in (
        {
            **refused,
            "-": "expected a file",
            f"{tmp_path}/no/g": "does not exist",
            f"{tmp_path}/{'g' * 300}": "File name too long",
        }
    ).items():
        with pytest.raises(SettingsError, match=why):
            writable(path, "--good-nodes")


def test_only_the_owner_can_write_to_a_file_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_whole(str(tmp_path / "local.json"), "-o", lambda file: file.write("{}"))
    finally:
        os.umask(before)
    assert (tmp_path / "local.json").stat().st_mode & 0o777 == 0o644


def test_a_link_of_ones_own_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("report.json")
    write_whole(str(tmp_path / "link"), "-o", lambda file: file.write("{}"))
    assert ((tmp_path / "link").readlink(), (tmp_path / "report.json").read_text()) == (Path("report.json"), "{}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_link_that_another_user_planted_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "important").write_text("kept")
    link = tmp_path / "report.json"
    link.symlink_to(tmp_path / "important")
    os.chown(link, 65534, -1, follow_symlinks=False)
    with pytest.raises(SettingsError, match=r"^-o: .*/report.json is a symbolic link of another user: choose another"):
        writable(str(link), "-o")
    with pytest.raises(SettingsError, match="is a symbolic link of another user"):
        write_whole(str(link), "-o", lambda file: file.write("{}"))
    assert (tmp_path / "important").read_text() == "kept"
