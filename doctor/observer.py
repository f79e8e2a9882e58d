"""Who is told while a run goes on: a live table, plain lines, or nobody."""

from __future__ import annotations

from typing import Protocol

from doctor.model.evidence import Login
from doctor.model.finding import Finding
from doctor.model.node import Node


class Observer(Protocol):
    """Called from many threads; each call must be quick and must not raise."""

    def started(self, nodes: tuple[Node, ...]) -> None:
        """The inventory was read; connecting begins."""

    def stage(self, node: str, stage: str) -> None:
        """A node went on to another stage: connecting, logged in, collecting, asking its peers, done."""

    def login_failed(self, node: str, login: Login) -> None:
        """A node could not be used: shown at once, long before the report."""

    def judged(self, findings: tuple[Finding, ...]) -> None:
        """The checks have spoken; something slow may follow."""

    def finished(self) -> None:
        """Nothing more comes; give the terminal back."""


class Silent:
    """An observer that says nothing."""

    def started(self, nodes: tuple[Node, ...]) -> None: ...
    def stage(self, node: str, stage: str) -> None: ...
    def login_failed(self, node: str, login: Login) -> None: ...
    def judged(self, findings: tuple[Finding, ...]) -> None: ...
    def finished(self) -> None: ...
