"""What systemd says of the fabric manager and of IMEX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.fabric_manager import SERVICES, VERSION, FabricManagerFacts, fabric_manager
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Absent, Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

SHOWN = """Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=failed

Id=nvidia-imex.service
LoadState=not-found
ActiveState=inactive
"""


def test_the_state_of_each_service_is_read(answered: Answered) -> None:
    version = Reply(Status.OK, exit_status=0, stdout="Fabric Manager version is : 550.54.15\n")
    replies = {SERVICES: Reply(Status.OK, exit_status=0, stdout=SHOWN), VERSION: version}
    assert fabric_manager(answered(replies)) == FabricManagerFacts("failed", "not installed", "550.54.15")
    replies[VERSION] = Reply(Status.MISSING, reason="no nv-fabricmanager on PATH")
    assert fabric_manager(answered(replies)) == FabricManagerFacts("failed", "not installed", "")


@pytest.mark.parametrize("reply", [
    Reply(Status.MISSING, reason="no systemctl on PATH"),
    Reply(Status.OK, exit_status=1, stderr="System has not been booted with systemd as init system (PID 1)."),
])  # fmt: skip
def test_a_machine_without_systemd_has_no_services(answered: Answered, reply: Reply) -> None:
    assert isinstance(fabric_manager(answered({SERVICES: reply})), Absent)


@pytest.mark.parametrize("reply", [
    Reply(Status.TIMEOUT, seconds=10.0),
    Reply(Status.OK, exit_status=0, stdout=""),
    Reply(Status.OK, exit_status=0, stdout="Id=nvidia-imex.service\nActiveState=active\n"),
])  # fmt: skip
def test_what_names_no_service_is_unread(answered: Answered, reply: Reply) -> None:
    assert isinstance(fabric_manager(answered({SERVICES: reply})), Unread)
