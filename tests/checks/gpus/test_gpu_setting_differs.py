"""NC525: a setting that most nodes have otherwise is a warning; a common default is none."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
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


def test_a_lower_power_limit_and_a_lower_clock_are_named_with_the_line_that_undoes_them() -> None:
    odd = {"n4": node(*(h100(at, power_limit=500000, application_clocks=(1200, 2619)) for at in (0, 1)))}
    assert [(one.message, one.fix, one.kind) for one in judge([gpu_setting_differs], {**USUAL, **odd}).findings] == [
        ("the power limit differs: 700 W on n[1-3], 500 W on n4 (3 to 1); the default is 700 W",
         "sudo nvidia-smi -pl 700", "fix"),
        ("the application clock (cores/memory) differs: 1980/2619 MHz on n[1-3], 1200/2619 MHz on n4 (3 to 1)",
         "sudo nvidia-smi -ac 2619,1980", "fix"),
    ]  # fmt: skip


def test_firmware_is_for_information_and_has_no_line_that_changes_it() -> None:
    odd = {"n4": node(*(h100(at, vbios="96.00.5E.00.01", inforom="G520.0200.00.03") for at in (0, 1)))}
    findings = judge([gpu_setting_differs], {**USUAL, **odd}).findings
    assert [(one.severity, one.message, one.fix, one.kind) for one in findings] == [
        (Severity.INFO, "the VBIOS differs: 96.00.74.00.01 on n[1-3], 96.00.5E.00.01 on n4 (3 to 1)",
         "nvidia-smi -q", "look"),
        (Severity.INFO, "the InfoROM differs: G520.0200.00.05 on n[1-3], G520.0200.00.03 on n4 (3 to 1)",
         "nvidia-smi -q", "look"),
    ]  # fmt: skip
    board = {name: node(h100(0), h100(1, vbios="96.00.74.00.02")) for name in ("n1", "n2")}  # one for each place
    assert judge([gpu_setting_differs], board).findings == []


def test_what_most_have_is_no_fix_where_programs_could_not_use_it() -> None:
    usual = {name: node(h100(0, compute_mode=2)) for name in ("n1", "n2")}
    (finding,) = judge([gpu_setting_differs], {**usual, "n3": node(h100(0))}).findings
    assert (finding.nodes, finding.fix, finding.kind) == (("n3",), "nvidia-smi -q", "look")


def test_a_default_that_all_nodes_share_is_no_finding() -> None:
    off = node(h100(0, persistence=0, ecc_mode=0, compute_mode=3, power_limit=400000, application_clocks=(1200, 2619)))
    assert judge([gpu_setting_differs], {"n1": off, "n2": off}).findings == []
    assert judge([gpu_setting_differs], {**HEALTHY, "mig": node(MIG)}).findings == []
    assert judge([gpu_setting_differs], {"v1": node(VGPU), "v2": node(VGPU), "c": node(CONSUMER)}).findings == []


def test_two_models_in_a_node_may_differ() -> None:
    other = {"ecc_mode": 0, "persistence": 0, "power_limit": 300000, "max_clocks": (2100, 8001), "vbios": "94.02.5C"}
    workstation = node(h100(0), h100(1, name="NVIDIA RTX A6000", **other))
    assert judge([gpu_setting_differs], {"n1": workstation}).findings == []


def test_a_setting_that_could_not_be_read_is_unknown() -> None:
    nodes = {"n1": node(h100(0, ecc_mode=None, errors={"ecc_mode": Failure(14, "infoROM is corrupted")}))}
    assert [one.outcome for one in judge([gpu_setting_differs], nodes).verdicts] == [Outcome.UNKNOWN]
