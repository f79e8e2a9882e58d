"""Open MPI's parameters: variables outweigh the user's file, and that the file of the installation in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.environment import ENVIRONMENT
from ncheck.facts.mpi_daemon import MPI_DAEMON
from ncheck.facts.mpi_settings import SYSTEM_FILES, USERS_FILE, MpiSetting, mpi_settings
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

SAYS: JsonValue = {"said": "mpirun (Open MPI) 4.1.4", "exit_status": 0, "status": "ok", "reason": ""}
MISSING = Reply(Status.MISSING)
DEBIAN, OTHER = "/etc/openmpi/openmpi-mca-params.conf", "/opt/ompi/etc/openmpi-mca-params.conf"


def evidence(
    answered: Answered, *, file: Reply = MISSING, system: dict[str, JsonValue] | None = None, **variables: str
) -> Evidence:
    login: JsonValue = {"variables": dict(variables), "job_variables": dict(variables), "files": {}}
    path = "/usr/bin/mpirun"
    starter: JsonValue = {
        "path": path, "real_path": path, "by": ["plain login"], "info": "", "says": SAYS, "prefixed": None,
    }  # fmt: skip
    programs: JsonValue = {"starter": starter, "daemons": [], "shells": {}, "start_up": None}
    return answered({
        ENVIRONMENT: Reply(Status.OK, value=login), MPI_DAEMON: Reply(Status.OK, value=programs), USERS_FILE: file,
        SYSTEM_FILES: Reply(Status.OK, value=system or {}),
    })  # fmt: skip


def settings(known: Evidence) -> dict[str, MpiSetting]:
    found = mpi_settings(known)
    assert not isinstance(found, Unread)
    return dict(found.settings)  # type: ignore[union-attr]


def test_the_variable_counts_then_the_users_file_then_the_systems(answered: Answered) -> None:
    own = Reply(Status.OK, value="# mine\nbtl_tcp_if_include = eth1 # fast\noob_tcp_if_include=eth2\n")
    system: dict[str, JsonValue] = {DEBIAN: "btl_tcp_if_include = eth9\nbtl_tcp_if_exclude = lo,docker0\npml = ob1\n"}
    found = settings(evidence(answered, file=own, system=system, OMPI_MCA_oob_tcp_if_include="eth3"))
    assert found == {
        "btl_tcp_if_include": MpiSetting("btl_tcp_if_include", "eth1", file="~/.openmpi/mca-params.conf"),
        "oob_tcp_if_include": MpiSetting("oob_tcp_if_include", "eth3", variable="OMPI_MCA_oob_tcp_if_include"),
        "btl_tcp_if_exclude": MpiSetting("btl_tcp_if_exclude", "lo,docker0", file=DEBIAN),
    }
    assert found["btl_tcp_if_exclude"].described == f"btl_tcp_if_exclude=lo,docker0 (in {DEBIAN})"


def test_the_file_of_another_installation_does_not_count(answered: Answered) -> None:
    assert settings(evidence(answered, system={OTHER: "btl_tcp_if_include = docker0\n"})) == {}


def test_nothing_is_set_where_there_are_no_files(answered: Answered) -> None:
    assert settings(evidence(answered)) == {}


@pytest.mark.parametrize(
    "reply", [Reply(Status.DENIED), Reply(Status.TIMEOUT), Reply(Status.OK, value="", truncated=True)]
)
def test_a_file_that_could_not_be_read_is_not_no_file(answered: Answered, reply: Reply) -> None:
    assert isinstance(mpi_settings(evidence(answered, file=reply)), Unread)
