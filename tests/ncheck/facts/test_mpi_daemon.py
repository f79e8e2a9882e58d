"""The answer about MPI's daemons: untrusted, and whatever is wrong with it is no healthy node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.mpi import MPIEXEC, MPIRUN, MpiFacts, mpi
from ncheck.facts.mpi_daemon import MPI_DAEMON, MpiDaemonFacts, mpi_daemon
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]
SAYS = {"said": "mpirun (Open MPI) 4.1.4", "exit_status": 0, "status": "ok", "reason": ""}
MPIRUN_THERE = {
    "path": "/opt/openmpi/bin/mpirun", "real_path": "/opt/openmpi/bin/orterun", "by": ["interactive shell"],
    "info": "", "says": SAYS, "prefixed": None,
}  # fmt: skip
WHOLE: dict[str, Any] = {"starter": MPIRUN_THERE, "daemons": [], "shells": {}, "start_up": None}


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", {}, {**WHOLE, "daemons": 7}, {**WHOLE, "starter": {**MPIRUN_THERE, "path": "bin/mpirun"}},
        {**WHOLE, "starter": {**MPIRUN_THERE, "path": "/opt/a\nb/mpirun"}}, {**WHOLE, "shells": {"any": "thing"}},
        {**WHOLE, "starter": {**MPIRUN_THERE, "by": ["magic"]}}, {**WHOLE, "start_up": {"file": "x", "line": "6"}},
        {**WHOLE, "starter": {**MPIRUN_THERE, "says": {**SAYS, "exit_status": None}}}, {**WHOLE, "login_shell": "fish"},
        {**WHOLE, "rsh_agents": [{"variable": "; reboot", "value": "rsh", "found": False}]},
    ],
)  # fmt: skip
def test_nonsense_is_unread(answered: Answered, value: Any) -> None:
    facts = facts_of(answered({MPI_DAEMON: Reply(Status.OK, value=value)}), [MpiDaemonFacts])
    assert isinstance(facts[MpiDaemonFacts], Unread)


def test_no_answer_is_unread_and_not_a_node_without_mpi(answered: Answered) -> None:
    assert isinstance(mpi_daemon(answered({MPI_DAEMON: Reply(Status.TIMEOUT, seconds=13.0)})), Unread)


def test_an_mpirun_that_only_a_persons_shell_finds_is_the_jobs(answered: Answered) -> None:
    missing = Reply(Status.MISSING)
    replies = {MPIRUN: missing, MPIEXEC: missing, MPI_DAEMON: Reply(Status.OK, value=WHOLE)}
    assert mpi(answered(replies)) == MpiFacts("Open MPI", "4.1.4", "/opt/openmpi/bin/orterun")
