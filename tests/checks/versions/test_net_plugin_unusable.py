"""NC236: a network plug-in that NCCL needs and does not find, or cannot load."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import EfaFacts, NetPlugin, NetPluginFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.net_plugin_unusable import net_plugin_unusable as check

from tests.checks.infiniband.counted import PORT

OFI = NetPlugin(
    "libnccl-net.so", "/opt/amazon/ofi-nccl/lib/libnccl-net.so", "aws-ofi-nccl", "1.16.3", net=(6, 7, 8, 9, 10)
)
EFA = EfaFacts(("rdmap0s6", "rdmap0s7"), "2.13.0g")
FIND = "ldconfig -p | grep libnccl-net; echo $LD_LIBRARY_PATH"


def node(found: NetPluginFacts, efa: object = EFA, nccl: str = "2.27.5", **variables: str) -> Facts:
    return {
        LoadedNcclFacts: LoadedNcclFacts(nccl, "/x/libnccl.so.2"), NetPluginFacts: found, EfaFacts: efa,
        EnvironmentFacts: EnvironmentFacts(variables, {}), InfinibandFacts: Absent("no InfiniBand or RoCE device"),
    }  # fmt: skip


def message(facts: Facts) -> str:
    return "; ".join(finding.message for finding in judge([check], {"n1": facts}).findings)


def test_efa_without_a_plug_in_is_a_fault() -> None:
    assert judge([check], {"n1": node(NetPluginFacts(None, not_found=("libnccl-net.so",)))}).findings == [
        Finding("NC236", "net-plugin-unusable", Severity.ERROR, ("n1",),
                "NCCL uses TCP and not the 2 EFA devices: NCCL finds no network plug-in", (), FIND, kind="look",
                summary="the network plug-in cannot be used"),
    ]  # fmt: skip
    facts = node(NetPluginFacts(None, off=True, elsewhere=(OFI.path,)))
    set_in = EnvironmentFacts({}, {"/etc/nccl.conf": ("NCCL_NET_PLUGIN=none",)})
    (off,) = judge([check], {"n1": {**facts, EnvironmentFacts: set_in}}).findings
    assert (off.severity, off.message, off.fix, off.kind) == (
        Severity.ERROR, "NCCL uses TCP and not the 2 EFA devices: NCCL_NET_PLUGIN is none",
        "sudo sed -i '/^NCCL_NET_PLUGIN=/d' /etc/nccl.conf", "fix",
    )  # fmt: skip


def test_where_it_lies_is_shown_with_the_line_that_leads_the_loader_there() -> None:
    lost = NetPluginFacts(None, not_found=("libnccl-net.so",), elsewhere=(OFI.path,))
    (finding,) = judge([check], {"n1": node(lost)}).findings
    assert (finding.severity, finding.fix, finding.kind, finding.evidence) == (
        Severity.WARNING, "echo /opt/amazon/ofi-nccl/lib | sudo tee /etc/ld.so.conf.d/nccl-net.conf && sudo ldconfig",
        "fix",
        (f"{OFI.path} is there, and the loader does not look for it there",),
    )  # fmt: skip


def test_the_plug_in_of_infiniband_that_hides_that_of_efa_is_a_fault() -> None:
    path = "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so"
    sharp = NetPluginFacts(NetPlugin("libnccl-net.so", path, "nccl-rdma-sharp", net=(8, 9)), elsewhere=(OFI.path,))
    (finding,) = judge([check], {"n1": node(sharp)}).findings
    assert (finding.message, finding.fix, finding.kind) == (
        "NCCL loads nccl-rdma-sharp, which cannot use the 2 EFA devices",
        "put /opt/amazon/ofi-nccl/lib first in LD_LIBRARY_PATH of the job", "do",
    )  # fmt: skip
    assert message(node(sharp, Absent("no EFA device"))) == ""


def test_amds_library_has_other_names() -> None:
    rccl = LoadedNcclFacts("2.22.3", "/opt/rocm/lib/librccl.so.1")
    (verdict,) = judge([check], {"n1": {**node(NetPluginFacts(None)), LoadedNcclFacts: rccl}}).verdicts
    assert verdict.outcome is Outcome.SKIPPED


def test_a_name_that_leads_nowhere_is_a_fault() -> None:
    gib = NetPluginFacts(None, named=("gib",), not_found=("libnccl-net-gib.so",))
    none = Absent("no EFA device")
    assert message(node(gib, none)) == "NCCL_NET_PLUGIN=gib: the loader finds no libnccl-net-gib.so"
    assert message(node(NetPluginFacts(None), none, NCCL_NET="gIB")) == (
        "NCCL_NET=gIB, and NCCL finds no network plug-in"
    )
    broken = NetPluginFacts(None, named=("x",), broken=("/x/libnccl-net-x.so: not a 64-bit ELF library",))
    assert message(node(broken, none)) == (
        "NCCL cannot load its network plug-in: /x/libnccl-net-x.so: not a 64-bit ELF library"
    )


def test_a_plug_in_that_does_not_load_is_a_fault() -> None:
    lacking = NetPluginFacts(replace(OFI, missing=("libfabric.so.1",)))
    (finding,) = judge([check], {"n1": node(lacking)}).findings
    assert (finding.message, finding.evidence, finding.fix) == (
        "NCCL cannot load aws-ofi-nccl 1.16.3: the loader does not find libfabric.so.1, which it needs",
        (OFI.path,), f"ldd {OFI.path}",
    )  # fmt: skip
    old, new = NetPluginFacts(replace(OFI, net=(4, 5))), NetPluginFacts(replace(OFI, net=(9, 10)))
    assert message(node(old)) == (
        "NCCL cannot load aws-ofi-nccl 1.16.3: it has NCCL's network interface v4, v5, and this NCCL takes v6 to v10"
    )
    assert message(node(new, nccl="2.21.5")).endswith("v9, v10, and this NCCL takes v5 to v8")


def test_where_nccl_has_infiniband_of_its_own_a_plug_in_that_does_not_load_is_a_warning() -> None:
    lacking = NetPluginFacts(replace(OFI, kind="nccl-rdma-sharp", missing=("libsharp_coll.so.5",)))
    none, hcas = Absent("no EFA device"), InfinibandFacts((PORT,), "ibstat")
    severities = {
        network: judge([check], {"n1": {**node(lacking, none, NCCL_NET=network), InfinibandFacts: hcas}}).findings
        for network in ("", "IB", "Socket")
    }
    assert {network: finding.severity for network, (finding,) in severities.items()} == {
        "": Severity.WARNING, "IB": Severity.WARNING, "Socket": Severity.ERROR,
    }  # fmt: skip


def test_one_device_is_named() -> None:
    assert message(node(NetPluginFacts(None, off=True), EfaFacts(("rdmap0s6",), ""))) == (
        "NCCL uses TCP and not the EFA device rdmap0s6: NCCL_NET_PLUGIN is none"
    )


def test_a_plug_in_that_loads_is_fine_also_by_an_nccl_that_is_newer_than_this() -> None:
    for nccl in ("2.18.3", "2.27.5", "2.30.7", "2.40.1", "unknown"):
        assert message(node(NetPluginFacts(OFI), nccl=nccl)) == ""
    later = NetPluginFacts(replace(OFI, net=(13, 14)))
    assert message(node(later, nccl="2.31.1")) == ""
    assert message(node(NetPluginFacts(OFI), NCCL_NET="AWS Libfabric")) == ""


def test_without_efa_nccl_needs_none() -> None:
    nothing = node(NetPluginFacts(None, off=True), Absent("no EFA device"), NCCL_NET="IB")
    assert [verdict.outcome for verdict in judge([check], {"n1": nothing}).verdicts] == [Outcome.SKIPPED]
