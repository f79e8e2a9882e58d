"""Metrics, as Prometheus reads them in both of its formats: node_exporter's textfile collector reads the older one."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from ncheck.model.report import BadNode, GpuAlone, GpuFigure, Report
from ncheck.model.system import Hardware
from ncheck.report import show
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from . import measurements
from .test_html import HOSTILE, evil

Key = tuple[str, tuple[tuple[str, str], ...]]


def read(report: Report) -> dict[Key, float]:
    """Read the text in both formats; each sample is there once, a gauge without a time stamp."""
    stream = io.StringIO()
    assert show(report, "openmetrics", stream, {}) == report.exit_code
    found: list[dict[Key, float]] = []
    for parser in (openmetrics, prometheus):
        families = list(parser(stream.getvalue()))
        samples = [sample for family in families for sample in family.samples]
        assert {family.type for family in families} == {"gauge"}
        assert {sample.timestamp for sample in samples} == {None}
        values = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}
        assert len(values) == len(samples)
        found.append(values)
    assert found[0] == found[1]
    return found[0]


def value(report: Report, name: str, **labels: str) -> float:
    return read(report)[name, tuple(sorted(labels.items()))]


def test_the_heartbeat_is_when_the_run_began(reports: dict[str, Report]) -> None:
    report = replace(reports["healthy"], time="2026-11-22T14:04:05+01:00")
    assert value(report, "ncheck_run_timestamp_seconds") == 1795352645
    assert value(report, "ncheck_run_duration_seconds") == 3.24


@pytest.mark.parametrize(("name", "state"), [
    ("healthy", "clean"), ("mixed_nccl", "not_ready"), ("one_down", "not_ready"), ("all_unknown", "not_verified"),
    ("hostile", "warnings"),
])  # fmt: skip
def test_one_state_is_set(name: str, state: str, reports: dict[str, Report]) -> None:
    states = ("clean", "warnings", "not_verified", "not_ready")
    assert {one for one in states if value(reports[name], "ncheck_state", state=one)} == {state}


def test_nodes_findings_and_verdicts_are_counted(reports: dict[str, Report]) -> None:
    report = replace(reports["one_down"], bad=(BadNode("node04", "not reached: filtered", ("NC112",), reached=False),))
    assert [value(report, "ncheck_node_reached", node=node) for node in ("node01", "node04")] == [1, 0]
    assert [value(report, "ncheck_node_good", node=node) for node in ("node01", "node04")] == [1, 0]
    assert value(report, "ncheck_node_verdicts", node="node04", outcome="not_run") == 6
    assert value(report, "ncheck_node_verdicts", node="node04", outcome="unknown") == 0
    assert [value(report, "ncheck_findings", severity=word) for word in ("error", "consequence")] == [1, 1]
    finding = {"code": "NC112", "check": "connection-filtered", "severity": "error", "node": "node04"}
    assert value(report, "ncheck_finding", **finding) == 1
    assert value(report, "ncheck_exit_code") == 1


def test_no_node_is_good_after_an_interrupt_or_when_left_out(reports: dict[str, Report]) -> None:
    stopped = replace(reports["healthy"], interrupted=True, exit_code=130)
    assert value(stopped, "ncheck_node_good", node="node01") == 0
    assert value(stopped, "ncheck_state", state="clean") == 0
    left = replace(reports["healthy"], dropped={"node09": "NC402"})
    assert (value(left, "ncheck_node_good", node="node09"), value(left, "ncheck_state", state="clean")) == (0, 0)


def test_a_run_of_some_checks_makes_no_node_good_and_no_cluster_clean(reports: dict[str, Report]) -> None:
    bad = BadNode("node02", "NC402 ib-port-polling: mlx5_3", ("NC402",))
    values = read(replace(reports["healthy"], select=("NC4",), bad=(bad,)))
    good = {labels: made for (name, labels), made in values.items() if name == "ncheck_node_good"}
    states = {dict(labels)["state"]: made for (name, labels), made in values.items() if name == "ncheck_state"}
    assert (good, values["ncheck_run_partial", ()]) == ({(("node", "node02"),): 0}, 1)
    assert states == {"clean": 0, "warnings": 0, "not_verified": 1, "not_ready": 0}
    assert value(replace(reports["mixed_nccl"], select=("NC2",)), "ncheck_state", state="not_ready") == 1
    assert value(reports["healthy"], "ncheck_run_partial") == 0


def test_bandwidth_is_in_bytes_per_second_and_a_failed_test_has_none(reports: dict[str, Report]) -> None:
    report = measurements.broken(reports["healthy"])
    failed = {"stage": "all", "what": "all-reduce on 4 nodes", "nodes": "gpu[01-04]", "by": "NCCL 2.21.5"}
    values = read(report)
    assert ("ncheck_bandwidth_bytes_per_second", tuple(sorted(failed.items()))) not in values
    assert value(report, "ncheck_bandwidth_standing", **failed, standing="failed") == 1
    assert value(report, "ncheck_bandwidth_expected_bytes_per_second", **failed) == 400e9
    inside = {**failed, "stage": "inside", "what": "all-reduce inside the node"}
    assert value(report, "ncheck_bandwidth_bytes_per_second", **inside) == 471e9
    assert value(report, "ncheck_bandwidth_spread_ratio", **inside) == 0.04
    assert ("ncheck_bandwidth_spread_ratio", tuple(sorted(failed.items()))) not in values


def test_other_operations_have_a_label_and_all_reduce_has_none(reports: dict[str, Report]) -> None:
    values = read(measurements.two_operations(reports["healthy"]))
    ops = {dict(labels).get("op") for name, labels in values if name == "ncheck_bandwidth_bytes_per_second"}
    assert ops == {None, "all-to-all"}
    swapped = {"stage": "all", "what": "all-to-all on 4 nodes", "nodes": "gpu[01-04]", "by": "NCCL 2.21.5",
               "op": "all-to-all"}  # fmt: skip
    assert values["ncheck_bandwidth_expected_bytes_per_second", tuple(sorted(swapped.items()))] == 54.9e9


def test_what_a_node_wrote_ends_no_label(reports: dict[str, Report]) -> None:
    carried_by = {dict(labels)["by"] for name, labels in read(evil(reports["healthy"])) if "bandwidth" in name}
    assert carried_by == {"NCCL 2.21.5", HOSTILE.replace("\u202e", "?")}
    read(reports["hostile"])


def test_error_counters_and_figures_of_gpus_are_there_once_each_and_bounded(reports: dict[str, Report]) -> None:
    counters = {"mlx5_0:1 symbol_error": 7, "a\x1b[1mb": 1, "ab": 2, **{f"c{n}": 9 for n in range(1000)}}
    figures = (GpuFigure("fp16", 812.5, "TFLOP/s", 900.0), GpuFigure("memory", 3000, "GB/s"))
    report = replace(
        reports["healthy"],
        hardware=(Hardware("node01", counters=dict(list(counters.items())[:4])), Hardware("node02", counters=counters)),
        gpus_alone=(GpuAlone("node01", "0000:5d:00.0", "GPU-1", "H100", figures),),
    )
    values = read(report)
    assert value(report, "ncheck_node_errors", node="node01", counter="mlx5_0:1 symbol_error") == 7
    assert sum(name == "ncheck_node_errors" for name, _ in values) == 3 + 64
    labels = {"node": "node01", "pci": "0000:5d:00.0", "uuid": "GPU-1", "what": "fp16", "unit": "TFLOP/s"}
    assert value(report, "ncheck_gpu_figure", **labels) == 812.5
    assert sum(name == "ncheck_gpu_figure" for name, _ in values) == 2
