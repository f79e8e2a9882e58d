"""Clusters of AWS: EFA is no InfiniBand, ibstat does not list it, and NCCL reaches it by a plug-in alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.fleet.recording import load
from ncheck.model.evidence import Evidence
from ncheck.model.report import Report
from ncheck.model.system import SystemPort
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.settings import Settings

from tests.recorded.efa import IBSTATS, of_efa, without_plug_in

HEALTHY = load(Path(__file__).parents[2] / "fixtures" / "healthy-4x8-h100")
OF_HCAS = {"NC331", "NC408", "NC411", "NC412", "NC415", "NC416", "NC417", "NC418", "NC430", "NC433"}


def judged(*nodes: Evidence) -> Report:
    return judge_again(nodes, Settings(), Silent())


@pytest.mark.parametrize("ibstat", IBSTATS)
def test_a_healthy_cluster_is_fine_whatever_ibstat_says(ibstat: str) -> None:
    report = judged(*(of_efa(node, ibstat) for node in HEALTHY))
    assert (report.exit_code, report.findings) == (0, ())
    system = report.systems[0]
    assert system.ports
    assert system.ports[0] == SystemPort("rdmap0s0:1", "Active", "LinkUp", 100, "EFA", "EFA", "0.0.0.0")  # noqa: S104
    assert system.net_plugin == "aws-ofi-nccl 1.16.3"
    assert report.plan.env["NCCL_SOCKET_IFNAME"].value is None
    assert "NCCL_IB_HCA" not in report.plan.env
    passed = {one.code for one in report.verdicts if one.outcome.value == "passed"}
    assert passed & OF_HCAS == set()
    assert {f"NC23{last}" for last in range(2, 7)} <= passed


def test_a_node_without_the_plug_in_is_named_once() -> None:
    nodes = [of_efa(node) for node in HEALTHY]
    report = judged(*nodes[:3], without_plug_in(nodes[3]))
    assert [(finding.code, finding.nodes) for finding in report.findings if not finding.see] == [("NC236", ("gpu04",))]


def test_errors_that_efa_counts_are_reported() -> None:
    counted = {"unresponsive_remote_events": 3}
    report = judged(*(of_efa(node) for node in HEALTHY[:3]), of_efa(HEALTHY[3], counted=counted))
    (finding,) = report.findings
    assert (finding.code, finding.nodes) == ("NC427", ("gpu04",))
    assert re.match(r"rdmap0s0:1 lost RDMA packets .*: unresponsive_remote_events \+3 in 42 s", finding.message)


def test_a_node_with_fewer_devices_is_named() -> None:
    nodes = [of_efa(node) for node in HEALTHY]
    text = {key: reply for key, reply in nodes[3].replies.items() if key.startswith("tree:/sys/class/infiniband/")}
    ((key, reply),) = text.items()
    tree: Any = reply.value
    fewer = {path: value for path, value in tree.items() if "/rdmap7s0/" not in path}
    report = judged(*nodes[:3], replace(nodes[3], replies={**nodes[3].replies, key: replace(reply, value=fewer)}))
    (finding,) = (one for one in report.findings if one.code == "NC405")
    assert (finding.nodes, finding.fix) == (("gpu04",), "lspci -d 1d0f:")
    assert finding.message == "HCA ports differ: 8 x EFA on gpu[01-03], 7 x EFA on gpu04 (3 to 1)"
