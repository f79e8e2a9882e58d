"""NC525: a setting that most nodes have otherwise is a warning; a common default is none."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure
from ncheck.judge import judge
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.gpus.gpu_setting_differs import gpu_setting_differs

from .health import CONSUMER, HEALTHY, MIG, VGPU, h100, node

USUAL = {f"n{number}": node(h100(0), h100(1)) for number in range(1, 4)}


def test_a_node_without_persistence_mode_is_named_where_the_others_have_it() -> None:
    odd = {"n4": node(h100(0, persistence=0), h100(1, persistence=0))}
    assert judge([gpu_setting_differs], {**USUAL, **odd}).findings == [
        Finding("NC525", "gpu-setting-differs", Severity.WARNING, ("n4",),
                "persistence mode differs: enabled on n[1-3], disabled on n4 (3 to 1)", (), "sudo nvidia-smi -pm 1",
                summary="persistence mode of GPUs differs"),
    ]  # fmt: skip


def test_so_is_one_gpu_without_ecc_and_an_exclusive_compute_mode() -> None:
    odd = {"n4": node(h100(0), h100(1, ecc_mode=0, compute_mode=3))}
    assert [(one.message, one.fix) for one in judge([gpu_setting_differs], {**USUAL, **odd}).findings] == [
        ("ECC differs: enabled on n[1-3], disabled and enabled on n4 (3 to 1)", "sudo nvidia-smi -e 1"),
        ("the compute mode differs: default on n[1-3], default and exclusive process on n4 (3 to 1)",
         "sudo nvidia-smi -c DEFAULT"),
    ]  # fmt: skip


def test_gpus_of_one_node_are_compared_with_each_other() -> None:
    nodes = {"n1": node(h100(0), h100(1, ecc_mode=0))}
    assert [(one.message, one.kind) for one in judge([gpu_setting_differs], nodes).findings] == [
        ("ECC differs between the GPUs of n1: disabled and enabled", "look")
    ]


def test_a_default_that_all_nodes_share_is_no_finding() -> None:
    off = node(h100(0, persistence=0, ecc_mode=0, compute_mode=3))
    assert judge([gpu_setting_differs], {"n1": off, "n2": off}).findings == []
    assert judge([gpu_setting_differs], {**HEALTHY, "mig": node(MIG)}).findings == []
    assert judge([gpu_setting_differs], {"v1": node(VGPU), "v2": node(VGPU), "c": node(CONSUMER)}).findings == []


def test_two_models_in_a_node_may_differ() -> None:
    workstation = node(h100(0), h100(1, name="NVIDIA RTX A6000", ecc_mode=0, persistence=0))
    assert judge([gpu_setting_differs], {"n1": workstation}).findings == []


def test_a_setting_that_could_not_be_read_is_unknown() -> None:
    nodes = {"n1": node(h100(0, ecc_mode=None, errors={"ecc_mode": Failure(14, "infoROM is corrupted")}))}
    assert [one.outcome for one in judge([gpu_setting_differs], nodes).verdicts] == [Outcome.UNKNOWN]
