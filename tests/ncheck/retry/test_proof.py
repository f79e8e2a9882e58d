"""A node is proved to be at fault by its own hardware, because nobody reaches it, or by its pairs; by nothing less."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.model.report import BadNode, NodeSummary, Pair, Probe, Report, Standing, no_report
from ncheck.retry.plan import Proof, Prove
from ncheck.retry.proof import proof_of

ASKED = Prove("n7", ("n1", "n2"))
BROKEN = BadNode("n7", "NC501 gpu-memory-broken: row remapping failed", ("NC501",), proved=True)
BLOCKED = BadNode("n7", "NC311 blocked: TCP to n7 is refused", ("NC311",))
LOST = BadNode("n7", "not reached: timeout", (), reached=False)


def run(pairs: str = "", *bad: BadNode, lost: bool = False) -> Report:
    """Return the report of a run: "n7-n1 failed, n1-n2"; without pairs nothing was measured."""
    measured = []
    for text in filter(None, pairs.split(", ")):
        names, _, failed = text.partition(" ")
        one, _, other = names.partition("-")
        standing = Standing.FAILED if failed else Standing.UNKNOWN
        measured.append(Pair((one, other), None if failed else 1.0, standing))
    nodes = tuple(NodeSummary(name, reached=not (lost and name == "n7")) for name in ("n7", "n1", "n2"))
    probe = Probe(bool(measured), "tcp" if measured else "GPUs are in use", pairs=tuple(measured))
    return replace(no_report(""), nodes=nodes, bad=bad, probe=probe)


@pytest.mark.parametrize(("report", "proved", "reason"), [
    (run("n7-n1 failed, n7-n2 failed, n1-n2"), True, "n7 fails with n[1-2], which pass together"),
    (run("n7-n1 failed, n7-n2 failed, n1-n2", BLOCKED), True, "n7 fails with n[1-2], which pass together"),
    (run("n7-n1 failed, n7-n2 failed, n1-n2", replace(BLOCKED, proved=True)), True,
     "n7 fails with n[1-2], which pass together"),
    (run("", BROKEN), True, "n7 is at fault: NC501 gpu-memory-broken: row remapping failed"),
    (run("n7-n1, n7-n2, n1-n2", BROKEN), True, "n7 is at fault: NC501 gpu-memory-broken: row remapping failed"),
    (run("n1-n2", replace(LOST, proved=True), lost=True), True,
     "n7 is at fault: neither this machine nor another node reaches it (not reached: timeout)"),
    # no proof
    (run("n7-n1, n7-n2, n1-n2"), False, "n7 passes with n[1-2]"),
    (run("n7-n1 failed, n7-n1, n7-n2 failed, n7-n2, n1-n2"), False, "n7 passes with n[1-2]"),
    (run("n7-n1 failed, n7-n2 failed, n1-n2 failed"), False,
     "n[1-2] fail together, too: the network or the software of all nodes is at fault"),
    (run("n7-n1 failed, n7-n2, n1-n2"), False, "n7 fails with n1 alone, and passes with n2"),
    (run("n7-n1 failed, n1-n2"), False, "n7 is not proved to be at fault: it was measured with n1 alone"),
    (run("n1-n2", LOST, lost=True), False, "n7 is not proved to be at fault: not reached: timeout"),
    (run("", BROKEN, replace(BROKEN, node="n1")), False,
     "n7 is not proved to be at fault: n1 has this fault, too: NC501 gpu-memory-broken: row remapping failed"),
    (run("", BLOCKED), False, "n7 is not proved to be at fault: NC311 blocked: TCP to n7 is refused"),
    (run(), False, "n7 is not proved to be at fault: no bandwidth was measured: GPUs are in use"),
])  # fmt: skip
def test_only_what_is_the_nodes_own_is_a_proof(report: Report, *, proved: bool, reason: str) -> None:
    assert proof_of(report, ASKED) == Proof(proved, reason)
