"""NC530: links that were trained again, or that send much more twice than others, are a warning."""

from __future__ import annotations

from ncheck.facts.gpu_health import Fabric, Failure
from ncheck.judge import judge
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.gpus.nvlink_errors import nvlink_errors

from .health import CONSUMER, HEALTHY, MIG, h100, node


def errors(**counts: int) -> dict[str, int]:
    return {"flit_crc": 0, "data_crc": 0, "replay": 0, "recovered": 0, **counts}


def test_each_gpu_is_named_with_its_counts() -> None:
    line = "GPU 1 (0000:10:00.0): 3 times trained again, 50000 CRC errors and replays"
    nodes = {"n1": node(h100(0), h100(1, link_errors=errors(recovered=3, replay=49000, flit_crc=1000)), h100(2))}
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


def test_few_errors_and_counts_that_all_gpus_have_are_normal() -> None:
    few = node(h100(0, link_errors=errors(replay=900)), h100(1))
    assert judge([nvlink_errors], {**HEALTHY, "mig": node(MIG), "few": few}).findings == []
    old = {f"n{i}": node(h100(0, link_errors=errors(replay=20000 + 9000 * i))) for i in range(4)}
    assert judge([nvlink_errors], old).findings == []
    assert judge([nvlink_errors], {"c": node(CONSUMER)}).findings == []


def test_counts_that_could_not_be_read_are_unknown() -> None:
    for name in ("fields", "replay", "fabric"):
        nodes = {"n1": node(h100(0, errors={name: Failure(999, "Unknown Error")}))}
        assert [one.outcome for one in judge([nvlink_errors], nodes).verdicts] == [Outcome.UNKNOWN]
