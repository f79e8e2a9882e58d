"""NC533: a kernel module and a library of two versions are an error."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure, NvidiaDriverFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nvidia_driver_mismatched import nvidia_driver_mismatched

MISMATCH = Failure(18, "RM has detected an NVML/RM version mismatch.")


def node(facts: object) -> dict[str, Facts]:
    return {"n1": {NvidiaDriverFacts: facts}}


def test_both_versions_are_named() -> None:
    facts = NvidiaDriverFacts("550.54.15", "550.90.07", MISMATCH)
    assert judge([nvidia_driver_mismatched], node(facts)).findings == [
        Finding("NC533", "nvidia-driver-mismatched", Severity.ERROR, ("n1",),
                "the NVIDIA driver's module and library differ: kernel module 550.54.15, library 550.90.07",
                (MISMATCH.words,), "sudo systemctl reboot", summary="the NVIDIA driver is half updated"),
    ]  # fmt: skip


def test_nvml_s_word_is_enough() -> None:
    (finding,) = judge([nvidia_driver_mismatched], node(NvidiaDriverFacts("550.54.15", "", MISMATCH))).findings
    assert finding.message == "the NVIDIA driver's module and library differ"


def test_one_version_is_fine_other_failures_are_none_of_it_and_no_driver_is_skipped() -> None:
    for facts, outcome in (
        (NvidiaDriverFacts("550.54.15", "550.54.15"), Outcome.PASSED),
        (NvidiaDriverFacts("", "550.54.15"), Outcome.PASSED),
        (NvidiaDriverFacts("", "", Failure(9, "Driver Not Loaded")), Outcome.PASSED),
        (NvidiaDriverFacts("550.54.15"), Outcome.PASSED),  # NVML itself compares them when it starts
        (Absent("no NVIDIA GPU"), Outcome.SKIPPED),
    ):
        judgement = judge([nvidia_driver_mismatched], node(facts))
        assert ([one.outcome for one in judgement.verdicts], judgement.findings) == ([outcome], [])
