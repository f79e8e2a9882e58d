"""Observers of a running examination: a live table, plain lines, or nothing."""

from __future__ import annotations

from typing import Protocol

from ncheck.model.evidence import Login
from ncheck.model.finding import Finding
from ncheck.model.node import Node


class Observer(Protocol):
    """Called from many threads; each call must return quickly and must not raise."""

    def started(self, nodes: tuple[Node, ...]) -> None:
        """Note that the inventory was read; connecting begins."""

    def stage(self, node: str, stage: str, *, slow: bool = False) -> None:
        """Note that a node entered a stage, such as connecting, logged in, collecting, done; slow: it takes seconds."""

    def not_recorded(self, node: str, why: str) -> None:
        """Note that the answers of a node could not be saved."""

    def login_failed(self, node: str, login: Login) -> None:
        """Show at once, long before the report, that a node could not be used."""

    def judged(self, findings: tuple[Finding, ...]) -> None:
        """Note the findings of the checks; a slow bandwidth test may follow."""

    def finished(self) -> None:
        """Restore the terminal at the end of the run."""


class Silent:
    """An observer that prints nothing."""

    def started(self, nodes: tuple[Node, ...]) -> None: ...
    def stage(self, node: str, stage: str, *, slow: bool = False) -> None: ...
    def not_recorded(self, node: str, why: str) -> None: ...
    def login_failed(self, node: str, login: Login) -> None: ...
    def judged(self, findings: tuple[Finding, ...]) -> None: ...
    def finished(self) -> None: ...
