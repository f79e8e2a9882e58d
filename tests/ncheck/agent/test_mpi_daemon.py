"""MPI's programs on a node: what the plain login finds, what only a person's shell does, and what keeps it from it."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

import pytest
from ncheck.agent.answers.mpi_daemon import answer, returns_early
from ncheck.agent.sources import Sources
from ncheck.facts.mpi_daemon import (
    MPI_DAEMON,
    EarlyReturn,
    MpiDaemonFacts,
    MpiProgram,
    RshAgent,
    UnknownParameter,
    mpi_daemon,
)
from ncheck.model.evidence import Evidence, Login, Reply, Status

UBUNTU = """# ~/.bashrc: executed by bash(1) for non-login shells.

# If not running interactively, don't do anything
case $- in
    *i*) ;;
      *) return;;
esac
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def open_mpi(prefix: Path, version: str = "4.1.4") -> Path:
    """Put scripts there that answer as Open MPI 4's programs do; return the prefix."""
    program(prefix / "bin" / "mpirun", f"echo 'mpirun (Open MPI) {version}'")
    program(prefix / "bin" / "orted", "echo 'orted: Error: unknown option \"--version\"' >&2; exit 213")
    program(prefix / "bin" / "ompi_info", f"echo ompi:version:full:{version}; echo mpirun:prefix_by_default:no")
    return prefix


def asked(path: str, **environ: str) -> MpiDaemonFacts:
    """Ask this machine as a node whose plain login has this PATH, and read the answer."""
    sources = Sources({"PATH": path, "HOME": os.environ["HOME"], **environ})
    reply = Reply(Status.OK, value=answer(sources, None, 60.0))
    facts = mpi_daemon(Evidence("n1", Login(reached=True), replies={MPI_DAEMON.key: reply}))
    assert isinstance(facts, MpiDaemonFacts)
    return facts


def of(facts: MpiDaemonFacts, prefix: Path) -> list[MpiProgram]:
    return [daemon for daemon in facts.daemons if daemon.path.startswith(str(prefix))]


def test_what_the_plain_login_finds_is_told_and_no_other_shell_is_asked(home: Path) -> None:
    (home / ".bashrc").write_text(f"touch {home}/asked\n")
    prefix = open_mpi(home / "openmpi")
    facts = asked(f"{prefix}/bin:/nowhere")
    mpirun, orted = f"{prefix}/bin/mpirun", f"{prefix}/bin/orted"
    assert facts == MpiDaemonFacts(
        MpiProgram(mpirun, mpirun, ("plain login",), "Open MPI", "4.1.4"),
        (MpiProgram(orted, orted, ("plain login", "beside mpirun"), "Open MPI", "4.1.4"),),
        login_shell=pwd.getpwuid(os.getuid()).pw_shell,
    )
    assert not (home / "asked").exists()


def test_a_bashrc_that_returns_before_its_export_is_found_out_by_an_interactive_shell(home: Path) -> None:
    prefix = open_mpi(home / "openmpi")
    (home / ".bashrc").write_text(f"{UBUNTU}export PATH={prefix}/bin:$PATH\n")
    facts = asked("/nowhere", SHELL="/bin/bash")
    assert facts.early_return == EarlyReturn("~/.bashrc", 6, "*) return;;")
    assert facts.starter == MpiProgram(
        f"{prefix}/bin/mpirun", f"{prefix}/bin/mpirun", ("interactive shell",), "Open MPI", "4.1.4"
    )
    assert [daemon.found_by for daemon in of(facts, prefix)] == [("interactive shell",)]


def test_what_only_a_login_shell_loads_is_told_as_that(home: Path) -> None:
    prefix = open_mpi(home / "openmpi")
    (home / ".bash_profile").write_text(f"echo Welcome; export PATH={prefix}/bin:$PATH\n")
    facts = asked("/nowhere")
    assert [daemon.found_by for daemon in of(facts, prefix)] == [("login shell",)]
    assert facts.early_return is None


def test_the_history_of_an_interactive_shell_stays_as_it_is(home: Path) -> None:
    history = home / ".bash_history"
    history.write_text("".join(f"line {number}\n" for number in range(50)))
    (home / ".bashrc").write_text("HISTFILESIZE=10\nhistory -s more\n")
    asked("/nowhere")
    assert len(history.read_text().splitlines()) == 50


def test_a_shell_that_does_not_answer_is_told_and_the_others_still_are_asked(home: Path) -> None:
    prefix = open_mpi(home / "openmpi")
    (home / ".bashrc").write_text("exec true\n")
    (home / ".bash_profile").write_text(f"export PATH={prefix}/bin:$PATH\n")
    facts = asked("/nowhere")
    assert list(facts.shells) == ["interactive shell"]
    assert facts.shells["interactive shell"].endswith("-ic: it printed no answer")
    assert [daemon.found_by for daemon in of(facts, prefix)] == [("login shell",)]


def test_missing_libraries_are_the_loaders_words_and_whether_the_own_folder_helps(home: Path) -> None:
    prefix = open_mpi(home / "openmpi")
    lost = "error while loading shared libraries: libopen-rte.so.40: cannot open shared object file"
    has = f'case "$LD_LIBRARY_PATH" in {prefix}/lib*) exit 213;; esac'
    program(prefix / "bin" / "orted", f"{has}; echo 'orted: {lost}' >&2; exit 127")
    (orted,) = of(asked(f"{prefix}/bin"), prefix)
    assert (orted.trouble, orted.helped) == (f"orted: {lost}", True)


@pytest.mark.slow
def test_a_daemon_that_hangs_is_ended_and_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncheck.agent.answers.mpi_daemon._EACH", 3.0)
    prefix = open_mpi(home / "openmpi")
    program(prefix / "bin" / "orted", "exec sleep 1000")
    (orted,) = of(asked(f"{prefix}/bin"), prefix)
    assert orted.trouble == "ended because of its time limit"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (UBUNTU, 6),
        ('export A=1\n[ -z "$PS1" ] && return\n', 2),
        ("[[ $- != *i* ]] && exit 0", 1),
        ('if [ -z "$PS1" ]; then\n   return\nfi\n', 2),
        ("tty -s || return", 1),
    ],
)
def test_the_usual_ways_to_return_early_are_known(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "bashrc").write_text(text)
    found = returns_early(str(tmp_path / "bashrc"))
    assert found
    assert found["line"] == line


@pytest.mark.parametrize("text", ["", "f() {\n  return 1\n}\n", "# [ -z $PS1 ] && return\n", "echo return $-\n"])
def test_what_returns_elsewhere_or_not_at_all_is_not_taken_for_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "bashrc").write_text(text)
    assert returns_early(str(tmp_path / "bashrc")) is None


def test_no_start_up_file_is_no_early_return(tmp_path: Path) -> None:
    assert returns_early(str(tmp_path / "bashrc")) is None


def test_of_how_it_was_configured_only_what_changes_its_transports_is_kept(home: Path) -> None:
    prefix = open_mpi(home / "openmpi")
    line = "config:cli: '--prefix=/opt' '--with-cuda=/usr/cuda' '--with-ucx' '--without-verbs' '--with-cuda-libdir=/x'"
    (prefix / "bin" / "lines").write_text(f"ompi:version:full:4.1.4\n{line} '--with-slurm' '--with-hcoll=no'\n")
    program(prefix / "bin" / "ompi_info", f"cat {prefix}/bin/lines")
    starter = asked(f"{prefix}/bin:/nowhere").starter
    assert starter is not None
    assert (starter.version, starter.built_with) == ("4.1.4", ("cuda", "ucx"))


@pytest.mark.skipif(not shutil.which("ompi_info"), reason="no Open MPI")
def test_a_real_open_mpi_says_how_it_was_configured(home: Path) -> None:  # noqa: ARG001  no start-up file of the user
    starter = asked(os.environ["PATH"]).starter
    assert starter is not None
    assert starter.built_with is not None


def test_the_login_shell_is_told_and_whether_a_program_that_open_mpi_is_to_log_in_with_is_there(home: Path) -> None:
    program(home / "bin" / "rsh", "exit 0")
    agents = {"OMPI_MCA_plm_rsh_agent": "/opt/gone/rsh -x : rsh2", "PRTE_MCA_plm_ssh_agent": "gone : rsh -4"}
    facts = asked(str(home / "bin"), **agents)
    assert facts.login_shell == pwd.getpwuid(os.getuid()).pw_shell
    assert facts.rsh_agents == (
        RshAgent("OMPI_MCA_plm_rsh_agent", "/opt/gone/rsh -x : rsh2", found=False),
        RshAgent("PRTE_MCA_plm_ssh_agent", "gone : rsh -4", found=True),
    )
    assert asked(str(home / "bin")).rsh_agents == ()


@pytest.mark.skipif(not shutil.which("ompi_info"), reason="no Open MPI")
def test_a_real_open_mpi_knows_its_parameters_and_a_name_with_a_slip_in_it(home: Path) -> None:  # noqa: ARG001
    known = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_our_own": "1"}
    for other in ("btl_sm_eager_limit", "btl_uct_max_send_size", "coll_hcoll_priority", "mtl_psm_connect_timeout"):
        known[f"OMPI_MCA_{other}"] = "1"  # each is like one of another component
    assert asked(os.environ["PATH"], **known).parameters == ()
    slip = UnknownParameter("OMPI_MCA_btl_tcp_if_inculde", "btl_tcp_if_include")
    assert asked(os.environ["PATH"], OMPI_MCA_btl="^tcp", **{slip.variable: "lo"}).parameters == (slip,)


def test_an_open_mpi_that_lists_no_parameters_knows_of_none_that_is_wrong(home: Path) -> None:
    prefix = open_mpi(home / "openmpi")
    assert asked(f"{prefix}/bin:/nowhere", OMPI_MCA_btl_tcp_if_inculde="eth0").parameters == ()
