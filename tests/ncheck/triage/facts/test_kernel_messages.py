from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread
from ncheck.model.job import Process
from ncheck.settings import Settings
from ncheck.triage.facts.kernel_messages import (
    FACTS,
    RECENT_DMESG,
    RECENT_JOURNAL,
    KernelMessage,
    KernelMessagesFacts,
    kernel_messages,
)
from ncheck.triage.facts.processes import ProcessesFacts

Answered = Callable[[Mapping[Any, Reply]], Evidence]

REFUSED = Reply(Status.DENIED, exit_status=1, reason="dmesg: read kernel buffer failed: Operation not permitted")
HINT = Reply(
    Status.OK, exit_status=0, stdout="-- No entries --\n", stderr="Hint: You are currently not seeing messages"
)


def said(*lines: str) -> Reply:
    return Reply(Status.OK, exit_status=0, stdout="\n".join(lines) + "\n")


@pytest.mark.parametrize(("replies", "source"), [
    ({RECENT_JOURNAL: said("[  913.200000] gpu07 kernel: NVRM: Xid"), RECENT_DMESG: REFUSED}, "journalctl -k"),
    ({RECENT_JOURNAL: HINT, RECENT_DMESG: said("[  913.200000] NVRM: Xid")}, "dmesg"),
    ({RECENT_JOURNAL: Reply(Status.MISSING), RECENT_DMESG: said("[  913.200000] NVRM: Xid", "no message")}, "dmesg"),
])  # fmt: skip
def test_messages_are_read_with_the_time_since_boot(
    answered: Answered, replies: Mapping[Any, Reply], source: str
) -> None:
    assert kernel_messages(answered(replies)) == KernelMessagesFacts((KernelMessage(913.2, "NVRM: Xid"),), source)


def test_an_ordinary_user_needs_root(answered: Answered) -> None:
    assert kernel_messages(answered({RECENT_JOURNAL: HINT, RECENT_DMESG: REFUSED})) == Unread(
        "this user cannot read the kernel log", needs_root=True, fix="sudo journalctl -k -b -n 100"
    )


def test_a_command_that_hangs_and_a_refusal_of_sudo_are_told(answered: Answered) -> None:
    hung = kernel_messages(answered({RECENT_JOURNAL: Reply(Status.TIMEOUT, seconds=10), RECENT_DMESG: REFUSED}))
    assert isinstance(hung, Unread)
    assert (hung.needs_root, hung.hung) == (False, " ".join(RECENT_JOURNAL.argv))
    refused = Reply(Status.DENIED, reason="sudo: a password is required")
    why = kernel_messages(answered({RECENT_JOURNAL: refused, RECENT_DMESG: refused}))
    assert isinstance(why, Unread)
    assert why.reason == "sudo refused, although --sudo was given: a password is required"


def test_nodes_without_ranks_are_asked_where_a_rank_is_missing() -> None:
    def asked(size: int) -> set[str]:
        variables = {"RANK": "0", "WORLD_SIZE": str(size), "MASTER_ADDR": "gpu01", "MASTER_PORT": "29500"}
        one = Process(4000, 1, 40000, "S", "python3", ("python3", "train.py"), 1000, 4000, "", variables)
        found = ProcessesFacts((one,), {})
        known = Cluster.of({"gpu01": {ProcessesFacts: found}, "gpu02": {ProcessesFacts: ProcessesFacts((), {})}})
        (fact,) = FACTS
        assert fact.questions
        return set(fact.questions(known, Settings(), 1.0))

    assert asked(1) == {"gpu01"}
    assert asked(2) == {"gpu01", "gpu02"}
