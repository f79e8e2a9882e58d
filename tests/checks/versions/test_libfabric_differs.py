"""NC234: the libfabric that the loader gives to the plug-in."""

from __future__ import annotations

from ncheck.facts.net_plugin import Libfabric, NetPlugin, NetPluginFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.libfabric_differs import libfabric_differs as check

AMAZON, SYSTEM = "/opt/amazon/efa/lib/libfabric.so.1.25.0", "/usr/lib/x86_64-linux-gnu/libfabric.so.1.17.0"


def node(path: str, version: str) -> Facts:
    fabric = Libfabric(path, version) if path else None
    return {NetPluginFacts: NetPluginFacts(NetPlugin("libnccl-net.so", "/x/libnccl-net.so", libfabric=fabric))}


def test_the_node_that_loads_another_copy_is_named() -> None:
    nodes = {"n1": node(AMAZON, "1.22.0amzn4.0"), "n2": node(AMAZON, "1.22.0amzn4.0"), "n3": node(SYSTEM, "1.11.0")}
    assert judge([check], nodes).findings == [
        Finding("NC234", "libfabric-differs", Severity.WARNING, ("n3",),
                "libfabric differs: 1.22.0amzn4.0 on n[1-2], 1.11.0 on n3 (2 to 1)",
                (f"{AMAZON}: 1.22.0amzn4.0 on n[1-2]", f"{SYSTEM}: 1.11.0 on n3"),
                "ldconfig -p | grep libfabric; echo $LD_LIBRARY_PATH", kind="look", summary="libfabric differs"),
    ]  # fmt: skip


def test_one_release_in_two_places_and_plug_ins_without_it_are_fine() -> None:
    nodes = {"n1": node(AMAZON, "1.22.0"), "n2": node(SYSTEM, "1.22.0"), "n3": node("", "")}
    judgement = judge([check], nodes)
    outcomes = [verdict.outcome for verdict in judgement.verdicts]
    assert (judgement.findings, outcomes) == ([], [Outcome.PASSED, Outcome.PASSED, Outcome.SKIPPED])
