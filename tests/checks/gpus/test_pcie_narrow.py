"""NC532: links with fewer lanes than they can have are told where no other node does better."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.pcie_narrow import pcie_narrow

from .links import FULL, HALF, IDLE, node


def test_nodes_that_are_wired_so_are_one_finding() -> None:
    line = "GPU 0000:10:00.0: x8 of x16"
    assert judge([pcie_narrow], {"n1": node(FULL, HALF), "n2": node(FULL, HALF)}).findings == [
        Finding("NC532", "pcie-narrow", Severity.INFO, ("n1", "n2"), f"fewer PCIe lanes than possible: {line}", (line,),
                "sudo lspci -vv", kind="look", summary="PCIe links with fewer lanes than possible"),
    ]  # fmt: skip


def test_it_leaves_nodes_that_are_worse_than_others_to_the_other_check() -> None:
    assert judge([pcie_narrow], {"n1": node(FULL), "n2": node(FULL), "n3": node(HALF)}).findings == []


def test_it_is_silent_on_full_links() -> None:
    assert judge([pcie_narrow], {"n1": node(FULL, IDLE), "n2": node(IDLE, FULL)}).findings == []
