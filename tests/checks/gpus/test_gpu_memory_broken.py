"""NC521: a failed row remap, a page that waits to be retired, and errors after which the GPU needs a reset."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure, RemappedRows
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_memory_broken import gpu_memory_broken

from .health import HEALTHY, MIG, h100, node

RESET = "sudo nvidia-smi --gpu-reset -i 0000:0f:00.0"


def messages(**changed: object) -> list[str]:
    return [one.message for one in judge([gpu_memory_broken], {"n1": node(h100(0, **changed))}).findings]


def test_errors_that_could_not_be_corrected_are_an_error() -> None:
    nodes = {"n1": node(h100(0, ecc=2, ecc_ever=7, action=None), h100(1))}
    assert judge([gpu_memory_broken], nodes).findings == [
        Finding("NC521", "gpu-memory-broken", Severity.ERROR, ("n1",),
                "2 uncorrectable memory errors of GPU 0 (0000:0f:00.0) since the driver was loaded",
                ("7 uncorrectable errors in the life of the GPU",), RESET, summary="ECC errors of a GPU"),
    ]  # fmt: skip


def test_a_failed_remap_is_named_and_a_page_that_waits() -> None:
    assert messages(remapped=RemappedRows(0, 9, pending=True, failed=True)) == [
        "a bad memory row of GPU 0 (0000:0f:00.0) could not be replaced by a spare one: have the GPU replaced"
    ]
    assert messages(retiring=True) == [
        "a bad memory page of GPU 0 (0000:0f:00.0) waits to be retired: no program starts there before a reset"
    ]


def test_errors_after_which_the_driver_needs_nothing_stop_no_job() -> None:
    assert messages(ecc=2, action=0) == []
    assert messages(ecc_ever=40) == []
    assert messages(remapped=RemappedRows(3, 1, pending=True, failed=False)) == []


def test_what_could_not_be_read_is_unknown_and_what_is_not_there_is_skipped() -> None:
    unread = node(h100(0, ecc=None, errors={"ecc": Failure(999, "Unknown Error")}))
    judgement = judge(
        [gpu_memory_broken], {**HEALTHY, "mig": node(MIG), "unread": unread, "hung": node(h100(0), hung=1)}
    )
    assert judgement.findings == []
    assert {one.nodes[0]: (one.outcome, one.reason) for one in judgement.verdicts} == {
        "h100": (Outcome.PASSED, ""),
        "consumer": (Outcome.SKIPPED, "no GPU of this node reports ECC errors"),
        "vgpu": (Outcome.SKIPPED, "no GPU of this node reports ECC errors"),
        "mig": (Outcome.SKIPPED, "no GPU of this node reports ECC errors"),
        "none": (Outcome.SKIPPED, "no NVIDIA GPU"),
        "unread": (Outcome.UNKNOWN, "ECC errors of GPU 0 (0000:0f:00.0) could not be read: Unknown Error"),
        "hung": (Outcome.UNKNOWN, "not every GPU could be read: GPU 1 does not answer"),
    }
