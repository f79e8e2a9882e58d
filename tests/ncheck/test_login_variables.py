"""The command that removes or changes a variable: typed in a shell, it does that in the files, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ncheck.agent.answers.environment import START_UP_FILES, places
from ncheck.decode import decoded
from ncheck.facts.environment import Assignment, EnvironmentFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.mpi_settings import MpiSetting
from ncheck.login_variables import changed, limit_set_to, parameter_removed, to_remove, where_set
from ncheck.model.check import Fix
from ncheck.model.fact import Unread

BASHRC = """# export NCCL_ALGO=Tree
case $- in *i*) ;; *) export NCCL_PROTO=LL;; esac
export NCCL_ALGO=Ring   # for a test
export NCCL_ALGORITHM=x MY_NCCL_ALGO=1
export RANK=0 WORLD_SIZE=2
NCCL_DEBUG="INFO"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text(BASHRC)
    (tmp_path / ".profile").write_text("NCCL_DEBUG=WARN; export NCCL_DEBUG\n")
    return tmp_path


def environment(*names: str) -> EnvironmentFacts:
    """Return what the agent finds of these variables, in this home alone."""
    found = decoded(places(names), dict[str, tuple[Assignment, ...]])
    own = {name: tuple(one for one in lines if one.file.startswith("~")) for name, lines in found.items()}
    return EnvironmentFacts(dict.fromkeys(names, "x"), {}, (), {name: lines for name, lines in own.items() if lines})


def typed(fix: Fix) -> str:
    return subprocess.run(["bash", "-c", fix.line], capture_output=True, text=True, check=True).stdout


def test_the_lines_that_set_a_variable_are_named_with_what_else_they_do() -> None:
    found = environment("NCCL_ALGO", "NCCL_PROTO", "RANK", "NCCL_DEBUG", "PATH", "NCCL_IB_HCA").start_up
    assert found == {
        "NCCL_ALGO": (Assignment("~/.bashrc", 3, ("NCCL_ALGO",)),),
        "NCCL_PROTO": (Assignment("~/.bashrc", 2),),
        "RANK": (Assignment("~/.bashrc", 5, ("RANK", "WORLD_SIZE")),),
        "NCCL_DEBUG": (Assignment("~/.bashrc", 6, ("NCCL_DEBUG",)), Assignment("~/.profile", 1)),
    }


def test_a_line_that_does_nothing_else_is_removed_or_changed_and_the_rest_of_the_file_stays(home: Path) -> None:
    lines = BASHRC.splitlines(keepends=True)
    known = environment("NCCL_ALGO")
    fix = changed(known.start_up["NCCL_ALGO"], "NCCL_ALGO", "^=lo,docker0")
    typed(fix)
    assert (home / ".bashrc").read_text() == "".join([*lines[:2], "export NCCL_ALGO=^=lo,docker0\n", *lines[3:]])
    fix = to_remove(known, "NCCL_ALGO")
    assert fix == Fix("sed -i --follow-symlinks -E '/^(export +)?NCCL_ALGO=/d' ~/.bashrc")
    for _ in range(2):  # who types it twice harms nothing
        typed(fix)
        assert (home / ".bashrc").read_text() == "".join([*lines[:2], *lines[3:]])


def test_several_variables_go_together_and_the_systems_file_needs_root() -> None:
    own = {name: (Assignment("/etc/environment", number, (name,)),) for number, name in enumerate(("RANK", "A"), 1)}
    known = EnvironmentFacts(dict.fromkeys(own, "0"), {}, (), own)
    assert to_remove(known, "RANK", "A") == Fix(
        "sudo sed -i --follow-symlinks -E '/^(export +)?(RANK|A)=/d' /etc/environment"
    )


def test_a_line_that_sets_several_goes_where_all_of_them_should(home: Path) -> None:
    both = environment("RANK", "WORLD_SIZE")
    assert to_remove(both, "RANK").look
    typed(to_remove(both, "RANK", "WORLD_SIZE"))
    assert (home / ".bashrc").read_text() == BASHRC.replace("export RANK=0 WORLD_SIZE=2\n", "")


@pytest.mark.parametrize("name", ["NCCL_PROTO", "RANK", "NCCL_DEBUG"])
def test_a_line_that_does_more_is_shown_to_a_person(home: Path, name: str) -> None:
    fix = to_remove(environment(name), name)
    assert fix.look
    assert f"{name}=" in typed(fix)
    assert (home / ".bashrc").read_text() == BASHRC


def test_where_no_file_sets_a_variable_the_usual_files_are_searched() -> None:
    assert to_remove(environment("NCCL_IB_HCA"), "NCCL_IB_HCA") == where_set("NCCL_IB_HCA")
    assert to_remove(None, "A", "B") == where_set("A", "B")
    assert where_set("A", "B").line.startswith("grep -snE '(A|B)=' ~/.bashrc ")
    assert environment() == EnvironmentFacts({}, {})


def test_a_parameter_of_open_mpi_is_removed_where_it_is_set(home: Path) -> None:
    (home / ".openmpi").mkdir()
    file = home / ".openmpi" / "mca-params.conf"
    file.write_text("btl_tcp_if_include = eth0\nbtl_tcp_if_exclude=lo\n")
    fix = parameter_removed(MpiSetting("btl_tcp_if_include", "eth0", file="~/.openmpi/mca-params.conf"))
    typed(fix)
    assert (fix.look, file.read_text()) == (False, "btl_tcp_if_exclude=lo\n")


def test_start_up_files_are_read_within_bounds(home: Path) -> None:
    os.mkfifo(home / ".zshenv")
    (home / ".bash_login").write_text("export RANK=1\n" * 100)
    assert len(places(["RANK"])["RANK"]) == 8
    assert "~/.zshenv" in START_UP_FILES


def limits(file: str, *sets: str) -> LimitsFacts:
    return LimitsFacts(None, Unread("not asked"), set_in={"stack": (Assignment(file, 1, sets or ("stack",)),)})


def test_the_line_that_sets_a_limit_is_removed_and_that_of_pam_changed(home: Path) -> None:
    (home / ".bashrc").write_text("ulimit -s 128\nulimit -S -s 128 # why\nulimit -n 64\nulimit -s 128 -n 64\n")
    typed(limit_set_to("8192", "stack", limits("~/.bashrc")))
    assert (home / ".bashrc").read_text() == "ulimit -n 64\nulimit -s 128 -n 64\n"

    fix = limit_set_to("8192", "stack", limits("/etc/security/limits.d/20-hpc.conf"))
    pam = home / "20-hpc.conf"
    pam.write_text("# * soft stack 1\n@hpc\tsoft  stack 128 # small\n* soft nofile 1024\n")
    typed(Fix(fix.line.replace("sudo ", "").replace("/etc/security/limits.d/20-hpc.conf", str(pam))))
    assert pam.read_text() == "# * soft stack 1\n@hpc\tsoft  stack 8192 # small\n* soft nofile 1024\n"


def test_a_line_that_sets_more_is_shown_and_without_one_pam_gets_a_line_for_this_user() -> None:
    assert limit_set_to("8192", "stack", limits("~/.bashrc", "stack", "nofile")) == Fix(
        "grep -nE 'ulimit|stack' ~/.bashrc", look=True
    )
    root, user = (IdentityFacts("n1", "b", "net:[1]", number) for number in (0, 1000))
    unknown = LimitsFacts(None, Unread("not asked"))
    assert [limit_set_to("8192", "stack", unknown, who, hard=False).line for who in (root, user)] == [
        rf"printf '{name} soft stack 8192\n' | sudo tee /etc/security/limits.d/90-stack.conf" for name in ("root", "*")
    ]
