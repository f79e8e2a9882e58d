"""The groups that somebody names: --groups, read strictly, and what Slurm prints of its switches and blocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.errors import SettingsError
from ncheck.facts.gpu_health import Fabric, GpuHealth, GpuHealthFacts
from ncheck.inventory.groups import given_groups
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Absent
from ncheck.probe.facts import GIVEN, SLURM, TOPOLOGY, GroupFacts, named_groups, slurm_groups
from ncheck.probe.group_search import DOMAINS, NEIGHBOURS, grouping
from ncheck.probe.links.hardware import NodeHardware

NODES = ("n1", "n2", "n3", "n4")
# The form of Slurm's scontrol(1) and topology.conf(5): switches as a tree, and blocks.
TREE = """SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[3-4,9]
SwitchName=empty Level=0 LinkSpeed=1 Nodes=(null)
SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4,9] Switches=leaf[1-2]
"""
BLOCKS = "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"


def slurm(stdout: str, status: Status = Status.OK, **more: int) -> Evidence:
    reply = Reply(status, stdout=stdout, exit_status=0)
    return Evidence("n1", Login(reached=True), replies={TOPOLOGY.key: replace(reply, **more)})  # type: ignore[arg-type]


def test_the_leaf_switches_and_the_blocks_of_slurm_are_groups() -> None:
    assert named_groups(slurm(TREE)) == GroupFacts({"leaf1": ("n1", "n2"), "leaf2": ("n3", "n4", "n9")}, SLURM)
    assert named_groups(slurm(BLOCKS)) == GroupFacts({"b1": ("n1", "n2"), "b2": ("n3", "n4")}, SLURM)


@pytest.mark.parametrize(("evidence", "reason"), [
    (slurm(""), "Slurm knows no switches"),
    (slurm("", Status.MISSING), "scontrol show topology not found"),
    (slurm("SwitchName=a Level=0 Nodes=n[1-\n"), "scontrol show topology cannot be read: "),
    (Evidence("n1", Login(reached=True)), "it was not needed"),
])  # fmt: skip
def test_without_slurm_nobody_names_groups_and_that_is_no_trouble(evidence: Evidence, reason: str) -> None:
    found = named_groups(evidence)
    assert isinstance(found, Absent)
    assert found.reason.startswith(reason)


def test_the_switches_of_slurm_have_at_most_so_many_nodes_together() -> None:
    with pytest.raises(ValueError, match="more than 4 nodes"):
        slurm_groups(TREE, 4)


def test_what_the_option_names_counts_and_a_recording_has_it() -> None:
    value = {"groups": {"rack 1": ["n1", "n2"], "rack 2": ["n3"]}}
    evidence = slurm(TREE)
    evidence = replace(evidence, replies={**evidence.replies, GIVEN.key: Reply(Status.OK, value=value)})  # type: ignore[arg-type]
    assert named_groups(evidence) == GroupFacts({"rack 1": ("n1", "n2"), "rack 2": ("n3",)}, "--groups")


def test_the_option_takes_groups_or_a_file_of_them(tmp_path: Path) -> None:
    groups = {"leaf1": ("n1", "n2"), "leaf2": ("n3", "n4")}
    assert given_groups("leaf1=n[1-2];leaf2=n3,n4", NODES) == groups
    file = tmp_path / "groups.txt"
    file.write_text("# racks\nleaf1=n1\n\nleaf2 = n[3-4]  # the far one\nleaf1=n2\n")
    assert given_groups(str(file), NODES) == groups


@pytest.mark.parametrize(("text", "message"), [
    ("a=n1;b=n5", "--groups: n5 of 'b' is not among the nodes of this run"),
    ("a=n[1-2];b=n[2-3]", "--groups: n2 is in two groups, 'a' and 'b'"),
    ("a=n[1-2];b", "--groups: expected NAME=NODES, as in leaf1=node[01-16], not 'b'"),
    ("=n1;b=n2", "--groups: expected NAME=NODES, as in leaf1=node[01-16], not '=n1'"),
    ("a=n[1-4]", "--groups: 1 group; there is nothing between fewer than two"),
    ("a=n[1-;b=n2", "--groups: "),
    ("nowhere.txt", "--groups nowhere.txt: no such file; or write the groups: --groups 'leaf1=a,b;leaf2=c,d'"),
])  # fmt: skip
def test_what_is_no_group_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        given_groups(text, NODES)
    assert str(refused.value).startswith(message)


def test_a_line_of_a_file_is_refused_by_its_number(tmp_path: Path) -> None:
    file = tmp_path / "groups.txt"
    file.write_text("a=n1\nb=n2\nc=n1\n")
    with pytest.raises(SettingsError, match=r"groups.txt:3: n1 is in two groups, 'a' and 'c'"):
        given_groups(str(file), NODES)
    file.write_bytes(b"a=\xff\n")
    with pytest.raises(SettingsError, match=r"groups\.txt: "):
        given_groups(str(file), NODES)


def domain(number: int) -> NodeHardware:
    gpus = tuple(GpuHealth(index, fabric=Fabric(3, cluster=f"{number:032x}")) for index in range(4))
    return NodeHardware(health=GpuHealthFacts(gpus))


def test_names_count_then_nvlink_domains_then_neighbours_of_the_list() -> None:
    racks = {node: domain(number // 2) for number, node in enumerate(NODES)}
    slurms = GroupFacts({"leaf1": ("n1", "n2"), "leaf2": ("n3", "n9")}, SLURM)
    assert grouping([slurms], racks, NODES).groups == {"leaf1": ("n1", "n2"), "leaf2": ("n3",)}
    assert grouping([slurms], {}, ("n1.site", "n3.site")).groups == {"leaf1": ("n1.site",), "leaf2": ("n3.site",)}
    one_leaf = GroupFacts({"leaf1": NODES}, SLURM)
    by_domain = grouping([one_leaf], racks, NODES)
    assert (by_domain.source, by_domain.guessed) == (DOMAINS, False)
    assert by_domain.groups == {"NVLink domain of n1": ("n1", "n2"), "NVLink domain of n3": ("n3", "n4")}
    guessed = grouping([one_leaf], {**racks, "n4": NodeHardware()}, NODES)
    assert (guessed.source, guessed.guessed) == (NEIGHBOURS, True)
    assert guessed.groups == {"n1": ("n1", "n2"), "n3": ("n3", "n4")}
