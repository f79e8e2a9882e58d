"""NC232: another network plug-in than on the other nodes, or none, and a tuner that only some have."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPlugin, NetPluginFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.net_plugin_differs import net_plugin_differs as check

OFI = NetPlugin("libnccl-net.so", "/opt/amazon/ofi-nccl/lib/libnccl-net.so", "aws-ofi-nccl", "1.16.3", net=(9,))
SHARP = NetPlugin("libnccl-net.so", "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so", "nccl-rdma-sharp", net=(9,))
LOOK = "ldconfig -p | grep libnccl-; echo $LD_LIBRARY_PATH $NCCL_NET_PLUGIN"


def node(plugin: object) -> Facts:
    facts = NetPluginFacts(plugin) if isinstance(plugin, NetPlugin) else plugin
    return {LoadedNcclFacts: LoadedNcclFacts("2.27.5", "/x/libnccl.so.2"), NetPluginFacts: facts}


def outcomes(*nodes: Facts) -> list[Outcome]:
    judgement = judge([check], {f"n{number}": facts for number, facts in enumerate(nodes, 1)})
    return [verdict.outcome for verdict in judgement.verdicts]


def test_a_node_without_the_plug_in_of_the_others_is_named() -> None:
    nodes = {"n1": node(OFI), "n2": node(OFI), "n3": node(Absent("no network plug-in of NCCL"))}
    assert judge([check], nodes).findings == [
        Finding("NC232", "net-plugin-differs", Severity.ERROR, ("n3",),
                "NCCL's network plug-in differs: aws-ofi-nccl on n[1-2], none on n3 (2 to 1)",
                (f"{OFI.path} on n[1-2]", "no plug-in on n3"), LOOK, kind="look",
                summary="NCCL's network plug-in differs"),
    ]  # fmt: skip
    (finding,) = judge([check], {"n1": node(SHARP), "n2": node(OFI), "n3": node(OFI)}).findings
    assert (finding.nodes, finding.message) == (
        ("n1",), "NCCL's network plug-in differs: aws-ofi-nccl on n[2-3], nccl-rdma-sharp on n1 (2 to 1)",
    )  # fmt: skip


def test_a_plug_in_that_cannot_be_loaded_counts_as_none() -> None:
    nodes = {"n1": node(SHARP), "n2": node(SHARP), "n3": node(replace(SHARP, missing=("libsharp.so.5",)))}
    (finding,) = judge([check], nodes).findings
    assert (finding.message, finding.evidence) == (
        "NCCL's network plug-in differs: nccl-rdma-sharp on n[1-2], none on n3 (2 to 1)", (f"{SHARP.path} on n[1-3]",),
    )  # fmt: skip


def test_amds_library_looks_for_files_of_other_names() -> None:
    none = node(Absent("no network plug-in of NCCL"))
    rccl = LoadedNcclFacts("2.22.3", "/opt/rocm/lib/librccl.so.1")
    amd = [{**facts, LoadedNcclFacts: rccl} for facts in (node(SHARP), none)]
    assert outcomes(*amd) == [Outcome.SKIPPED] * 2


def test_a_tuner_that_only_some_nodes_have_is_named() -> None:
    nodes = {"n1": node(OFI), "n2": node(OFI), "n3": node(replace(OFI, tuner=(3,)))}
    (finding,) = judge([check], nodes).findings
    assert (finding.nodes, finding.message) == (
        ("n3",), "NCCL's tuner differs: no tuner on n[1-2], a tuner on n3 (2 to 1)",
    )  # fmt: skip


def test_one_plug_in_everywhere_or_none_is_fine() -> None:
    elsewhere = replace(OFI, path="/usr/local/lib/libnccl-net.so", version="1.15.0")
    assert outcomes(node(OFI), node(elsewhere)) == [Outcome.PASSED] * 2
    none = node(Absent("no network plug-in of NCCL"))
    assert outcomes(none, none) == [Outcome.SKIPPED] * 2


def test_a_plug_in_that_could_not_be_looked_for_is_unknown() -> None:
    assert outcomes(node(OFI), node(OFI), node(Unread("no cache"))) == [
        Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN,
    ]  # fmt: skip
