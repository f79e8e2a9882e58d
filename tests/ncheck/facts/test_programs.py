"""The program of the job's command: which paths are asked for, what a node answers, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers.programs import answer
from ncheck.agent.sources import Sources
from ncheck.facts.learning import facts_of
from ncheck.facts.programs import PROGRAMS, ProgramFacts, paths_of, programs
from ncheck.model.evidence import Evidence, Reply, Source, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Source, Reply]], Evidence]


@pytest.mark.parametrize(("command", "workdir", "paths"), [
    ("allreduce -n 8", None, ("", "")),
    ("/opt/job --data /data", None, ("/opt/job", "")),
    ("./job", None, ("", "")),
    ("bin/job", "/code", ("/code/bin/job", "")),
    ("python -u /code/train.py --lr 1", None, ("", "/code/train.py")),
    ("/opt/venv/bin/python3.11 train.py", "/code", ("/opt/venv/bin/python3.11", "/code/train.py")),
    ("python train.py", None, ("", "")),
    ("python -m train", "/code", ("", "")),
    ("bash -c true", None, ("", "")),
    ("sh run.sh", "/code", ("", "/code/run.sh")),
])  # fmt: skip
def test_only_what_has_a_full_path_is_asked_for(command: str, workdir: str | None, paths: tuple[str, str]) -> None:
    assert paths_of(tuple(command.split()), workdir) == paths


def test_a_node_says_what_is_there_and_what_is_no_program(tmp_path: Path, answered: Answered) -> None:
    program, text = tmp_path / "job", tmp_path / "train.py"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text.write_text("")
    asked = {"programs": [str(program), str(text), str(tmp_path)], "files": [str(tmp_path / "gone")]}
    value = answer(Sources({}), asked, 5.0)
    assert programs(answered({PROGRAMS: Reply(Status.OK, value=value)})) == ProgramFacts({
        str(program): "",
        str(text): "is not a program that the job's user may run",
        str(tmp_path): "is not a program that the job's user may run",
        str(tmp_path / "gone"): "does not exist",
    })  # fmt: skip


def test_what_hangs_is_unread_and_so_is_nonsense(answered: Answered) -> None:
    hangs: Any = {"paths": {"/data/job": {"error": "no answer within 5 s"}}}
    read = programs(answered({PROGRAMS: Reply(Status.OK, value=hangs)}))
    assert read == ProgramFacts({"/data/job": Unread("/data/job: no answer within 5 s")})
    for wrong in ({"paths": {"--flush": {"trouble": ""}}}, {"paths": {"/a": "x"}}, None):
        value: Any = wrong
        facts = facts_of(answered({PROGRAMS: Reply(Status.OK, value=value)}), [ProgramFacts])
        assert isinstance(facts[ProgramFacts], Unread)


def test_without_a_command_nothing_is_known(answered: Answered) -> None:
    reply = Reply(Status.NOT_ASKED, reason="no command with a full path was given")
    assert programs(answered({PROGRAMS: reply})) == Absent("no command with a full path was given")
