"""A GPU that is slow or wrong alone is why its node is, in an all-reduce: on the same node, and where it can be."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Login
from ncheck.model.plan import LaunchPlan
from ncheck.settings import Settings
from ncheck.steps.conclude import conclude
from ncheck_checks.measured.all_reduce_wrong import all_reduce_wrong
from ncheck_checks.measured.bandwidth_far_too_low import bandwidth_far_too_low
from ncheck_checks.measured.gpu_compute_slow import gpu_compute_slow
from ncheck_checks.measured.gpu_computes_wrong import gpu_computes_wrong
from ncheck_checks.measured.gpu_host_link_slow import gpu_host_link_slow
from ncheck_checks.measured.gpu_memory_slow import gpu_memory_slow
from ncheck_checks.measured.gpu_slowed_under_load import gpu_slowed_under_load
from ncheck_checks.measured.node_slow import node_slow

from tests.checks.measured.bandwidths import inside, together
from tests.checks.measured.results import probed, step, well
from tests.checks.measured.test_all_reduce_wrong import wrong
from tests.checks.measured.test_node_slow import cluster
from tests.checks.measured.tested_gpus import A100, COMPUTED, LOOK, gpu, nodes

CHECKS = (
    gpu_computes_wrong, gpu_compute_slow, gpu_memory_slow, gpu_host_link_slow, gpu_slowed_under_load, node_slow,
    bandwidth_far_too_low, all_reduce_wrong,
)  # fmt: skip
LATE = {"late_fma": 9.0, "looks": (replace(LOOK, throttled=0x40),) * 2}
Seen = set[tuple[str, tuple[str, ...], tuple[str, ...]]]


def seen(measured: dict[str, Facts], ill: str, **figures: object) -> Seen:
    """Return what is found, with its causes, where one GPU of the `ill` node has these figures."""
    of = {
        node: tuple(gpu(n, node, **(figures if (node, n) == (ill, 1) else {})) for n in range(3)) for node in measured
    }
    alone = nodes(A100, (), **of)
    known = {node: {LoginFacts: LoginFacts(Login(reached=True)), **alone[node], **measured[node]} for node in measured}
    report = conclude(Cluster.of(known), CHECKS, Settings(), LaunchPlan())
    return {(one.code, one.nodes, one.see) for one in report.findings}


def test_a_node_is_slow_because_of_its_own_gpu_and_of_no_other() -> None:
    slow = cluster(4, {"n2": 0.5})
    link, heat = ("NC753", ("n2",), ()), ("NC755", ("n2",), ())
    assert seen(slow, "n2", to_host=12.5) == {link, ("NC710", ("n2",), ("NC753",))}
    assert seen(slow, "n2", **LATE) == {heat, ("NC710", ("n2",), ("NC755",))}
    assert seen(slow, "n3", to_host=12.5) == {("NC753", ("n3",), ()), ("NC710", ("n2",), ())}
    assert seen(cluster(4, {"n2": None}), "n2", to_host=12.5) == {link, ("NC710", ("n2",), ())}
    # A little slow explains no half; slow memory is still far faster than a NIC; and GPUs carry nothing over sockets.
    assert seen(slow, "n2", to_host=22.0) == {link, ("NC710", ("n2",), ())}
    assert seen(slow, "n2", memory=900.0) == {("NC752", ("n2",), ()), ("NC710", ("n2",), ())}


def test_the_gpus_of_a_node_are_slow_together_because_of_one_of_them() -> None:
    one, memory = inside(n1=480.0, n2=200.0), ("NC752", ("n2",), ())
    assert seen(one, "n2", memory=900.0) == {memory, ("NC721", ("n2",), ("NC752",))}
    assert seen(one, "n2", fma=9.0, late_fma=9.0) == {("NC751", ("n2",), ()), ("NC721", ("n2",), ("NC751",))}
    both = inside(n1=200.0, n2=200.0)
    assert seen(both, "n2", memory=900.0) == {memory, ("NC721", ("n1", "n2"), ())}
    assert seen(together(2, 150.0), "n2", memory=900.0) == {memory, ("NC721", ("n1", "n2"), ("NC752",))}


def test_sums_are_wrong_because_of_a_gpu_that_computes_wrong() -> None:
    pair = step(1, "n1", "n2")
    results = probed(n1=wrong(well(pair)), n2=wrong(well(pair)))
    broken = {"results": {**COMPUTED, "floats": (COMPUTED["floats"][0], 3)}}
    assert seen(results, "n2", **broken) == {("NC750", ("n2",), ()), ("NC702", ("n1", "n2"), ("NC750",))}
