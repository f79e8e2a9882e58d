"""The rates of reading: real files, bounded, and nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ncheck.agent.answers import storage_probe
from ncheck.agent.sources import Sources


def asked(*paths: str) -> list[dict[str, Any]]:
    arguments = {"paths": list(paths), "place": 3, "turn": 0, "turns": 1, "unit": 0.3}
    found: list[dict[str, Any]] = storage_probe.answer(Sources({}), arguments, 60.0)["readings"]
    return found


def test_a_folder_is_read_twice_and_nothing_in_it_changes(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/large").write_bytes(bytes(8 << 20))
    for number in range(20):
        (tmp_path / f"small{number}").write_text("text")
    (tmp_path / "link").symlink_to("/etc")
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}

    (one,) = asked(str(tmp_path))

    for reading in (one["alone"], one["together"]):
        assert reading["error"] == ""
        assert reading["entries"] == 23
        assert 0 < reading["small_files"] <= 20
        assert 0 < reading["large_bytes"] <= 8 << 20
        assert reading["large_seconds"] > 0
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_one_file_is_read_and_what_is_missing_says_so(tmp_path: Path) -> None:
    (tmp_path / "data.tar").write_bytes(bytes(2 << 20))
    file, gone = asked(f"{tmp_path}/data.tar", f"{tmp_path}/none")
    assert (file["alone"]["entries"], file["alone"]["large_bytes"]) == (1, 2 << 20)
    assert gone["alone"] == {"error": "No such file or directory"}


def test_an_empty_folder_gives_no_rate(tmp_path: Path) -> None:
    (one,) = asked(str(tmp_path))
    assert (one["alone"]["entries"], one["alone"]["small_files"], one["alone"]["large_bytes"]) == (0, 0, 0)
