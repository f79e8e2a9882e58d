"""Who is told while a run goes on: a live table, plain lines, or nobody."""

from __future__ import annotations

from typing import Protocol

from ncheck.model.evidence import Login
from ncheck.model.finding import Finding
from ncheck.model.node import Node


class Observer(Protocol):
    """Called from many threads; each call must be quick and must not raise."""

    def started(self, nodes: tuple[Node, ...]) -> None:
        """Hear that the inventory was read and connecting begins."""

    def stage(self, node: str, stage: str) -> None:
        """Hear that a node went on: connecting, logged in, collecting, asking its peers, done."""

    def login_failed(self, node: str, login: Login) -> None:
        """Show at once, long before the report, that a node could not be used."""

    def judged(self, findings: tuple[Finding, ...]) -> None:
        """Hear what the checks found; something slow may follow."""

    def finished(self) -> None:
        """Give the terminal back: nothing more comes."""


class Silent:
    """An observer that says nothing."""

    def started(self, nodes: tuple[Node, ...]) -> None: ...
    def stage(self, node: str, stage: str) -> None: ...
    def login_failed(self, node: str, login: Login) -> None: ...
    def judged(self, findings: tuple[Finding, ...]) -> None: ...
    def finished(self) -> None: ...
