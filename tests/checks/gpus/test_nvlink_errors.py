"""NC530: links that were trained again, or lost, are a warning; active links without counters are no pass."""

from __future__ import annotations

from ncheck.facts.gpu_health import Fabric, Failure, GpuHealth, LinkCounters
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nvlink_errors import nvlink_errors

from .health import CONSUMER, HEALTHY, MIG, h100, node


def errors(**counts: int) -> dict[str, int]:
    return {"flit_crc": 0, "data_crc": 0, "replay": 0, "recovered": 0, **counts}


def test_each_gpu_is_named_with_its_counts() -> None:
    line = "GPU 1 (0000:10:00.0): 3 times trained again"
    nodes = {"n1": node(h100(0), h100(1, link_errors=errors(recovered=3, replay=49000)), h100(2))}
    assert judge([nvlink_errors], nodes).findings == [
        Finding("NC530", "nvlink-errors", Severity.WARNING, ("n1",), f"NVLinks have errors: {line}", (line,),
                "nvidia-smi nvlink -e", kind="look", summary="NVLinks have errors"),
    ]  # fmt: skip


def test_what_the_fabric_says_counts() -> None:
    fabric = Fabric(3, health=0b0001_10_01_10_01)
    nodes = {"n1": node(h100(0, fabric=fabric), h100(1, fabric=Fabric(3, health=0x1AA)))}
    assert [one.evidence for one in judge([nvlink_errors], nodes).findings] == [
        ("GPU 0 (0000:0f:00.0): the fabric's bandwidth is degraded, a route is unhealthy",)
    ]


def test_a_fabric_that_is_configured_wrongly_or_recovers_is_named() -> None:
    good = 0b0001_10_10_10_10
    words = {
        0b0101_10_10_10_10: "the fabric is configured wrongly (number 5 in nvml.h)",
        0b0001_01_10_10_10: "it recovers from accesses that timed out",
    }
    for health, shown in words.items():
        nodes = {"n1": node(h100(0, fabric=Fabric(3, health=health)), h100(1, fabric=Fabric(3, health=good)))}
        assert [one.evidence for one in judge([nvlink_errors], nodes).findings] == [(f"GPU 0 (0000:0f:00.0): {shown}",)]


def counting(read: int = 18, refused: int = 0, **errors: int) -> GpuHealth:
    """Return a GPU that counts errors of each link alone: those named are on link 14."""
    return h100(link_errors={}, counted=LinkCounters(read, refused, {14: errors} if errors else {}))


def test_a_link_that_was_lost_or_trained_again_is_named_where_each_link_counts() -> None:
    for line, gpu in {
        "link 14 was lost 2 times": counting(lost=2, recoveries=7),
        "3 times trained again": counting(recovered=3),
    }.items():
        (found,) = judge([nvlink_errors], {"n1": node(gpu), "n2": node(counting())}).findings
        assert (found.nodes, found.evidence) == (("n1",), (f"GPU 0 (0000:0f:00.0): {line}",))


def test_links_that_recover_by_themselves_and_resend_are_no_fault_of_their_own() -> None:
    few = node(h100(0, link_errors=errors(replay=900)), h100(1))
    new = node(counting(recoveries=505, symbol=7, crc=9, malformed=1, received=1, integrity=1))
    assert judge([nvlink_errors], {**HEALTHY, "mig": node(MIG), "few": few, "new": new}).findings == []
    assert judge([nvlink_errors], {"c": node(CONSUMER)}).verdicts[0].outcome is Outcome.SKIPPED


def test_active_links_without_counters_are_no_pass() -> None:
    for gpu, outcome, reason in (
        (counting(0), Outcome.SKIPPED,
         "the driver has no error counters of the NVLinks of GPU 0 (0000:0f:00.0): not supported"),
        (counting(17), Outcome.UNKNOWN, "GPU 0 (0000:0f:00.0) reports the error counters of 17 of 18 active NVLinks"),
        (h100(link_errors={}), Outcome.UNKNOWN,
         "GPU 0 (0000:0f:00.0) reports the error counters of 0 of 18 active NVLinks"),
        (counting(0, refused=18), Outcome.SKIPPED,
         "only root can read the error counters of the NVLinks of GPU 0 (0000:0f:00.0)"),
        (counting(), Outcome.PASSED, ""),
    ):  # fmt: skip
        (verdict,) = judge([nvlink_errors], {"n1": node(gpu)}).verdicts
        assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_counts_that_could_not_be_read_are_unknown() -> None:
    for name in ("fields", "replay", "counted", "fabric"):
        nodes = {"n1": node(h100(0, errors={name: Failure(999, "Unknown Error")}))}
        assert [one.outcome for one in judge([nvlink_errors], nodes).verdicts] == [Outcome.UNKNOWN]
