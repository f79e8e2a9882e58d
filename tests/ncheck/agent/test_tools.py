from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ncheck.agent.answers.tools import answer, with_mpi
from ncheck.agent.sources import Sources


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_programs_on_the_jobs_path_are_named_with_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncheck.agent.answers.tools.SYSTEM_FOLDERS", "")
    tests, bandwidth = program(tmp_path, "all_reduce_perf"), program(tmp_path, "ib_write_bw")
    assert answer(Sources({"PATH": str(tmp_path)}), None, 5.0) == {
        "tools": {
            "all_reduce_perf": {"path": str(tests), "mpi": None},
            "ib_write_bw": {"path": str(bandwidth), "mpi": None},
        }
    }
    assert answer(Sources({"PATH": str(tmp_path / "none")}), None, 5.0) == {"tools": {}}


def test_a_build_with_mpi_asks_for_its_library() -> None:
    info, shell = shutil.which("ompi_info"), shutil.which("sh")
    if info is None or shell is None:
        pytest.skip("no Open MPI here")
    assert (with_mpi(info), with_mpi(shell), with_mpi(__file__), with_mpi("/nowhere")) == (True, False, None, None)
