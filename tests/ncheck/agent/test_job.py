"""Which interpreter the job would use on a node: asked for, active, or first on the PATH, and never ncheck's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers.interpreter import answer
from ncheck.agent.job import JobSetup, NotEnteredError
from ncheck.agent.sources import Sources


def python3(folder: Path, *, having: str | None = "six") -> str:
    """Make an interpreter that has one package; None: it does not run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "python3"
    said = f'ncheck:{{"version": "3.11.2", "packages": {{"{having}": "1"}}}}'
    path.write_text(f"#!/bin/sh\necho '{said}'\n" if having else "#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def chosen(asked: dict[str, object], path: str) -> tuple[str | None, str]:
    job = JobSetup(asked, {"PATH": path})
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


def test_a_path_from_the_folder_of_the_login_becomes_a_whole_one(
    tmp_path: Path, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(venv / "bin" / "python3")
    assert chosen({"python": "venv/bin/python3"}, "") == (path, "--python")
    assert chosen({}, "venv/bin") == (path, "python3 on PATH")


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


def test_the_first_that_has_a_framework_is_the_jobs(tmp_path: Path) -> None:
    places = {name: tmp_path / name / "bin" for name in ("venv", "shell", "login")}
    active = {"VIRTUAL_ENV": str(tmp_path / "venv"), "python": str(places["shell"] / "python3")}

    def how(*without: str, avoid: str | None = None, fails: str = "") -> str:
        for name, folder in places.items():
            python3(folder, having=None if name == fails else "six" if name in without else "torch")
        return chosen({"active": active, "avoid": avoid}, str(places["login"]))[1]

    assert how() == "active venv"
    assert how("venv") == "active python on PATH"
    assert how("venv", "shell") == "python3 on PATH"
    assert how("venv", "shell", "login") == "active venv"
    own = str(tmp_path / "venv")
    assert how("venv", "shell", "login", avoid=own) == "python3 on PATH"
    assert how("shell", avoid=own) == "active venv"
    assert how("login", fails="venv") == "active venv"
    assert how("login", fails="venv", avoid=own) == "active python on PATH"
    assert how("login", "venv", fails="shell") == "active venv"


def test_the_interpreter_of_the_jobs_command_is_sure_where_the_node_has_it(tmp_path: Path, venv: Path) -> None:
    (tmp_path / "venv" / "bin" / "python3").rename(tmp_path / "venv" / "bin" / "python")
    program, path = str(venv / "bin" / "python"), str(tmp_path / "login")
    on_path = python3(tmp_path / "login", having="torch")
    assert chosen({"program": program}, path) == (program, "the job's command")
    assert chosen({"program": program + "-not-here"}, path) == (on_path, "python3 on PATH")


@pytest.mark.parametrize("culprits", [("PYTHONHOME",), ("PYTHONPATH",), ("PYTHONHOME", "PYTHONPATH")])
def test_variables_that_break_the_interpreter_are_noted_and_left_out(tmp_path: Path, culprits: tuple[str, ...]) -> None:
    (tmp_path / "socket.py").write_text("raise SystemError('an old one')")
    values = {"PYTHONHOME": "/nonexistent", "PYTHONPATH": str(tmp_path)}
    job = JobSetup({"python": sys.executable}, {"PATH": "/usr/bin:/bin", **{name: values[name] for name in culprits}})
    job.enter(60.0)
    words = (
        "ModuleNotFoundError: No module named 'encodings'" if "PYTHONHOME" in culprits else "SystemError: an old one"
    )
    assert job.broken == {"variables": {name: values[name] for name in culprits}, "error": words}
    assert not job.environment.keys() & values.keys()
    sources = Sources()
    sources.job = job
    assert answer(sources, None, 60.0)["broken"] == job.broken


def test_a_pythonpath_that_breaks_nothing_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text("raise SystemExit(1)")
    job = JobSetup({"python": sys.executable}, {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)})
    job.enter(60.0)
    assert (job.broken, job.environment["PYTHONPATH"]) == (None, str(tmp_path))


def test_one_interpreter_alone_is_not_asked_twice(tmp_path: Path, venv: Path) -> None:
    path = venv / "bin" / "python3"
    path.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/log\n" + path.read_text())
    sources = Sources({"PATH": str(venv / "bin")})
    sources.start({"environment": {"active": {"VIRTUAL_ENV": str(venv), "python": str(tmp_path / "nowhere")}}})
    assert not (tmp_path / "log").exists()
    answer(sources, None, 5.0)
    assert (tmp_path / "log").read_text() == "asked\n"


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
    job = JobSetup({"setup": "export LOADED=yes"}, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    job.enter(60.0)
    assert job.environment["LOADED"] == "yes"


def test_the_jobs_commands_find_its_own_interpreters_folder_first(venv: Path) -> None:
    job = JobSetup({"active": {"VIRTUAL_ENV": str(venv)}}, {"PATH": "/usr/bin"})
    job.enter(60.0)
    assert (job.environment["PATH"], job.login_environment["PATH"]) == (f"{venv}/bin:/usr/bin", "/usr/bin")


def test_an_interpreter_that_does_not_run_says_so_and_is_not_taken_for_an_empty_one(venv: Path) -> None:
    python3(venv / "bin", having=None)
    sources = Sources({"PATH": str(venv / "bin")})
    sources.start({"environment": {}})
    with pytest.raises(OSError, match="does not run"):
        answer(sources, None, 5.0)
    assert sources.respond({"kind": "answer", "name": "interpreter"})["status"] == "failed"


def test_no_interpreter_at_all_is_missing(tmp_path: Path) -> None:
    sources = Sources({"PATH": str(tmp_path)})
    sources.start({"environment": {}})
    assert sources.respond({"kind": "answer", "name": "interpreter"})["status"] == "missing"


BUILT = """from typing import Optional
__version__ = '2.3.0+cu121'
debug = False
cuda: Optional[str] = '12.1'
git_version = '97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d'
hip: Optional[str] = None
"""


def installed(site: Path, **packages: str) -> dict[str, Any]:
    """Return what an interpreter with these packages says."""
    for name, version in packages.items():
        (site / f"{name}-{version}.dist-info").mkdir(parents=True)
    sources = Sources()
    sources.job = JobSetup({"python": sys.executable}, {**os.environ, "PYTHONPATH": str(site)})
    sources.job.enter(60.0)
    said: dict[str, Any] = answer(sources, None, 60.0)
    return said


def test_torchs_build_is_read_from_its_file_and_torch_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')")
    (tmp_path / "torch" / "version.py").write_text(BUILT)
    said = installed(tmp_path, torch="2.3.0", flash_attn="2.5.8+cu122torch2.3", nvidia_dali_cuda120="1.37.1", six="1")
    named = ("torch", "flash-attn", "nvidia-dali-cuda120", "six")
    assert {name: said["packages"].get(name) for name in named} == {
        "torch": "2.3.0", "flash-attn": "2.5.8+cu122torch2.3", "nvidia-dali-cuda120": "1.37.1", "six": None,
    }  # fmt: skip
    assert said["torch"] == {"version": "2.3.0+cu121", "cuda": "12.1", "hip": None}


def test_torchs_build_is_read_where_its_files_are_links_into_a_cache(tmp_path: Path) -> None:
    (tmp_path / "cache.py").write_text(BUILT)
    (tmp_path / "site" / "torch").mkdir(parents=True)
    (tmp_path / "site" / "torch" / "__init__.py").write_text("")
    (tmp_path / "site" / "torch" / "version.py").symlink_to(tmp_path / "cache.py")
    assert installed(tmp_path / "site", torch="2.3.0")["torch"]["cuda"] == "12.1"


@pytest.mark.parametrize("text", [None, "", "__version__ = get_version()\n"])
def test_a_torch_that_does_not_say_how_it_was_built_is_not_guessed(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    if text is not None:
        (tmp_path / "torch" / "version.py").write_text(text)
    assert installed(tmp_path)["torch"] is None
