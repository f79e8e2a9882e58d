"""NC756: PCIe links, read while the GPU is busy."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.measured.pcie_narrow_under_load import pcie_narrow_under_load

from .tested_gpus import LOOK, gpu, nodes

NARROW = replace(LOOK, width=8)
IDLE = replace(LOOK, generation=1)


def test_a_link_that_has_fewer_lanes_than_the_others_is_named() -> None:
    (found,) = judge([pcie_narrow_under_load], nodes(n1=(gpu(0), gpu(1, looks=(NARROW,))))).findings
    assert (found.nodes, found.fix) == (("n1",), "sudo lspci -vv -d 10de:")
    runs = "x8 of generation 4; it can do x16 of generation 4"
    assert found.message == f"under load, the PCIe link of 0000:01:00.0 of n1 runs at {runs}"
    assert found.evidence == (f"0000:01:00.0: {runs}",)


def test_several_links_are_one_finding_with_each_link_in_the_evidence() -> None:
    narrow = (gpu(1, looks=(NARROW,)), gpu(2, looks=(NARROW,)), gpu(3, looks=(replace(LOOK, width=4),)))
    (found,) = judge([pcie_narrow_under_load], nodes(n1=(gpu(0), *narrow), n2=(gpu(0),))).findings
    links = "0000:01:00.0, 0000:02:00.0, 0000:03:00.0"
    assert found.message == f"under load, the PCIe links of {links} of n1 run at less than they can do"
    assert [line.partition("; ")[0] for line in found.evidence] == [
        "0000:01:00.0: x8 of generation 4", "0000:02:00.0: x8 of generation 4", "0000:03:00.0: x4 of generation 4",
    ]  # fmt: skip


def test_a_look_before_the_link_woke_up_does_not_count() -> None:
    assert judge([pcie_narrow_under_load], nodes(n1=(gpu(0), gpu(1, looks=(IDLE, LOOK))))).findings == []


def test_boards_that_are_wired_so_are_no_finding() -> None:
    both = tuple(gpu(index, looks=(NARROW,)) for index in range(2))
    assert judge([pcie_narrow_under_load], nodes(n1=both)).findings == []


def test_without_nvml_it_is_unknown() -> None:
    unseen = gpu(0, looks=(), unwatched="NVML Shared Library Not Found")
    assert [one.outcome for one in judge([pcie_narrow_under_load], nodes(n1=(unseen,))).verdicts] == [Outcome.UNKNOWN]
