"""What one node is needed for, what is known of it so far, and why its session went no further."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from doctor.model.evidence import Cause, Evidence, Login, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from doctor.model.evidence import Greeting, JsonValue
    from doctor.model.node import Node


class SessionEndedError(Exception):
    """The session cannot go on; what was collected stays. `reached`: a shell answered before."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause, self.detail = cause, detail


@dataclass
class Known:
    """What is known of one node so far. The session adds to it as things come, so that nothing is lost by a cut."""

    node: Node
    login: Login | None = None
    greeting: Greeting | None = None
    replies: dict[str, Reply] = field(default_factory=dict)
    clock: tuple[float, float] | None = None

    def evidence(self) -> Evidence:
        offset, uncertainty = self.clock or (None, None)
        login = self.login or Login(reached=False, cause=Cause.DEADLINE, detail="its turn never came")
        return Evidence(
            self.node.name, login, self.greeting, dict(self.replies), offset, uncertainty,
            self.node.places, self.node.slots,
        )  # fmt: skip

    def fail(self, cause: Cause, detail: str, *, fix: str = "") -> None:
        """Note why it went no further. The first cause stands: what follows from it explains less."""
        login = self.login or Login(reached=False)
        if login.cause is None:
            self.login = replace(login, cause=cause, detail=detail, fix=fix or login.fix)


@dataclass(frozen=True)
class Wanted:
    """What one node is needed for, and within what. Times are in seconds; `deadline` is by time.monotonic().

    `agent` tells whether one is needed at all: the shell's greeting costs the node no python.
    """

    nonce: str
    deadline: float
    agent: bool = True
    connect_timeout: float = 15.0
    command_timeout: float = 10.0
    sudo: bool = False
    enter: str | None = None
    environment: Mapping[str, JsonValue] = field(default_factory=dict)  # python, setup, active, avoid: agent/job.py
