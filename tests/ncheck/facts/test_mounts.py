"""The table of mounts: network file systems, and places of an automounter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.agent import mount_table
from ncheck.agent.commands import run
from ncheck.facts.learning import facts_of
from ncheck.facts.mounts import MOUNTS, NETWORK, Mount, MountFacts
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

TABLE = """\
10.20.0.2:/export/home /home nfs4 rw,relatime,vers=4.2 0 0
mds@o2ib:/data /mnt/my\\040data lustre ro,flock 0 0
[fd00::2]:/v6 /v6 nfs4 rw 0 0
shared /vm virtiofs rw 0 0
auto.home /net autofs rw,relatime,fd=6 0 0
"""


def read(answered: Answered, text: str, status: int = 0) -> object:
    reply = Reply(Status.OK, exit_status=status, stdout=text)
    return facts_of(answered({MOUNTS: reply}), [MountFacts])[MountFacts]


def test_each_line_is_read(answered: Answered) -> None:
    facts = read(answered, TABLE)
    shared = {
        "/home": Mount("nfs4", server="10.20.0.2"), "/mnt/my data": Mount("lustre", read_only=True),
        "/v6": Mount("nfs4", server="fd00::2"), "/vm": Mount("virtiofs"),
    }  # fmt: skip
    assert facts == MountFacts(shared, ("/net",))
    assert [facts.may_come(path) for path in ("/net", "/net/ada", "/network")] == [True, True, False]
    assert read(answered, "") == MountFacts({})


def test_what_one_pod_has_mounted_for_itself_is_none_of_the_nodes(answered: Answered) -> None:
    volume = "/var/lib/kubelet/plugins/kubernetes.io/csi/rook-ceph.cephfs.csi.ceph.com/4e1/globalmount"
    assert read(answered, f"10.0.0.1:6789:/volumes/a {volume} ceph rw,relatime 0 0\n") == MountFacts({})


@pytest.mark.parametrize(("text", "status"), [("x\n", 0), ("a b nfs\n", 0), ("", 2)])
def test_another_text_or_a_failure_is_unread(answered: Answered, text: str, status: int) -> None:
    assert isinstance(read(answered, text, status), Unread)


def test_the_command_succeeds_where_nothing_is_mounted_from_the_network() -> None:
    assert run(list(MOUNTS.argv), 20.0)["exit_status"] == 0


def test_the_agent_takes_the_same_types_for_network_file_systems_and_those_of_one_node() -> None:
    assert [kind for kind in NETWORK if not mount_table.NETWORK.match(kind)] == []
    named = (
        mount_table.NETWORK.pattern.removeprefix("^(?:").partition("|fuse(")[0].replace("nfs4?", "nfs|nfs4").split("|")
    )
    assert {kind for kind in named if kind not in NETWORK} == {"9p"}
