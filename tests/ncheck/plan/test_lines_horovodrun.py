"""horovodrun's line: what it is told of interfaces, and how long it waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.local_host import Head
from ncheck.plan.launchers import LINES

from .jobs import SUBNET, launch, line


def test_horovodrun_waits_longer_for_many_nodes() -> None:
    def timeout(count: int) -> str:
        words = line("horovodrun", launch(*(f"n{index}" for index in range(1, count + 1)))).split()
        return words[words.index("--start-timeout") + 1] if "--start-timeout" in words else ""

    assert [timeout(count) for count in (16, 17, 64)] == ["", "60", "120"]


@pytest.mark.parametrize(("cards", "interfaces", "wanted"), [
    (("eth0", "eth0"), ({"eth0"}, {"eth0", "eno1"}), "--network-interfaces eth0 python"),
    (("eth1", "eth1"), ({"eth1", "eth10"}, {"eth1"}),
     f"--network-interfaces {SUBNET} env NCCL_SOCKET_IFNAME==eth1 python"),
    (("eno1", "enp3s0"), ({"lo", "eno1"}, {"lo", "enp3s0"}),
     f"--network-interfaces {SUBNET} env NCCL_SOCKET_IFNAME==eno1,enp3s0 python"),
])  # fmt: skip
def test_horovodrun_is_given_a_name_only_where_it_is_right_for_mpi_and_as_a_beginning_for_nccl(
    cards: tuple[str, ...], interfaces: tuple[set[str], ...], wanted: str
) -> None:
    job = launch(cards=cards, interfaces=tuple(frozenset(names) for names in interfaces))
    assert line("horovodrun", job).startswith("env GLOO_SOCKET_IFNAME=eth0 horovodrun ")
    assert wanted in line("horovodrun", job)


def test_horovodruns_subnet_does_not_reach_nccl_where_nothing_is_set_for_it() -> None:
    apart = launch(cards=("eno1", "enp3s0"), variables={})
    assert line("horovodrun", apart).endswith(
        f" --network-interfaces {SUBNET} env -u NCCL_SOCKET_IFNAME python train.py"
    )


def test_horovodrun_looks_itself_where_nothing_can_be_named() -> None:
    job = launch(cards=("eno1", "enp3s0"))
    assert job.network
    routed = replace(job, network=replace(job.network, subnet=""))
    assert line("horovodrun", routed).endswith(" -H n1:2,n2:2 --disable-cache python train.py")


def test_horovodrun_says_where_only_a_horovod_with_mpi_gets_along() -> None:
    apart = launch(cards=("eno1", "enp3s0"))
    assert LINES["horovodrun"](apart).reasons == (
        f"no interface name stands for {SUBNET} on all nodes: MPI gets the subnet, NCCL its own variable",
        "a Horovod without MPI (gloo) needs one name for all nodes and cannot start with this line",
    )
    elsewhere = launch(head=Head({"10.9.0.9": "eno1"}))
    told = "a Horovod without MPI (gloo) needs eth0 on this machine too, which has none: type the line on a node"
    assert LINES["horovodrun"](elsewhere).reasons == (told,)
    assert LINES["horovodrun"](launch(head=Head({"10.1.0.9": "eth0"}))).reasons == ()
