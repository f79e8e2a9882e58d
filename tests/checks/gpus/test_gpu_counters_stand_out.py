"""NC548: a GPU or NVLink with far more errors than all others is a warning; small numbers everywhere are normal."""

from __future__ import annotations

from typing import Any

from ncheck.facts.error_counters import ErrorCountersFacts
from ncheck.facts.gpu_health import Failure, GpuHealth, LinkCounters
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_counters_stand_out import gpu_counters_stand_out
from ncheck_checks.gpus.nvlink_errors import nvlink_errors

from .health import CONSUMER, h100, node

GPUS = 8


def started(*gpus: GpuHealth) -> dict[type, Any]:
    return {**node(*gpus), ErrorCountersFacts: ErrorCountersFacts(12 * 86400.0, {})}


def nodes(count: int, worst: GpuHealth | None = None, **usual: Any) -> dict[str, dict[type, Any]]:
    """Return nodes with eight GPUs; the worst takes its place on the last one."""
    gpus = [h100(index, **usual) for index in range(GPUS)]
    bad = [worst if worst and index == worst.index else gpu for index, gpu in enumerate(gpus)]
    return {f"n{number}": started(*gpus) for number in range(count - 1)} | {"last": started(*bad)}


def blackwell(index: int, links: dict[int, dict[str, int]] | None = None) -> GpuHealth:
    return h100(index, link_errors={}, counted=LinkCounters(18, 0, links or {}))


def test_a_link_that_recovered_505_times_where_5759_others_never_did_is_named() -> None:
    usual = {"link_errors": {}, "counted": LinkCounters(18)}
    found = judge([gpu_counters_stand_out], nodes(40, blackwell(3, {14: {"recoveries": 505, "symbol": 3}}), **usual))
    message = "NVLink 14 of GPU 3 counted 505 link recoveries in 12 days (42 per day); the median of 5759 others is 0"
    assert found.findings == [
        Finding(
            "NC548", "gpu-counters-stand-out", Severity.WARNING, ("last",), message, (),
            "nvidia-smi nvlink -e", kind="look", summary="NVLink 14 of GPU 3 has counted far more errors than others",
        )
    ]  # fmt: skip


def test_replays_stand_out_by_gpu() -> None:
    (pcie,) = judge([gpu_counters_stand_out], nodes(8, h100(5, pcie_replays=4000), pcie_replays=3)).findings
    assert pcie.message == "GPU 5 counted 4000 PCIe replays in 12 days (333 per day); the median of 63 others is 0.25"
    assert pcie.fix == "nvidia-smi -q | grep -E '^GPU|Replay'"
    (nvlink,) = judge([gpu_counters_stand_out], nodes(8, h100(5, link_errors={"data_crc": 90000}))).findings
    assert nvlink.summary == "GPU 5 has counted far more errors than others"


def test_what_all_count_and_few_are_normal() -> None:
    many = {index: {"crc": 900 + index, "replay": 800 - index} for index in range(18)}
    for healthy in (
        nodes(8, h100(5, pcie_replays=99)),
        nodes(8, h100(5, pcie_replays=4000), pcie_replays=1500),
        nodes(8, counted=LinkCounters(18, 0, many)),
        nodes(8, blackwell(3, {14: {"recoveries": 9, "lost": 60}}), counted=LinkCounters(18)),
    ):
        assert judge([gpu_counters_stand_out], healthy).findings == []


def test_gpus_of_another_model_are_not_compared_and_few_are_no_pass() -> None:
    other = {"other": started(*[CONSUMER] * 3)}
    judged = judge([gpu_counters_stand_out], {**nodes(8), **other})
    assert [one.nodes for one in judged.joined if one.outcome is Outcome.SKIPPED] == [("other",)]


def test_counters_that_could_not_be_read_are_unknown() -> None:
    judged = judge([gpu_counters_stand_out], nodes(8, h100(2, errors={"pcie_replays": Failure(999, "Unknown Error")})))
    assert [one.nodes for one in judged.joined if one.outcome is Outcome.UNKNOWN] == [("last",)]


def test_a_link_that_failed_is_the_cause() -> None:
    bad = blackwell(3, {14: {"recoveries": 505, "lost": 2}})
    checks = [nvlink_errors, gpu_counters_stand_out]
    lost, counted = judge(checks, nodes(8, bad, link_errors={}, counted=LinkCounters(18))).findings
    assert (counted.code, counted.see) == ("NC548", (lost.code,))
