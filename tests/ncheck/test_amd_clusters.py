"""Clusters of MI300X, and such that mix them with H100: the same facts, and so the same checks, within each kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.facts.gpus import DEVICES, NVML, SMI, SMI_QUERY
from ncheck.facts.pci import PCI
from ncheck.facts.topology import NVLINKS, TOPO
from ncheck.fleet.recording import load
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.finding import Finding
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.settings import Settings

from tests.recorded.amd import BUSES, amd_replies

HEALTHY = load(Path(__file__).parents[2] / "fixtures" / "healthy-4x8-h100")
GPU_CHECKS = {"NC501", "NC502", "NC503", "NC504", "NC505", "NC560", "NC561"}


def of_amd(node: Evidence, **changed: object) -> Evidence:
    """Return the node with eight MI300X in the place of its H100s."""
    pci: JsonValue = {"left_out": 0, "devices": [
        {"address": f"0000:{bus}:00.0", "class": "0x120000", "vendor": "0x1002", "device": "0x74a1",
         "driver": "amdgpu", "numa": 0, "cpus": "0-95", "above": [], "virtual": False} for bus in BUSES
    ]}  # fmt: skip
    tree: JsonValue = {
        f"/sys/bus/pci/devices/0000:{bus}:00.0/{name}": text
        for bus in BUSES
        for name, text in (("vendor", "0x1002\n"), ("class", "0x120000\n"))
    }
    bare = {source.key: Reply(Status.MISSING, reason="not found") for source in (NVML, SMI, SMI_QUERY, TOPO, NVLINKS)}
    shown = {PCI.key: Reply(Status.OK, value=pci), DEVICES.key: Reply(Status.OK, value=tree)}
    return replace(node, replies={**node.replies, **bare, **shown, **amd_replies(**changed)})  # type: ignore[arg-type]


FOUR = tuple(map(of_amd, HEALTHY))


def judged(*nodes: Evidence) -> Report:
    return judge_again(nodes, Settings(), Silent())


def found(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.code in GPU_CHECKS]


def unknown(report: Report) -> set[tuple[str, str]]:
    found = (one for one in report.verdicts if one.code in GPU_CHECKS and one.outcome.value == "unknown")
    return {(one.code, node) for one in found for node in one.nodes}


def test_a_healthy_cluster_of_mi300x_is_fine() -> None:
    report = judged(*FOUR)
    assert (found(report), unknown(report)) == ([], set())
    system = report.systems[0]
    assert system.gpus
    assert (system.gpus.count, dict(system.gpus.models), system.gpus.driver) == (
        8,
        {"AMD Instinct MI300X": 8},
        "6.16.6",
    )
    assert system.topology == "8 GPUs, XGMI all to all"


@pytest.mark.slow
def test_a_node_that_lists_one_gpu_less_is_named_with_amds_command() -> None:
    (finding,) = (one for one in found(judged(*FOUR[:3], of_amd(HEALTHY[3], gpus=7))) if one.code == "NC501")
    assert finding.nodes == ("gpu04",)
    assert finding.fix == "amd-smi list"


def test_a_link_that_is_not_xgmi_is_named() -> None:
    (finding,) = found(judged(*FOUR[:3], of_amd(HEALTHY[3], links={(2, 3): "PCIE"})))
    assert (finding.code, finding.nodes, finding.fix) == ("NC504", ("gpu04",), "amd-smi topology")
    assert finding.evidence == ("GPU2 to GPU3: XGMI on gpu[01-03], PCIE on gpu04 (3 to 1)",)


def test_another_driver_is_named() -> None:
    (finding,) = found(judged(*FOUR[:3], of_amd(HEALTHY[3], driver="6.10.5", rocm="6.3.1")))
    assert (finding.code, finding.nodes, finding.fix) == ("NC503", ("gpu04",), "amd-smi version")
    assert finding.evidence == ("driver 6.16.6, ROCm 7.1.1-38 on gpu[01-03]", "driver 6.10.5, ROCm 6.3.1-38 on gpu04")


def test_a_mix_is_judged_within_its_kinds() -> None:
    report = judged(*HEALTHY[:2], *FOUR[2:])
    assert [finding.code for finding in found(report)] == ["NC502"]
    assert unknown(report) == set()


@pytest.mark.slow
@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.UNANSWERED, Status.FAILED])
def test_what_amds_tools_do_not_answer_is_missed(status: Status) -> None:
    lost = of_amd(HEALTHY[3])
    keys = [key for key in amd_replies() if key.startswith(("command:", "tree:"))]
    for key in keys:
        sick = replace(lost, replies={**lost.replies, key: Reply(status, reason="lost", seconds=10.0)})
        assert judged(*FOUR[:3], sick).exit_code == 1
