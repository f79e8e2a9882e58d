"""A node that is only slow: nothing of it is called a fault, and what is slow is said once."""

from __future__ import annotations

from . import faults
from .command import Run, ncheck
from .hosts import Lab
from .promises import HANGS, others_whole

SLOW = 6  # seconds, of the ten that a command may take


def test_a_python_that_is_slow_to_start_is_information_and_what_it_prints_costs_nothing(lab: Lab, healthy: Run) -> None:
    node = lab.nodes[1]
    for each in lab.nodes[:2]:  # one path for all: another interpreter on one node is a warning of its own
        slow = f"sleep {SLOW}; " if each is node else ""
        faults.program(each, "python3", f"echo '*** Welcome to Python ***'; {slow}exec /usr/bin/python3 \"$@\"")

    run = ncheck(lab, nodes=lab.names[:2], hard_limit=HANGS)

    assert run.failed() == {"NC138": {node.name}}, run.not_passed(node.name)
    assert [finding["severity"] for finding in run.report["findings"]] == ["info"]
    assert run.unknown(node.name) == set()
    assert run.exit_code == 0
    others_whole(run, healthy, node.name, *lab.names[2:])
