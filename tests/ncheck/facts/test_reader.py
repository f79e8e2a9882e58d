"""What is said of a source that gave no answer, and the line that a person is to type then."""

from __future__ import annotations

import pytest
from ncheck.facts.definition import trouble
from ncheck.model.evidence import Answer, Command, File, Reply, Source, Status, Tree
from ncheck.model.fact import Unread

SCRIPT = Command(("sh", "-c", "iptables -S | head"), root=True)
LATE = Reply(Status.TIMEOUT, seconds=10.0)
FAILED = Reply(Status.OK, exit_status=3, stderr="no such device\n")

LINES = [
    (Command(("nvidia-smi", "topo", "-m")), "nvidia-smi topo -m", "nvidia-smi topo -m"),
    (SCRIPT, "sh -c iptables -S | head", "sudo sh -c 'iptables -S | head'"),
]


@pytest.mark.parametrize(("source", "name", "line"), LINES)
def test_a_command_that_hangs_or_fails_is_to_be_typed_as_it_was_run(source: Source, name: str, line: str) -> None:
    late = Unread(f"{name} did not end within 10 s and was killed", fix=f"timeout 10 {line}", hung=name)
    failed = Unread(f"{name} ended with exit status 3: no such device", fix=line)
    assert (trouble(source, LATE), trouble(source, FAILED)) == (late, failed)


def test_a_file_that_hangs_is_to_be_read_by_hand() -> None:
    told = trouble(File("/proc/net/bonding/bond 0"), LATE)
    assert isinstance(told, Unread)
    assert told.fix == "timeout 10 cat '/proc/net/bonding/bond 0'"


def test_for_what_only_the_agent_can_ask_there_is_no_line() -> None:
    told = trouble(Answer("interfaces"), LATE)
    name = "the agent's interfaces"
    assert told == Unread(f"{name} did not end within 10 s and was killed", hung=name)


def test_of_many_files_one_is_named() -> None:
    told = trouble(Tree(("/sys/a/*", "/sys/b/*", "/sys/c")), Reply(Status.FAILED, "no memory"))
    assert told == Unread("/sys/a/* and 2 more: no memory")
