"""The programs that measure besides ncheck, as the agent finds them, and the facts of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ncheck.agent.answers.tools import answer, with_mpi
from ncheck.agent.sources import Sources
from ncheck.facts.learning import facts_of
from ncheck.facts.tools import TOOLS, Tool, ToolFacts
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Absent, Unread


def read(reply: Reply) -> object:
    return facts_of(Evidence("n1", Login(reached=True), replies={TOOLS.key: reply}), [ToolFacts])[ToolFacts]


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_programs_on_the_jobs_path_are_named_with_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncheck.agent.answers.tools.SYSTEM_FOLDERS", "")
    tests, bandwidth = program(tmp_path, "all_reduce_perf"), program(tmp_path, "ib_write_bw")

    def found(folder: Path) -> object:
        return read(Reply(Status.OK, value=answer(Sources({"PATH": str(folder)}), None, 5.0)))

    assert found(tmp_path) == ToolFacts({"all_reduce_perf": Tool(str(tests)), "ib_write_bw": Tool(str(bandwidth))})
    assert found(tmp_path / "none") == ToolFacts({})
    (tmp_path / "build").mkdir()
    beside = program(tmp_path / "build", "alltoall_perf")
    tests.rename(tmp_path / "build" / "all_reduce_perf")
    tests.symlink_to(tmp_path / "build" / "all_reduce_perf")
    program(tmp_path, "broadcast_perf_mpi")  # of another build, which all_reduce_perf_mpi would show
    assert found(tmp_path) == ToolFacts({
        "all_reduce_perf": Tool(str(tests)), "ib_write_bw": Tool(str(bandwidth)), "alltoall_perf": Tool(str(beside)),
    })  # fmt: skip


def test_a_build_with_mpi_asks_for_its_library() -> None:
    info, shell = shutil.which("ompi_info"), shutil.which("sh")
    if info is None or shell is None:
        pytest.skip("no Open MPI here")
    assert (with_mpi(info), with_mpi(shell), with_mpi(__file__), with_mpi("/nowhere")) == (True, False, None, None)


def test_what_was_built_with_mpi_says_so() -> None:
    told: JsonValue = {"tools": {"all_reduce_perf": {"path": "/opt/bin/all_reduce_perf", "mpi": True}}}
    assert read(Reply(Status.OK, value=told)) == ToolFacts({"all_reduce_perf": Tool("/opt/bin/all_reduce_perf", True)})  # noqa: FBT003


@pytest.mark.parametrize(
    "told", [None, [], {}, {"tools": []}, {"tools": {"x": 1}}, {"tools": {"x": {"path": "bin/x"}}},
             {"tools": {"x": {"path": "/bin/\x1b[2J"}}}, {"tools": {"x": {"path": "/" * 9999}}}],
)  # fmt: skip
def test_nonsense_is_unread(told: JsonValue) -> None:
    assert isinstance(read(Reply(Status.OK, value=told)), Unread)


def test_what_was_not_asked_is_absent() -> None:
    assert read(Reply(Status.NOT_ASKED, "--probe none")) == Absent("--probe none")
