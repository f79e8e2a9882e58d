"""What triage says of real jobs that were saved while they hung, crawled or worked (bench/triage_faults.py --make)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from ncheck.fleet.archive import load_archive
from ncheck.triage.join import LiveReport, examine_job
from ncheck.triage.live import cluster_of

from tests.lab.job_faults import FAULTS

KEPT = Path(__file__).parents[2] / "recorded/triage"
WELL = Path(__file__).parents[2] / "recorded/triage_well"
LEAST = 30  # faults that are proved
# Not named yet: why.
MISSED: dict[str, str] = {}


def judged(name: str) -> LiveReport:
    evidence, target = load_archive(str(KEPT / f"{name}.zip"))
    return examine_job(cluster_of(evidence), target)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_cause_the_rank_and_the_node_of_a_saved_job_are_named(name: str, request: pytest.FixtureRequest) -> None:
    if name in MISSED:
        request.applymarker(pytest.mark.xfail(reason=MISSED[name], strict=True))

    report = judged(name)

    wrong = FAULTS[name].truth.wrong([asdict(one) for one in report.diagnoses])
    assert not wrong, f"{wrong}: {report}"


@pytest.mark.parametrize("name", ["tokenizes-in-a-pool", "downloads-by-a-program"])
def test_a_saved_job_that_waits_for_a_rank_whose_children_work_is_not_accused(name: str) -> None:
    """The machine was crowded: a child that computes got 4 % of a CPU, and one that downloads slept nearly always."""
    evidence, target = load_archive(str(WELL / f"{name}.zip"))
    report = examine_job(cluster_of(evidence), target)
    assert [(one.confidence, one.ranks, one.works) for one in report.diagnoses] == [(0.4, (0,), True)]
    assert report.diagnoses[0].meaning.startswith("the others wait for ")


def test_enough_faults_are_proved() -> None:
    assert sum(bool(fault.truth.causes) for fault in FAULTS.values()) - len(MISSED) >= LEAST


def test_each_fault_was_saved_once() -> None:
    assert {path.stem for path in KEPT.iterdir()} == set(FAULTS)
