"""NC430: settings of RoCE ports are compared with those of other nodes, and with no ideal."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.roce import RoceFacts, RocePort
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.roce_settings_differ import roce_settings_differ

CHECK = [roce_settings_differ]
LOSSLESS = RocePort("eth2", (3,), ((26, 3),), (3,), (3,), "Global tclass=106", "106")
SHOWN_LITTLE = RocePort("eth2")


def node(port: RocePort, *names: str, state: str = "Active") -> Facts:
    names = names or ("mlx5_0", "mlx5_1")
    adapters = tuple(HcaPort(name, 1, state, "LinkUp", 400, "Ethernet", netdev="eth2") for name in names)
    return {
        RoceFacts: RoceFacts({f"{name}:1": port for name in names}),
        InfinibandFacts: InfinibandFacts(adapters, "sysfs"),
        LibraryFacts: LibraryFacts("", NO_HCA),
        GpuFacts: Absent("no NVIDIA GPU"),
    }


def test_flow_control_that_is_off_on_one_node_is_named_with_all_ports() -> None:
    well, ill = node(LOSSLESS), node(replace(LOSSLESS, pfc=()))
    assert judge(CHECK, {"n1": well, "n2": well, "n3": ill}).findings == [
        Finding("NC430", "roce-settings-differ", Severity.WARNING, ("n3",),
                "priority flow control differs on mlx5_0:1, mlx5_1:1: priority 3 on n[1-2], off on n3 (2 to 1)", (),
                "dcb pfc show dev eth2", kind="look", summary="priority flow control of RoCE differs"),
    ]  # fmt: skip


def test_each_setting_is_compared() -> None:
    other = RocePort("eth2", (3, 4), (), (3, 4), (), "", "")
    found = judge(CHECK, {"n1": node(LOSSLESS), "n2": node(other)}).findings
    assert [one.message.partition(":1: ")[2] for one in found] == [
        "priority 3 on n1, priorities 3, 4 on n2 (1 to 1)",
        "DSCP on n1, VLAN priority on n2 (1 to 1)",
        "priority 3 on n1, priorities 3, 4 on n2 (1 to 1)",
        "priority 3 on n1, off on n2 (1 to 1)",
        "Global tclass=106 on n1, not set on n2 (1 to 1)",
        "106 on n1, not set on n2 (1 to 1)",
    ]
    (mapped,) = judge(CHECK, {"n1": node(LOSSLESS), "n2": node(replace(LOSSLESS, dscp=((26, 4),)))}).findings
    assert mapped.message.startswith("the priority of each DSCP differs on mlx5_0:1, mlx5_1:1: 26 to 3 on n1, 26 to 4")


def test_nodes_that_name_their_adapters_differently_are_compared_as_a_whole() -> None:
    (found,) = judge(CHECK, {"n1": node(LOSSLESS), "n2": node(replace(LOSSLESS, pfc=()), "roce0", "roce1")}).findings
    assert found.message == "priority flow control differs on all ports: priority 3 on n1, off on n2 (1 to 1)"
    assert judge(CHECK, {"n1": node(LOSSLESS), "n2": node(LOSSLESS, "roce0", "roce1")}).findings == []


def test_lossy_networks_hidden_settings_and_unused_ports_are_no_difference() -> None:
    lossy = node(RocePort("eth2", (), ()))
    assert judge(CHECK, {"n1": lossy, "n2": lossy}).findings == []
    assert judge(CHECK, {"n1": node(LOSSLESS), "n2": node(SHOWN_LITTLE)}).findings == []
    assert (
        judge(
            CHECK, {"n1": node(LOSSLESS), "n2": node(LOSSLESS), "n3": node(RocePort("eth2", ()), state="Down")}
        ).findings
        == []
    )


def test_a_node_without_roce_is_skipped_and_one_that_could_not_be_read_is_unknown() -> None:
    without, unread = (
        {**node(LOSSLESS), RoceFacts: Absent("no RoCE port")},
        {**node(LOSSLESS), RoceFacts: Unread("lost")},
    )
    judgement = judge(CHECK, {"n1": without, "n2": unread, "n3": node(LOSSLESS), "n4": node(LOSSLESS)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [
        Outcome.SKIPPED, Outcome.UNKNOWN, Outcome.PASSED, Outcome.PASSED,
    ]  # fmt: skip
