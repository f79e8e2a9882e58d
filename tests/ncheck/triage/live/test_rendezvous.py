"""Where the ranks of a job look for each other, and who looks elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from ncheck.facts.names import Resolved
from ncheck.model.cluster import Cluster
from ncheck.model.job import Job, Process, RankProcess
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.facts.sockets import Listener, SocketsFacts
from ncheck.triage.live.rendezvous import signs

from .jobs import job, process
from .wired import SPACE, connected, facts, ip, listens, named, place

BARE = {"MASTER_ADDR": "gpu0", "MASTER_PORT": "29500", "WORLD_SIZE": "3"}


def one(number: int, node: str = "", **variables: str) -> RankProcess:
    held = process(4000 + number, namespace=SPACE, variables={**BARE, "RANK": str(number), **variables})
    return RankProcess(number, node or f"node{number}", held, int((held.variables or {})["WORLD_SIZE"]))


THREE = (one(0), one(1), one(2))
OPEN = (Listener("::", 29500, asked=True),)


def known(
    of: Job, *sockets: Any, names: Mapping[str, Mapping[str, Resolved]] | None = None,
    listeners: tuple[Listener, ...] = OPEN, **places: Any,
) -> Cluster:  # fmt: skip
    """Return the cluster; gpu0 is node0 for all ranks, and rank 0 listens there."""
    places.setdefault("node0", place("node0"))
    places["node0"] = replace(places["node0"], listeners=listeners)
    usual = {"gpu0": Resolved((ip("node0"),))}
    held = {node: facts(of, node, *sockets, **places) for node in of.nodes}
    return Cluster.of({
        node: {SocketsFacts: replace(one, names={**usual, **(names or {}).get(node, {})})} for node, one in held.items()
    })  # fmt: skip


def said(of: Job, cluster: Cluster) -> list[Any]:
    return named(list(signs(of, cluster)))


def test_ranks_that_agree_are_not_accused() -> None:
    three = job(*THREE)
    assert said(three, known(three)) == []


@pytest.mark.parametrize(
    ("odd", "text"),
    [
        ({"MASTER_PORT": "29501"}, "rank 2 has MASTER_PORT=29501, the others MASTER_PORT=29500"),
        ({"WORLD_SIZE": "4"}, "rank 2 has WORLD_SIZE=4, the others WORLD_SIZE=3"),
    ],
)
def test_the_rank_whose_variables_differ_is_named(odd: dict[str, str], text: str) -> None:
    three = job(*THREE[:2], one(2, **odd))
    found = list(signs(three, known(three)))
    assert named(found) == [("rendezvous_misconfig", Grade.CERTAIN, (2,), ("node2",))]
    assert [clue.text for clue in found] == [text]


def test_of_two_ranks_that_differ_the_one_that_is_not_rank_0_is_meant() -> None:
    two = job(one(0), one(1, MASTER_PORT="29501"))
    assert said(two, known(two)) == [("rendezvous_misconfig", Grade.CERTAIN, (1,), ("node1",))]


def test_two_processes_of_one_number_are_named_unless_one_parent_started_both() -> None:
    twice = replace(one(2), process=replace(one(2).process, pid=9, parent=7))
    four = job(*THREE, twice)
    assert said(four, known(four)) == [("rendezvous_misconfig", Grade.CERTAIN, (2,), ("node2",))]
    beside = replace(one(2), process=replace(one(2).process, pid=9))
    four = job(*THREE, beside)
    assert said(four, known(four)) == []


def test_a_name_that_does_not_resolve_is_named_with_its_rank() -> None:
    three = job(*THREE)
    names = {"node1": {"gpu0": Resolved(error="Name or service not known")}}
    assert said(three, known(three, names=names)) == [("dns_failure", Grade.LIKELY, (1,), ("node1",))]


def test_a_name_that_resolves_to_loopback_is_wrong_where_rank_0_is_elsewhere() -> None:
    three = job(*THREE)
    names = {node: {"gpu0": Resolved(("127.0.1.1",))} for node in ("node0", "node2")}
    assert said(three, known(three, names=names)) == [("hostname_loopback", Grade.CERTAIN, (2,), ("node2",))]


def test_localhost_as_master_of_several_nodes_is_a_wrong_rendezvous() -> None:
    three = job(*THREE[:2], one(2, MASTER_ADDR="localhost"))
    names = {"node2": {"localhost": Resolved(("127.0.0.1",))}}
    assert said(three, known(three, names=names)) == [("rendezvous_misconfig", Grade.CERTAIN, (2,), ("node2",))]


def test_a_master_on_another_node_than_rank_0_is_named_unless_ranks_met_there() -> None:
    three = job(*THREE)
    names = {node: {"gpu0": Resolved((ip("node1"),))} for node in ("node0", "node1", "node2")}
    assert said(three, known(three, names=names)) == [("rendezvous_misconfig", Grade.CERTAIN, (), ())] * 3
    met = connected(THREE[2], THREE[1], port=29500 - THREE[1].pid)
    assert said(three, known(three, *met, names=names)) == []


def test_names_of_a_container_are_not_judged_by_those_of_its_node() -> None:
    inside = [replace(it, process=replace(it.process, namespace="net:[7]")) for it in THREE]
    three = job(*inside)
    names = {"node1": {"gpu0": Resolved(error="Name or service not known")}}
    assert said(three, known(three, names=names)) == []


def test_a_rendezvous_that_nobody_has_opened_names_rank_0() -> None:
    three = job(*THREE)
    assert said(three, known(three, listeners=())) == [("slow_rank_timeout", Grade.LIKELY, (0,), ("node0",))]
    met = connected(THREE[2], THREE[1])
    assert said(three, known(three, *met, listeners=())) == []  # they found each other by other means


def test_a_rendezvous_whose_port_a_stranger_has_is_in_use() -> None:
    three = job(*THREE)
    strange = (Listener("0.0.0.0", 29500, asked=False, pid=77, by="python3 (pid 77) of bob"),)  # noqa: S104
    found = list(signs(three, known(three, listeners=strange)))
    assert named(found) == [("port_in_use", Grade.LIKELY, (0,), ("node0",))]
    assert found[0].text == "python3 (pid 77) of bob listens on port 29500 of node0, where rank 0 should"


def test_a_store_of_a_process_above_the_ranks_is_no_stranger() -> None:
    three = job(*THREE, launchers={"node0": (process(77, name="my-agent"),)})
    above = (Listener("::", 29500, asked=False, pid=77, by="my-agent (pid 77) of ada"),)
    assert said(three, known(three, listeners=above)) == []


def test_a_rendezvous_that_listens_on_loopback_alone_cannot_be_reached() -> None:
    three = job(*THREE)
    alone = (Listener("127.0.1.1", 29500, asked=True),)
    assert said(three, known(three, listeners=alone)) == [("hostname_loopback", Grade.CERTAIN, (0,), ("node0",))]


@pytest.mark.parametrize(
    ("variable", "value", "cause"),
    [
        ("NCCL_SOCKET_IFNAME", "eth9", "no_interface"),
        ("NCCL_SOCKET_IFNAME", "=eth", "no_interface"),
        ("NCCL_SOCKET_IFNAME", "docker", "wrong_nic"),
        ("NCCL_SOCKET_IFNAME", "^eth,docker", "no_interface"),
        ("GLOO_SOCKET_IFNAME", "eth0,eth1", "no_interface"),
        ("GLOO_SOCKET_IFNAME", "lo", "wrong_nic"),
        ("OMPI_MCA_btl_tcp_if_include", "10.7.0.0/16", "no_interface"),
        ("NCCL_SOCKET_IFNAME", "eth", ""),
        ("NCCL_SOCKET_IFNAME", "=eth0", ""),
        ("NCCL_SOCKET_IFNAME", "^docker,lo", ""),
        ("GLOO_SOCKET_IFNAME", "eth0", ""),
        ("OMPI_MCA_btl_tcp_if_include", "10.0.0.0/16", ""),
        ("OMPI_MCA_btl_tcp_if_include", "ib0,eth0", ""),
    ],
)
def test_an_interface_variable_must_select_an_interface_that_leads_to_others(
    variable: str, value: str, cause: str
) -> None:
    three = job(*THREE[:2], one(2, **{variable: value}))
    there = place(
        "node2", interfaces=("lo", "eth0", "docker0"), addresses={ip("node2"): "eth0", "172.17.0.1": "docker0"}
    )
    expected = [(cause, Grade.LIKELY, (2,), ("node2",))] if cause else []
    assert said(three, known(three, node2=there)) == expected


@pytest.mark.parametrize(("moved", "grade"), [(100_000, Grade.ECHO), (300, Grade.LIKELY)])
def test_an_interface_that_leads_nowhere_is_a_note_once_its_rank_has_done_steps_with_others(
    moved: int, grade: Grade
) -> None:
    three = job(*THREE[:2], one(2, GLOO_SOCKET_IFNAME="lo"))
    near = {"acknowledged": moved, "received": moved}
    talks = connected(three.ranks[2], three.ranks[1], near, near)
    found = [one for one in signs(three, known(three, *talks)) if isinstance(one, Clue) and one.cause == "wrong_nic"]
    assert [(one.grade, one.ranks) for one in found] == [(grade, (2,))]


def torchrun(pid: int, name: str) -> Process:
    argv = ("python3", "/opt/venv/bin/torchrun", "--nnodes", "3", "--rdzv-backend", "c10d", *name.split(), "train.py")
    return process(pid, name="torchrun", argv=argv)


def test_a_torchrun_that_waits_under_another_id_is_named_with_its_node() -> None:
    ids = ("--rdzv-id=job-812", "--rdzv_id job-812", "--rdzv-id job-811")
    waiting = Job("launcher torchrun", (), None, {f"n{at}": (torchrun(9, name),) for at, name in enumerate(ids)})
    (found,) = signs(waiting, Cluster.of({}))
    assert isinstance(found, Clue)
    assert (found.cause, found.grade, found.nodes) == ("rendezvous_misconfig", Grade.CERTAIN, ("n2",))
    assert found.text == (
        "torchrun was started with different ids:"
        " --rdzv-id=job-812 on n0, --rdzv-id=job-812 on n1, --rdzv-id=job-811 on n2"
    )
    alike = Job("launcher torchrun", (), None, {f"n{at}": (torchrun(9, ids[0]),) for at in range(3)})
    assert list(signs(alike, Cluster.of({}))) == []


def test_a_rank_that_listens_on_its_hostnames_loopback_alone_is_named() -> None:
    three = job(*THREE)
    assert said(three, known(three, listens(THREE[1], 40001, "127.0.1.1"))) == [
        ("hostname_loopback", Grade.LIKELY, (1,), ("node1",))
    ]
    found = known(three, listens(THREE[1], 40001, "127.0.1.1"), listens(THREE[1], 40002))
    assert said(three, found) == []


def test_a_rank_that_listens_on_docker0_alone_is_named_unless_others_reached_it() -> None:
    three = job(*THREE)
    there: dict[str, Any] = {"node1": place("node1", addresses={ip("node1"): "eth0", "172.17.0.1": "docker0"})}
    ends = [listens(THREE[1], 40001, "172.17.0.1")]
    assert said(three, known(three, *ends, **there)) == [("wrong_nic", Grade.LIKELY, (1,), ("node1",))]
    assert said(three, known(three, *ends, *connected(THREE[1], THREE[0]), **there)) == []
