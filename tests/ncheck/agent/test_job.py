"""Which interpreter the job would use on a node: asked for, active, or first on the PATH, and never ncheck's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.agent.answers.interpreter import answer
from ncheck.agent.job import Job, NotEnteredError
from ncheck.agent.sources import Sources


def python3(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "python3"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return str(path)


def chosen(asked: dict[str, object], path: str) -> tuple[str | None, str]:
    job = Job(asked, {"PATH": path})
    job.enter(60.0)
    return job.path, job.how


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    python3(tmp_path / "venv" / "bin")
    return tmp_path / "venv"


def test_what_the_user_names_weighs_most(tmp_path: Path, venv: Path) -> None:
    named = python3(tmp_path / "named")
    asked: dict[str, object] = {"python": named, "active": {"VIRTUAL_ENV": str(venv)}}
    assert chosen(asked, str(venv / "bin")) == (named, "--python")


def test_a_name_that_is_not_there_is_no_other_interpreter(tmp_path: Path, venv: Path) -> None:
    with pytest.raises(NotEnteredError, match=r"--python .*/nowhere: no such program on this node"):
        chosen({"python": str(tmp_path / "nowhere")}, str(venv / "bin"))


@pytest.mark.parametrize(("variable", "how"), [("VIRTUAL_ENV", "active venv"), ("CONDA_PREFIX", "active conda")])
def test_what_is_active_on_the_head_counts_where_the_node_has_it(
    tmp_path: Path, venv: Path, variable: str, how: str
) -> None:
    on_path = python3(tmp_path / "bin")
    path = str(tmp_path / "bin")
    assert chosen({"active": {variable: str(venv)}}, path) == (str(venv / "bin" / "python3"), how)
    assert chosen({"active": {variable: str(tmp_path / "not-here")}}, path) == (on_path, "python3 on PATH")


def test_the_one_that_ncheck_alone_was_installed_into_is_passed_over(tmp_path: Path, venv: Path) -> None:
    on_path = python3(tmp_path / "bin")
    path = f"{venv / 'bin'}:{tmp_path / 'bin'}"
    assert chosen({"avoid": str(venv)}, path) == (on_path, "python3 on PATH")
    assert chosen({"avoid": str(venv)}, str(venv / "bin")) == (None, "python3 on PATH")


def test_what_the_set_up_activates_weighs_more_than_what_is_active_on_the_head(tmp_path: Path, venv: Path) -> None:
    python3(tmp_path / "other" / "bin")
    setup = f"export VIRTUAL_ENV={tmp_path / 'other'}"
    asked: dict[str, object] = {"setup": setup, "active": {"VIRTUAL_ENV": str(venv)}}
    assert chosen(asked, "/usr/bin:/bin") == (str(tmp_path / "other" / "bin" / "python3"), "active venv")


def test_what_start_up_files_complain_of_is_not_the_set_ups_failure(tmp_path: Path) -> None:
    (tmp_path / ".profile").write_text("no_such_command\n. /no/such/file\n")
    job = Job({"setup": "export LOADED=yes"}, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    job.enter(60.0)
    assert job.environment["LOADED"] == "yes"


def test_the_jobs_commands_find_its_own_interpreters_folder_first(venv: Path) -> None:
    job = Job({"active": {"VIRTUAL_ENV": str(venv)}}, {"PATH": "/usr/bin"})
    job.enter(60.0)
    assert (job.environment["PATH"], job.login_environment["PATH"]) == (f"{venv}/bin:/usr/bin", "/usr/bin")


def test_an_interpreter_that_does_not_run_says_so_and_is_not_taken_for_an_empty_one(venv: Path) -> None:
    sources = Sources({"PATH": str(venv / "bin")})
    sources.start({"environment": {}})
    with pytest.raises(OSError, match="does not run"):
        answer(sources, None, 5.0)
    assert sources.respond({"kind": "answer", "name": "interpreter"})["status"] == "failed"


def test_no_interpreter_at_all_is_missing(tmp_path: Path) -> None:
    sources = Sources({"PATH": str(tmp_path)})
    sources.start({"environment": {}})
    assert sources.respond({"kind": "answer", "name": "interpreter"})["status"] == "missing"
