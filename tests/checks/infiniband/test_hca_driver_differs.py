"""NC419: another release of OFED, or the kernel's own driver."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.hcas import HcaModuleFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.hca_driver_differs import hca_driver_differs

from .fabric import PASSED, outcomes

CPUS: Facts = {GpuFacts: Absent("no NVIDIA GPU")}
OFED: Facts = {**CPUS, HcaModuleFacts: HcaModuleFacts({"mlx5_core": "23.10-1.1.9"})}
OWN: Facts = {**CPUS, HcaModuleFacts: HcaModuleFacts({"mlx5_core": ""})}
NONE: Facts = {**CPUS, HcaModuleFacts: HcaModuleFacts({})}


def test_a_node_that_lost_ofed_s_driver_is_named() -> None:
    assert judge([hca_driver_differs], {"n1": OFED, "n2": OFED, "n3": OWN}).findings == [
        Finding("NC419", "hca-driver-differs", Severity.WARNING, ("n3",),
                "the driver mlx5_core differs: 23.10-1.1.9 on n[1-2], the kernel's own on n3 (2 to 1)", (),
                "modinfo mlx5_core", kind="look", summary="the driver mlx5_core differs"),
    ]  # fmt: skip


def test_it_is_silent_where_all_are_alike_and_about_nodes_without_the_driver() -> None:
    assert outcomes(judge, hca_driver_differs, OWN, OWN, NONE) == [PASSED, PASSED, PASSED]
