"""NC233: the versions of one plug-in are compared, and where a file says none, the files."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.net_plugin import NetPlugin, NetPluginFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.net_plugin_version_differs import net_plugin_version_differs as check

OFI = NetPlugin("libnccl-net.so", "/opt/amazon/ofi-nccl/lib/libnccl-net.so", "aws-ofi-nccl", "1.16.3", "aa11", (9,))
GIB = replace(OFI, path="/usr/local/gib/lib64/libnccl-net.so", kind="gIB", version="")


def node(plugin: NetPlugin | None) -> Facts:
    return {NetPluginFacts: NetPluginFacts(plugin)}


def outcomes(*plugins: NetPlugin | None) -> list[Outcome]:
    judgement = judge([check], {f"n{number}": node(plugin) for number, plugin in enumerate(plugins, 1)})
    return [verdict.outcome for verdict in judgement.verdicts]


def test_the_node_with_another_version_is_named() -> None:
    nodes = {"n1": node(OFI), "n2": node(OFI), "n3": node(replace(OFI, version="1.9.2-aws"))}
    assert judge([check], nodes).findings == [
        Finding("NC233", "net-plugin-version-differs", Severity.WARNING, ("n3",),
                "aws-ofi-nccl differs: 1.16.3 on n[1-2], 1.9.2-aws on n3 (2 to 1)",
                (f"{OFI.path}: 1.16.3 on n[1-2]", f"{OFI.path}: 1.9.2-aws on n3"), f"ls -l {OFI.path}", kind="look",
                summary="aws-ofi-nccl differs"),
    ]  # fmt: skip
    (finding,) = judge([check], {"n1": node(GIB), "n2": node(replace(GIB, build="bb22")), "n3": node(GIB)}).findings
    assert finding.message == "gIB differs: build aa11 on n[1,3], build bb22 on n2 (2 to 1)"


def test_one_version_in_two_builds_is_fine_and_two_plug_ins_are_another_checks_matter() -> None:
    assert outcomes(OFI, replace(OFI, build="bb22")) == [Outcome.PASSED] * 2
    assert outcomes(OFI, GIB) == [Outcome.PASSED] * 2


def test_without_a_plug_in_or_a_mark_there_is_nothing_to_compare() -> None:
    assert outcomes(None, None) == [Outcome.SKIPPED] * 2
    assert outcomes(replace(GIB, build=""), GIB) == [Outcome.SKIPPED, Outcome.PASSED]
