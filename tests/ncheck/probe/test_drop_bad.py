"""--drop-bad where only the measuring finds the bad node: the others go on without it, over SSH to recorded nodes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest
from ncheck.demo.server import lay_out
from ncheck.model.evidence import Evidence
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import examine, replay
from ncheck.report.summary import left_out
from ncheck.settings import RunContext, Settings

from tests.recorded.clusters import FOUR, HEALTHY
from tests.recorded.make import evidence
from tests.recorded.probe import measured

pytestmark = pytest.mark.slow

LEFT = ("gpu01", "gpu02", "gpu04")
# For servers and head in one process.
DROPPING = Settings(drop_bad=True, connect_timeout=60.0, command_timeout=60.0, deadline=240.0, probe_time=240.0)


def recorded(*left_out: str) -> tuple[Evidence, ...]:
    """Return a cluster as it was measured in which gpu03 is slow with each partner."""
    hosts = measured(HEALTHY, slow={"gpu03": 0.44}, left_out=left_out)
    return tuple(evidence(host, place) for place, host in enumerate(hosts, 1))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, str]:
    """Examine the cluster once for all; return the report and the folder of the recording that was made."""
    made = str(tmp_path_factory.mktemp("recording") / "made")
    with ExitStack() as stack:
        listing, ssh_config = lay_out(recorded("gpu03"), tmp_path_factory.mktemp("demo"), stack)
        settings = replace(DROPPING, nodes_file=str(listing), ssh_config=str(ssh_config), transport="paramiko")
        return examine(replace(settings, record=made, run=RunContext(rehearsal=True)), Silent()), made


def test_all_nodes_together_are_the_others_and_the_run_is_clean(run: tuple[Report, str]) -> None:
    report, _ = run
    whole = {one.stage: one.nodes for one in report.measurements if one.stage in ("scaling", "all")}
    assert whole == {"scaling": LEFT[:2], "all": LEFT}
    assert (report.findings, report.exit_code) == ((), 0)


def test_the_node_is_named_with_why_as_one_that_was_bad_before(run: tuple[Report, str]) -> None:
    report, _ = run
    assert left_out(report.dropped, len(FOUR)).startswith(
        "3 of 4 nodes, without gpu03: NC710 node-slow: gpu03 is slow with every partner through mlx5_0:1: "
    )


def test_a_replay_judges_and_says_the_same(run: tuple[Report, str]) -> None:
    report, made = run
    again = replay(made, DROPPING, Silent())
    assert (again.dropped, again.measurements, again.probe) == (report.dropped, report.measurements, report.probe)
    assert (again.verdicts, again.findings, again.exit_code) == (report.verdicts, report.findings, 0)


def test_who_replays_it_with_the_bad_node_hears_that_not_all_were_measured(run: tuple[Report, str]) -> None:
    _, made = run
    again = replay(made, replace(DROPPING, drop_bad=False), Silent())
    assert {finding.code: finding.nodes for finding in again.findings} == {"NC710": ("gpu03",)}
    assert again.probe is not None
    assert again.probe.notes == ("not measured on all 4 nodes together: --drop-bad left out gpu03",)
    untold = {verdict.nodes: verdict.reason for verdict in again.verdicts if verdict.outcome.value == "unknown"}
    assert untold == {("gpu03",): "the all-reduce on 4 nodes was skipped: --drop-bad left out gpu03"}
