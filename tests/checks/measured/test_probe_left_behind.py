"""NC705: what had to be ended or removed after the probe."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.measured.probe_left_behind import probe_left_behind

from .results import probed, step, well

SHOW = 'ps -fu "$USER"; ls -l /dev/shm'
KILLED, FILE = "rank 0 (process 77) did not end and was ended", "nccl-a1b2c3 in shared memory"


def test_what_was_left_is_told() -> None:
    nodes = probed(n1=well(step(1, "n1"), left=(KILLED,)))
    assert judge([probe_left_behind], nodes).findings == [
        Finding("NC705", "probe-left-behind", Severity.WARNING, ("n1",),
                KILLED, (KILLED,), SHOW, kind="look"),
    ]  # fmt: skip


def test_many_things_are_counted_and_each_is_told_once() -> None:
    nodes = probed(n1=(well(step(1, "n1"), left=(KILLED, FILE)), well(step(2, "n1", "n2"), left=(FILE,))))
    (finding,) = judge([probe_left_behind], nodes).findings
    assert (finding.message, finding.evidence) == (
        "after the probe 2 processes or files had to be removed, or may be left",
        (KILLED, FILE),
    )


def test_it_is_silent_where_all_ended_by_itself() -> None:
    assert judge([probe_left_behind], probed(n1=well(step(1, "n1")))).findings == []
