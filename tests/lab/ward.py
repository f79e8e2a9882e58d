"""A ward: one lab in which each node but the first and the last ones has a fault, all seen by one run of ncheck.

A fault is one row of a table. Faults that have no code in common may share a node: each node costs a run as much as a
fault of its own. Faults that disturb other nodes need a lab of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.skips import cannot

from . import faults, hosts
from .command import Run, begin, listing
from .conftest import why_not
from .hosts import Lab
from .layers import ROOT, User
from .node import Node
from .promises import HANGS, PATIENT, SLACK, nothing_left
from .wiring import ONE_NIC, Wiring

# What only pairs of nodes show, by a login from each to each other one: 132 logins among 12 nodes.
BETWEEN_NODES = ("NC131", "NC132")


@dataclass(frozen=True)
class Row:
    """One fault, made on one node. `codes` are all that fail there: "NC604 NC606", or none.

    `says`: words of the finding of the first code. What `hurt` returns is entered, if it is a context manager, for as
    long as the ward is open; `during` makes what lasts for a run alone. `unknown`: codes that cannot be told there.
    `beside`: the fault of an earlier row, on whose node this one is made, too.
    """

    fault: str
    codes: str
    hurt: Callable[[Lab, Node], object]
    says: str = ""
    during: Callable[[Node], AbstractContextManager[None]] | None = None
    unknown: str = ""
    beside: str = ""

    @property
    def failing(self) -> set[str]:
        return set(self.codes.split())


def on(hurt: Callable[..., object], *words: object) -> Callable[[Lab, Node], object]:
    """Return what makes a fault of a node that needs to know nothing of its lab."""
    return lambda _, node: hurt(node, *words)


def nothing(_lab: Lab, _node: Node) -> None:
    """Make no fault before the run."""


def sh(script: str) -> Callable[[Lab, Node], object]:
    """Return what makes a fault by a shell script on the node."""
    return lambda _, node: node.sh(script)


def bashrc(line: str) -> Callable[[Lab, Node], object]:
    """Return what makes a fault by a line of ~/.bashrc."""
    return on(faults.start_up_file, line)


@dataclass(frozen=True)
class Ward:
    """The lab, with the fault of each row made."""

    lab: Lab
    rows: Sequence[Row]

    def node(self, fault: str) -> Node:
        (row,) = (row for row in self.rows if row.fault == fault)
        return self.lab.nodes[1 + beds(self.rows).index(row.beside or fault)]

    def name(self, row: Row) -> str:
        return self.node(row.fault).name

    def beside(self, row: Row) -> list[Row]:
        """Return the rows of the node of this one, itself among them."""
        return [other for other in self.rows if (other.beside or other.fault) == (row.beside or row.fault)]

    def failing_beside(self, row: Row) -> set[str]:
        """Return the codes that should fail on the node of this row."""
        return {code for other in self.beside(row) for code in other.failing}

    def unknown_beside(self, row: Row) -> set[str]:
        """Return the codes that should be unknown on the node of this row."""
        return {code for other in self.beside(row) for code in other.unknown.split()}

    @property
    def whole(self) -> tuple[str, ...]:
        """The nodes without a fault."""
        return self.lab.names[0], *self.lab.names[len(beds(self.rows)) + 1 :]

    def examined(self, *argv: str, waits: tuple[str, ...] = PATIENT, user: User = ROOT) -> Run:
        """Run ncheck over all nodes, to the promises of each run."""
        listing(self.lab, self.lab.names, user)
        with nothing_left(self.lab), ExitStack() as stack:
            for row in self.rows:
                if row.during:
                    stack.enter_context(row.during(self.node(row.fault)))
            run = begin(self.lab, "nodes.txt", "-o", "json", *waits, *argv, user=user).wait(HANGS)
        assert run.report["seconds"] <= float(waits[-1]) + SLACK
        return run

    @property
    def failing(self) -> dict[str, set[str]]:
        """The codes that should fail, with the nodes where they should."""
        codes = set().union(*(row.failing for row in self.rows))
        return {code: {self.name(row) for row in self.rows if code in row.failing} for code in codes}


def beds(rows: Sequence[Row]) -> list[str]:
    """Return the faults that have a node of their own, or were there first."""
    return [row.fault for row in rows if not row.beside]


@contextmanager
def ward(
    rows: Sequence[Row], wiring: Wiring = ONE_NIC, whole: int = 2, prepare: Callable[[Ward], object] = id
) -> Iterator[Ward]:
    """Run such a lab, with so many nodes without a fault; it may be prepared before the faults are made."""
    if why := why_not():
        cannot(why)
    with hosts.lab(len(beds(rows)) + whole, wiring) as lab, ExitStack() as stack:
        made = Ward(lab, rows)
        codes = [(made.name(row), code) for row in rows for code in row.failing]
        assert len(codes) == len(set(codes)), "two faults of one node have a code in common"
        prepare(made)
        for row in rows:
            effect = row.hurt(lab, made.node(row.fault))
            if isinstance(effect, AbstractContextManager):
                stack.enter_context(effect)
        yield made


def selected(healthy: Run, *but: str) -> tuple[str, str]:
    """Return the option for all checks but some."""
    return "--select", ",".join(sorted({code for code, _ in healthy.verdicts()} - set(but)))


def findings(run: Run, node: str) -> list[dict[str, Any]]:
    """Return the findings that name this node."""
    return [finding for finding in run.report["findings"] if node in finding["nodes"]]


def hold(ward: Ward, run: Run, row: Row) -> str:
    """Hold a node to its rows: their codes fail there and no other, and in the words of this one. Return its name."""
    node = ward.name(row)
    failed = {code for code, nodes in run.failed().items() if node in nodes}
    reasons = {code: text for code, text in run.not_passed(node).items() if not text.startswith("skipped")}
    assert failed == ward.failing_beside(row), reasons
    found = findings(run, node)
    assert row.failing <= {finding["code"] for finding in found}, found
    if row.says:
        assert [one for one in found if one["code"] in row.codes.split()[:1] and row.says in one["message"]], found
    return node


def changed(run: Run, healthy: Run, node: str) -> dict[str, tuple[str, str]]:
    """Map the codes of a node to their outcomes on a healthy one and here, where these differ."""
    usual = {code: outcome for (code, _), outcome in healthy.verdicts().items()}
    told = {code: outcome for (code, _), outcome in run.verdicts(node).items() if code != "NC140"}
    return {code: (usual[code], outcome) for code, outcome in told.items() if outcome != usual[code]}


def hold_whole(ward: Ward, run: Run, healthy: Run) -> None:
    """Hold the nodes without a fault to what the healthy lab is, in all that was asked."""
    assert {node: changed(run, healthy, node) for node in ward.whole} == {node: {} for node in ward.whole}
