"""NC754: copies between two GPUs of a node."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.topology import TopologyFacts
from ncheck.model.finding import Outcome
from ncheck.probe.gpu_test import GpuTestFacts
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_pair_slow import gpu_pair_slow

from .tested_gpus import gpu, nodes

FAST, SLOW = ((0, 1, 270.0), (1, 0, 268.0)), ((0, 1, 90.0), (1, 0, 90.0))


def test_a_pair_is_compared_with_the_same_pair_of_other_nodes() -> None:
    two = (gpu(0), gpu(1))
    cluster = {**nodes(pairs=FAST, n1=two), **nodes(pairs=FAST, n2=two), **nodes(pairs=SLOW, n3=two)}
    (found,) = judge([gpu_pair_slow], cluster).findings
    assert (found.nodes, found.message) == (("n3",), "slow copies between GPUs of n3: 0.33 of what is usual")
    assert found.evidence == (
        "GPU 0 to GPU 1: 90 GB/s, usual 270", "GPU 1 to GPU 0: 90 GB/s, usual 268",
    )  # fmt: skip


def test_alone_the_opposite_direction_is_what_there_is() -> None:
    (found,) = judge([gpu_pair_slow], nodes(pairs=((0, 1, 270.0), (1, 0, 90.0)), n1=(gpu(0), gpu(1)))).findings
    assert found.evidence == ("GPU 1 to GPU 0: 90 GB/s, usual 270",)
    assert judge([gpu_pair_slow], nodes(pairs=FAST, n1=(gpu(0), gpu(1)))).findings == []


def test_across_sockets_the_two_directions_may_differ() -> None:
    uneven = nodes(pairs=((0, 1, 20.0), (1, 0, 15.0)), n1=(gpu(0), gpu(1)))
    for path, count in (("SYS", 0), ("NODE", 1), ("NV12", 1)):
        matrix = {("GPU0", "GPU1"): path, ("GPU1", "GPU0"): path}
        uneven["n1"] = {**uneven["n1"], TopologyFacts: TopologyFacts(("GPU0", "GPU1"), (), matrix, {}, {}, {})}
        assert len(judge([gpu_pair_slow], uneven).findings) == count


def test_pairs_that_were_not_measured_are_unknown_and_a_slow_one_is_still_named() -> None:
    half = GpuTestFacts((gpu(0), gpu(1)), FAST[:1], "its time was over in: a copy from GPU 1 to GPU 0")
    cluster = nodes(pairs=FAST, n1=(gpu(0), gpu(1)), n2=(gpu(0), gpu(1)))
    cluster["n2"] = {**cluster["n2"], GpuTestFacts: half}
    assert [one.outcome for one in judge([gpu_pair_slow], cluster).verdicts] == [Outcome.PASSED, Outcome.UNKNOWN]
    cluster["n2"] = {**cluster["n2"], GpuTestFacts: replace(half, pairs=SLOW[:1])}
    assert judge([gpu_pair_slow], cluster).findings[0].nodes == ("n2",)


def test_a_node_with_one_gpu_has_no_pairs() -> None:
    assert [one.outcome for one in judge([gpu_pair_slow], nodes(n1=(gpu(0),))).verdicts] == [Outcome.SKIPPED]
