"""NC405: a card that is missing on one node of a kind is named, and a node of any kind that has none."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.ib_port_count_differs import ib_port_count_differs


def node(count: int, model: str = "NVIDIA H100 80GB HBM3") -> Facts:
    ports = tuple(HcaPort(f"mlx5_{i}", 1, "Active", "LinkUp", 400.0, "InfiniBand") for i in range(count))
    found = InfinibandFacts(ports, "sysfs") if ports else Absent("/sys/class/infiniband: not there")
    gpus = GpuFacts((Gpu(0, model),), "550.54", "12.4", "nvml")
    return {InfinibandFacts: found, GpuFacts: gpus, LibraryFacts: LibraryFacts("", NO_HCA)}


def test_a_node_with_fewer_ports_is_named() -> None:
    assert judge([ib_port_count_differs], {"n1": node(8), "n2": node(8), "n3": node(7)}).findings == [
        Finding("NC405", "ib-port-count-differs", Severity.ERROR, ("n3",),
                "HCA ports differ: 8 x InfiniBand on n[1-2], 7 x InfiniBand on n3 (2 to 1)", (), "lspci -d 15b3:",
                kind="look", summary="HCA ports differ"),
    ]  # fmt: skip


def test_a_node_without_any_fails_where_others_have_some_of_whatever_gpu_model() -> None:
    judgement = judge([ib_port_count_differs], {"n1": node(8), "n2": node(0, "Tesla T4")})
    assert [(found.nodes, found.message) for found in judgement.findings] == [
        (("n2",), "/sys/class/infiniband: not there, and n1 has it"),
    ]


def test_a_node_whose_only_ports_are_of_roce_that_no_job_can_use_has_none() -> None:
    facts = node(8)
    wire = InfinibandFacts((HcaPort("irdma0", 1, "Active", "LinkUp", 25.0, "Ethernet"),), "sysfs")
    ill = {**facts, InfinibandFacts: wire, LibraryFacts: LibraryFacts("libibverbs.so.1: no such file", NO_HCA)}
    assert [
        found.message for found in judge([ib_port_count_differs], {"n1": facts, "n2": facts, "n3": ill}).findings
    ] == [
        "HCA ports differ: 8 x InfiniBand on n[1-2], no port on n3 (2 to 1)",
    ]


def test_it_is_silent_where_each_gpu_model_has_its_own_count() -> None:
    nodes = {"n1": node(8), "n2": node(8), "n3": node(1, "Tesla T4"), "n4": node(1, "Tesla T4")}
    assert judge([ib_port_count_differs], nodes).findings == []


def test_it_is_silent_and_skipped_where_no_node_has_infiniband() -> None:
    judgement = judge([ib_port_count_differs], {"n1": node(0), "n2": node(0)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED, Outcome.SKIPPED]


def test_it_is_silent_about_a_card_for_storage_that_few_nodes_have() -> None:
    facts = InfinibandFacts(
        (
            *(HcaPort(f"mlx5_{i}", 1, "Active", "LinkUp", 400.0, "InfiniBand") for i in range(8)),
            HcaPort("mlx5_8", 1, "Active", "LinkUp", 200.0, "InfiniBand", hca_type="MT4123"),
        ),
        "sysfs",
    )
    storage = {**node(8), InfinibandFacts: facts}
    assert judge([ib_port_count_differs], {"n1": node(8), "n2": node(8), "n3": storage}).findings == []
