"""The conversation with a node, held with this machine's own shell, python and agent."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.fleet.engines.command import RshEngine
from ncheck.fleet.framing import on_the_wire
from ncheck.fleet.session import Known, Session, SessionEndedError, SessionTerms, job_environment, own_prefix
from ncheck.model.evidence import Answer, Cause, Command, Evidence, File, Status
from ncheck.model.node import Node
from ncheck.settings import JobEnvironment

Ask = Callable[..., Evidence]
HELLO = Command(("echo", "hello"))


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a PATH with nothing on it but what the shell needs, and return its folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("readlink", "uname", "id", "cat", "echo", "env"):
        (folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def program(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def test_the_greeting_alone_tells_who_answered_and_starts_no_python(ask: Ask, tools: Path, tmp_path: Path) -> None:
    program(tools / "python3", f"touch {tmp_path}/started")
    evidence = ask()
    assert evidence.login.reached
    assert evidence.login.cause is None
    assert evidence.greeting
    assert evidence.greeting.host_name == os.uname().nodename
    assert evidence.greeting.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert evidence.greeting.network_namespace == str(Path("/proc/self/ns/net").readlink())
    assert evidence.greeting.user_id == os.getuid()
    assert evidence.greeting.noise == ""
    assert not (tmp_path / "started").exists()


def test_a_login_that_may_open_too_few_files_for_python_says_so() -> None:
    known = Known(Node("here"))
    wanted = SessionTerms(os.urandom(8).hex(), time.monotonic() + 60.0, connect_timeout=60.0, command_timeout=60.0)
    stream = RshEngine(lambda _: "prlimit --nofile=8:8 --").connect(known.node, 60.0)
    session = Session(stream, known, wanted, lambda _: None)
    session.greet(time.monotonic())
    with pytest.raises(SessionEndedError, match=r"; processes there may open only 8 files \(ulimit -n\)$"):
        session.start()
    stream.close()


def test_each_source_is_answered_with_status_and_whole_output(ask: Ask, tmp_path: Path) -> None:
    file = File(str(tmp_path / "file"))
    (tmp_path / "file").write_bytes(b"caf\xe9\n")
    replies = ask(HELLO, Command(("no-such-program",)), file, File("/nowhere")).replies
    assert {key: (r.status, r.exit_status, r.stdout, r.value) for key, r in replies.items()} == {
        "command:echo hello": (Status.OK, 0, "hello\n", None),
        "command:no-such-program": (Status.MISSING, None, "", None),
        file.key: (Status.OK, None, "", "caf\\xe9\n"),
        "file:/nowhere": (Status.MISSING, None, "", None),
    }


def test_what_is_kept_of_a_question_comes_with_the_reply_and_the_node_never_sees_it(ask: Ask) -> None:
    evidence = ask(limits := Answer("limits", kept={"here": ["gpu02"], "gpu02": ["here"]}))
    (reply,) = evidence.replies.values()
    assert (evidence.node, reply.status, reply.asked) == ("here", Status.OK, ["gpu02"])
    assert on_the_wire(limits) == on_the_wire(Answer("limits"))


def test_of_a_log_its_beginning_is_sent_and_what_holds_a_word(ask: Ask) -> None:
    log = Command(("seq", "40"), root=True, tail=True, holding="3")
    said = ask(log).replies[log.key].stdout
    assert said.split() == [str(line) for line in (*range(1, 11), 13, 23, *range(30, 40))]


def test_what_start_up_files_print_is_noise_and_harms_nothing(ask: Ask, tmp_path: Path) -> None:
    banner = tmp_path / "banner"
    program(banner, "echo Welcome to the cluster; printf 'no newline'; exec \"$@\"")
    evidence = ask(HELLO, enter=None)
    assert evidence.replies[HELLO.key].stdout == "hello\n"
    entered = ask(HELLO, enter=str(banner))
    assert entered.login.cause is None
    assert entered.replies[HELLO.key].stdout == "hello\n"


def test_the_start_of_python3_is_timed_but_not_that_of_a_container(ask: Ask) -> None:
    plain, entered = ask(HELLO).greeting, ask(HELLO, enter="env").greeting
    assert plain is not None
    assert entered is not None
    assert (plain.python_seconds > 0, entered.python_seconds) == (True, 0.0)


@pytest.mark.usefixtures("tools")
def test_no_python3_is_said_and_the_greeting_stays(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", ("python3",))
    evidence = ask(HELLO)
    assert (evidence.login.reached, evidence.login.cause) == (True, Cause.NO_PYTHON)
    assert evidence.greeting
    assert evidence.greeting.python == ""
    assert evidence.replies == {}


@pytest.mark.parametrize(
    ("python", "words"),
    [
        ("kill -SEGV $$", "python3 is installed and does not run: it ended at once with exit status 139"),
        ("echo 'Fatal Python error: no encodings' >&2; exit 1",
         "python3 is installed and does not run: Fatal Python error: no encodings"),
        ("exec sleep 60", "python3 is installed and does not run: it did not start within 1 s"),
        (f'ulimit -v 12000; exec {sys.executable} "$@"', "python3 is installed and does not run: "),
    ],
    ids=["crashes", "fails", "hangs", "lacks memory"],
)  # fmt: skip
def test_a_python_that_is_there_and_does_not_run_is_not_called_missing(
    ask: Ask, tools: Path, monkeypatch: pytest.MonkeyPatch, python: str, words: str
) -> None:
    (tools / "sleep").symlink_to(str(shutil.which("sleep", path="/bin:/usr/bin")))
    program(tools / "python3", python)
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", ("python3",))
    evidence = ask(HELLO, connect_timeout=1.0 if "sleep" in python else 60.0)
    assert (evidence.login.reached, evidence.login.cause) == (True, Cause.NO_PYTHON)
    assert evidence.login.detail.startswith(words)
    assert evidence.greeting
    assert evidence.greeting.python == "python3"


def test_a_python_that_is_too_old_or_broken_is_passed_over_for_one_that_works(
    ask: Ask, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = "echo 'Unknown option: -I' >&2; exit 2"
    for name, text in (("old", "exit 86"), ("broken", "exit 127"), ("ancient", old)):
        program(tools / name, text)
    (tools / "good").symlink_to(sys.executable)
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", ("old", "broken", "ancient", "good"))
    assert ask(HELLO).replies[HELLO.key].stdout == "hello\n"


def test_where_every_python_is_too_old_that_is_no_missing_python(
    ask: Ask, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tools / "python3", "echo '/usr/bin/python3: it is Python 3.5' >&2; exit 86")
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", ("python3",))
    evidence = ask(HELLO)
    assert (evidence.login.cause, evidence.login.detail) == (Cause.NO_PYTHON, "/usr/bin/python3: it is Python 3.5")
    assert evidence.greeting
    assert (evidence.greeting.python, evidence.greeting.old_python) == ("", "python3")


def test_python_2_alone_is_refused(ask: Ask, python2: str, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tools / "python3", f'exec {python2} "$@"')
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", ("python3",))
    evidence = ask(HELLO)
    assert evidence.login.cause is Cause.NO_PYTHON


@pytest.mark.usefixtures("tools")
def test_the_interpreter_that_the_user_names_is_the_agents_last_resort(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", ("python3",))
    named = tmp_path / "my python"
    named.symlink_to(sys.executable)
    assert ask(HELLO, environment={"python": str(named)}).replies[HELLO.key].stdout == "hello\n"


def test_a_set_up_changes_the_jobs_environment_and_not_the_logins(ask: Ask) -> None:
    setup = "module() { echo loading $1; export LOADED=$1; }; module nccl"
    told = Command(("sh", "-c", "echo $LOADED"), job=True)
    plain = Command(("sh", "-c", 'echo "${LOADED:-nothing}"'))
    evidence = ask(told, plain, environment={"setup": setup})
    assert [evidence.replies[source.key].stdout for source in (told, plain)] == ["nccl\n", "nothing\n"]


def test_a_python_that_only_the_set_up_brings_runs_the_agent(
    ask: Ask, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", ("python3",))
    for name in ("bash", "sh"):
        (tools / name).symlink_to(str(shutil.which(name, path="/bin:/usr/bin")))
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "python3").symlink_to(sys.executable)
    setup = f"echo loading\nexport PATH={tmp_path}/module:$PATH"
    evidence = ask(HELLO, environment={"setup": setup})
    assert evidence.login.cause is None, evidence.login.detail
    assert evidence.replies[HELLO.key].stdout == "hello\n"


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("source /no/such/file", "No such file or directory"),
        ("exit 0", "failed"),
        ("echo ERROR: no licence >&2; false", "ERROR: no licence"),
        ("no_such_module_command load nccl; true", "command not found"),
    ],
)
def test_a_set_up_that_fails_is_named_with_its_own_words(ask: Ask, setup: str, words: str) -> None:
    evidence = ask(HELLO, environment={"setup": setup})
    assert (evidence.login.reached, evidence.login.cause) == (True, Cause.NOT_ENTERED)
    assert words in evidence.login.detail
    assert setup in evidence.login.detail


def test_a_container_that_does_not_run_is_named_with_its_commands_words(ask: Ask, tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    program(docker, "echo 'Error response from daemon: No such container: train' >&2; exit 1")
    evidence = ask(HELLO, enter=f"{docker} exec -i train")
    assert evidence.login.cause is Cause.NOT_ENTERED
    assert evidence.login.detail == (
        "--enter ended with exit status 1: Error response from daemon: No such container: train"
    )


def test_what_is_entered_answers_for_the_node(ask: Ask) -> None:
    inside = Command(("sh", "-c", "echo $INSIDE"))
    assert ask(inside, enter="env INSIDE=yes").replies[inside.key].stdout == "yes\n"


def test_an_enter_command_that_passes_no_input_on_is_named(ask: Ask, tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    program(deaf, 'exec "$@" </dev/null')
    evidence = ask(HELLO, enter=str(deaf))
    assert evidence.login.cause is Cause.NOT_ENTERED
    assert "standard input" in evidence.login.detail


def test_output_without_end_is_cut_off_and_says_so(ask: Ask) -> None:
    flood = Command(("cat", "/dev/zero"))
    reply = ask(flood).replies[flood.key]
    assert (reply.status, reply.truncated, reply.exit_status, len(reply.stdout)) == (Status.OK, True, None, 1024 * 1024)


def test_a_program_that_does_not_end_is_ended_and_named(ask: Ask) -> None:
    slow = Command(("sleep", "600"), timeout=0.3)
    reply = ask(slow, HELLO).replies[slow.key]
    assert (reply.status, reply.exit_status) == (Status.TIMEOUT, None)


def end_now(session: Session) -> None:
    """Let the deadline come."""
    session.wanted = replace(session.wanted, deadline=time.monotonic())


@pytest.mark.slow
def test_what_came_before_the_deadline_is_kept(ask: Ask) -> None:
    slow = Command(("sleep", "600"), timeout=300)
    evidence = ask(HELLO, slow, heard=end_now)
    assert evidence.login.cause is Cause.DEADLINE
    assert list(evidence.replies) == [HELLO.key]


def test_a_node_whose_agent_is_killed_keeps_what_it_said(ask: Ask, tmp_path: Path) -> None:
    said = tmp_path / "said"
    killer = Command(("sh", "-c", f"until [ -e {said} ]; do sleep 0.02; done; kill -9 $PPID"))
    evidence = ask(HELLO, killer, heard=lambda _: said.touch())
    assert (evidence.login.cause, list(evidence.replies)) == (Cause.CLOSED, [HELLO.key])
    assert evidence.reply(killer).status is Status.UNANSWERED


# The job's environment


def in_a_venv(folder: Path) -> str:
    """Return what ncheck says of a virtual environment that holds nothing else."""
    alone = folder.parent / "alone"  # what is tested may lie beside a torch, in one site-packages
    alone.mkdir()
    (alone / "ncheck").symlink_to(Path(sys.modules["ncheck"].__file__ or "").parent)
    done = subprocess.run(
        [str(folder / "bin" / "python3"), "-c", "from ncheck.fleet.session import own_prefix; print(own_prefix())"],
        env={"PYTHONPATH": str(alone)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_venv_with_nothing_but_ncheck_is_never_the_jobs(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    assert in_a_venv(tmp_path / "venv") == str(tmp_path / "venv")


def test_a_venv_with_a_framework_beside_ncheck_may_be_the_jobs(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    (site,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    (site / "torch-2.3.0.dist-info").mkdir()
    (site / "torch-2.3.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.3.0\n")
    assert in_a_venv(tmp_path / "venv") == "None"


def test_what_is_active_travels_with_what_was_asked_for() -> None:
    asked = JobEnvironment(python="/opt/python3", setup="module load nccl")
    environ = {"CONDA_PREFIX": "/opt/conda/envs/train", "HOME": "/home/me"}
    assert job_environment(asked, environ) == {
        "python": "/opt/python3", "setup": "module load nccl", "active": {"CONDA_PREFIX": "/opt/conda/envs/train"},
        "avoid": own_prefix(), "program": None,
    }  # fmt: skip


def test_the_python_of_this_shell_and_of_the_jobs_command_travel(tmp_path: Path) -> None:
    for name in ("conda/bin/python", "conda/bin/python3.9", "venv/bin/python"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o755)
    conda, venv = str(tmp_path / "conda"), str(tmp_path / "venv")

    def travels(*program: str, **environ: str) -> tuple[object, object]:
        held = job_environment(JobEnvironment(), environ, program)
        return held["program"], held["active"]

    assert travels(PATH=f"{conda}/bin:/usr/bin") == (None, {"python": f"{conda}/bin/python"})
    assert travels(PATH=f"{venv}/bin", VIRTUAL_ENV=venv) == (None, {"VIRTUAL_ENV": venv})
    assert travels("python3.9", "train.py", PATH=f"{conda}/bin") == (None, {"python": f"{conda}/bin/python3.9"})
    assert travels(f"{venv}/bin/../bin/python", "x.py", PATH="") == (
        f"{venv}/bin/python",
        {"python": f"{venv}/bin/python"},
    )
    assert travels("./a.out", PATH="", VIRTUAL_ENV="venv", CONDA_PREFIX="/a\nb") == (None, {})
