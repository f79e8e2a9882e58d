"""NC758: counters that grow while a GPU is tested."""

from __future__ import annotations

from ncheck.model.finding import Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_errors_under_load import gpu_errors_under_load

from .tested_gpus import gpu, nodes

NONE = {"ecc": 0, "pcie_replays": 7, "nvlink": 2}


def test_what_grew_is_counted_and_a_memory_error_is_worse_than_a_packet_sent_again() -> None:
    replays = gpu(1, before=NONE, after={**NONE, "pcie_replays": 9})
    (found,) = judge([gpu_errors_under_load], nodes(n1=(gpu(0, before=NONE, after=NONE), replays))).findings
    assert (found.severity, found.evidence) == (
        Severity.WARNING, ("0000:01:00.0: packets that PCIe sent again: 2",),
    )  # fmt: skip
    (found,) = judge([gpu_errors_under_load], nodes(n1=(gpu(0, before=NONE, after={**NONE, "ecc": 1}),))).findings
    assert (found.severity, found.evidence) == (
        Severity.ERROR, ("0000:00:00.0: memory errors that could not be corrected: 1",),
    )  # fmt: skip


def test_what_was_there_before_is_no_finding_and_no_counter_nothing() -> None:
    judged = judge([gpu_errors_under_load], nodes(n1=(gpu(0, before=NONE, after=NONE),), n2=(gpu(0, "n2"),)))
    assert [one.outcome for one in judged.verdicts] == [Outcome.PASSED, Outcome.SKIPPED]
