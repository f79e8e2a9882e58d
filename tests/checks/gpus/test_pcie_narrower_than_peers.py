"""NC531: a GPU or HCA with fewer lanes than on other nodes is a warning; idle GPUs and equal nodes are none."""

from __future__ import annotations

from ncheck.facts.pcie import PcieLink
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.pcie_narrower_than_peers import pcie_narrower_than_peers

from .links import FULL, HALF, IDLE, SLOW, node


def test_a_gpu_with_half_of_the_lanes_is_named() -> None:
    line = "GPU 0000:10:00.0: x8 of x16"
    nodes = {"n1": node(FULL, FULL), "n2": node(FULL, IDLE), "n3": node(FULL, HALF)}
    assert judge([pcie_narrower_than_peers], nodes).findings == [
        Finding("NC531", "pcie-narrower-than-peers", Severity.WARNING, ("n3",),
                f"fewer PCIe lanes or a lower PCIe speed than on other nodes: {line}", (line,), "sudo lspci -vv",
                kind="look", summary="a PCIe link is narrower than elsewhere"),
    ]  # fmt: skip


def test_an_hca_is_judged_by_lanes_and_speed() -> None:
    nodes = {
        "n1": node(FULL, hcas=(FULL, FULL)),
        "n2": node(FULL, hcas=(FULL, FULL)),
        "n3": node(FULL, hcas=(FULL, SLOW)),
    }
    assert [one.evidence for one in judge([pcie_narrower_than_peers], nodes).findings] == [
        ("HCA mlx5_1: x16 of x16, 16 of 32 GT/s",)
    ]


def test_nodes_that_are_alike_are_fine_whatever_they_have_and_at_whatever_address() -> None:
    nodes = {"n1": node(FULL, HALF), "n2": node(HALF, FULL, first=0x40), "n3": node(FULL, HALF)}
    assert judge([pcie_narrower_than_peers], nodes).findings == []


def test_a_tie_another_number_of_gpus_and_links_that_are_not_shown_blame_nobody() -> None:
    assert judge([pcie_narrower_than_peers], {"n1": node(FULL), "n2": node(HALF)}).findings == []
    more = {"n1": node(FULL, FULL), "n2": node(FULL, FULL), "n3": node(HALF)}
    assert judge([pcie_narrower_than_peers], more).findings == []
    virtual = {"n1": node(FULL), "n2": node(FULL), "n3": node(PcieLink(None, None, None, None))}
    assert judge([pcie_narrower_than_peers], virtual).findings == []
