"""A person's real shell is asked for its Python, only where a launcher's has no framework on a node with GPUs.

A shell that gave no answer is no fault of the node.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import MissingError, prompt
from ncheck.agent.job import JobSetup
from ncheck.agent.sources import Sources
from ncheck.facts.mpi_daemon import EarlyReturn
from ncheck.facts.prompt import PROMPT, PromptFacts
from ncheck.facts.prompt import prompt as prompt_of
from ncheck.model.evidence import Evidence, Reply, Source, Status
from ncheck.model.fact import Absent

Answered = Callable[[Mapping[Source, Reply]], Evidence]

SAYS = '#!/bin/sh\necho \'ncheck:{"version": "3.11.2", "path": "x", "prefix": "x", "packages": %s}\'\n'
RETURNS = '# ours\ncase $- in *i*) ;; *) return;; esac\nexport PATH="$HOME/conda/bin:$PATH" LD_LIBRARY_PATH=/opt/nccl\n'


def python3(folder: Path, packages: str = "{}") -> Path:
    folder.mkdir(parents=True)
    (folder / "python3").write_text(SAYS % packages)
    (folder / "python3").chmod(0o755)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home whose ~/.bashrc returns before it adds conda's python3, which has torch."""
    home = tmp_path / "home"
    python3(home / "conda" / "bin")
    (home / "conda" / "lib" / "python3.11" / "site-packages" / "torch").mkdir(parents=True)
    (home / ".bash_profile").write_text(". ~/.bashrc\n")
    (home / ".bashrc").write_text(RETURNS)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(prompt, "DEVICES", (str(home),))
    monkeypatch.setattr(prompt, "shell_of_user", lambda: "/bin/bash")
    return home


def asked(
    home: Path, packages: str = "{}", seconds: float = 60.0, entered: Mapping[str, str] | None = None
) -> dict[str, Any]:
    plain = python3(home / "plain" / "bin", packages)
    sources = Sources()
    sources.job = JobSetup({**(entered or {})}, {"HOME": str(home), "PATH": f"{plain}:/usr/bin:/bin"})
    sources.job.enter(60.0)
    said: dict[str, Any] = prompt.answer(sources, None, seconds)
    return said


def read(answered: Answered, said: dict[str, Any]) -> object:
    return prompt_of(answered({PROMPT: Reply(Status.OK, value=said)}))


def test_the_prompts_python_and_the_line_that_returns_before_it_are_found(home: Path, answered: Answered) -> None:
    returns = EarlyReturn("~/.bashrc", 2, "case $- in *i*) ;; *) return;; esac")
    assert read(answered, asked(home)) == PromptFacts(
        "/bin/bash", f"{home}/conda/bin/python3", ("torch",), "/opt/nccl", returns
    )


def test_start_up_files_that_hang_or_print_cost_only_their_own_time(home: Path, answered: Answered) -> None:
    (home / ".bash_profile").write_text("echo Welcome; sleep 60\n")
    began = time.monotonic()
    fact = read(answered, asked(home, seconds=2.0))
    assert fact == Absent("/bin/bash -lic gave no answer: ended because of its time limit")
    assert time.monotonic() - began < 30


def test_a_node_without_a_reason_to_ask_has_none(answered: Answered) -> None:
    assert prompt_of(answered({PROMPT: Reply(Status.MISSING, "no GPU")})) == Absent("no GPU")


@pytest.mark.parametrize("path", ["python3", "--flush", "/opt/\x1b[2J", "/" + "x" * 5000])
def test_what_is_no_path_is_no_fact(answered: Answered, path: str) -> None:
    said = {"shell": "/bin/bash", "error": "", "python": path, "frameworks": ["torch"], "libraries": "/a",
            "start_up": None}  # fmt: skip
    with pytest.raises(ValueError, match="is not an absolute path"):
        read(answered, said)


def test_the_history_of_the_shell_stays_as_it_is(home: Path) -> None:
    """An interactive bash cuts its history to the size that a start-up file sets, and writes it when it ends."""
    history = home / ".bash_history"
    history.write_text("".join(f"line {number}\n" for number in range(50)))
    (home / ".bash_profile").write_text("HISTFILESIZE=10\nhistory -s more\n")
    asked(home)
    assert len(history.read_text().splitlines()) == 50


@pytest.mark.parametrize(
    ("packages", "entered", "devices"),
    [('{"torch": "2.3.0"}', {}, True), ("{}", {"python": "python3"}, True), ("{}", {}, False)],
)
def test_no_shell_is_started_where_there_is_no_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch, packages: str, entered: dict[str, str], devices: bool  # noqa: FBT001  of a table
) -> None:  # fmt: skip
    mark = home / "ran"
    (home / ".bash_profile").write_text(f"touch {mark}\n")
    monkeypatch.setattr(prompt, "DEVICES", (str(home),) if devices else ("/dev/ncheck-none",))
    with pytest.raises(MissingError):
        asked(home, packages, entered=entered)
    assert not os.path.lexists(mark)
