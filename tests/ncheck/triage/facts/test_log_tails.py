from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread
from ncheck.triage.facts.log_tails import LOG_TAILS, LogTail, LogTailsFacts, log_tails

Answered = Callable[[Mapping[Any, Reply]], Evidence]

FILE: dict[str, Any] = {"path": "/l", "pids": [4000], "grown": 4, "size": 10, "text": "one\ntwo\n", "error": ""}


def read(answered: Answered, *files: dict[str, Any], left_out: int = 0) -> LogTailsFacts:
    value: Any = {"seconds": 2.0, "outputs": {"4000": ["/l", None]}, "files": list(files), "left_out": left_out}
    facts = log_tails(answered({LOG_TAILS: Reply(Status.OK, value=value)}))
    assert isinstance(facts, LogTailsFacts)
    return facts


def test_a_whole_log_and_the_end_of_one_are_told_apart(answered: Answered) -> None:
    assert read(answered, {**FILE, "size": 8}, FILE) == LogTailsFacts(
        (LogTail("/l", (4000,), "one\ntwo\n", 4), LogTail("/l", (4000,), "two\n", 4, whole=False)), {4000: ("/l", None)}
    )


def test_a_log_that_cannot_be_read_says_why(answered: Answered) -> None:
    (tail,) = read(answered, {**FILE, "text": None, "size": None, "error": "Permission denied"}).tails
    assert tail == LogTail("/l", (4000,), Unread("Permission denied"), 4)


def test_files_that_were_too_many_are_no_silence(answered: Answered) -> None:
    assert read(answered, FILE).unread == ()
    assert read(answered, FILE, left_out=3).unread == (Unread("3 more files of output were not read"),)


def test_no_answer_is_no_empty_log(answered: Answered) -> None:
    assert log_tails(answered({LOG_TAILS: Reply(Status.FAILED, reason="broken")})) == Unread(
        "the agent's log-tails: broken"
    )
