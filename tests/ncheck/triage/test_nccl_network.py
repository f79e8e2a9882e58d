"""NCCL's lines about its network, from each release."""

from __future__ import annotations

import pytest
from ncheck.triage.nccl_network import NetworkUse, Role, network_uses

ETH0 = NetworkUse(Role.BOOTSTRAP, "eth0", "10.1.0.1")


@pytest.mark.parametrize(
    ("line", "uses"),
    [
        ("n1:7:7 [0] NCCL INFO Bootstrap : Using [0]eth0:10.1.0.1<0> [1]eth1:10.2.0.1<0>",
         (ETH0, NetworkUse(Role.BOOTSTRAP, "eth1", "10.2.0.1"))),
        ("n1:7:7 [0] NCCL INFO Bootstrap : Using eth0:10.1.0.1<0>", (ETH0,)),
        ("n1:7:7 [0] NCCL INFO Bootstrap: Using eth0:10.1.0.1<0>", (ETH0,)),
        ("n1:7:7 [0] NCCL INFO NET : Using interface lo:127.0.0.1<0>", (NetworkUse(Role.SOCKET, "lo", "127.0.0.1"),)),
        ("n1:7:7 [0] NCCL INFO NET/Socket : Using [0]ib0:fe80::1:2%ib0<0> [1]bond0.7:2001:db8::5<0>",
         (NetworkUse(Role.SOCKET, "ib0", "fe80::1:2%ib0"), NetworkUse(Role.SOCKET, "bond0.7", "2001:db8::5"))),
        ("n1:7:8 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_bond_0:1/RoCE [RO]; OOB eth0:10.1.0.1<0>",
         (NetworkUse(Role.RDMA, "mlx5_0:1", link="IB"), NetworkUse(Role.RDMA, "mlx5_bond_0:1", link="RoCE"),
          NetworkUse(Role.HANDSHAKE, "eth0", "10.1.0.1"))),
        ("n1:7:8 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB ib0:10.3.0.1<0>",
         (NetworkUse(Role.RDMA, "mlx5_0:1", link="IB"), NetworkUse(Role.HANDSHAKE, "ib0", "10.3.0.1"))),
        ("n1:7:8 [0] NCCL INFO Using network AWS Libfabric", (NetworkUse(Role.NETWORK, "AWS Libfabric"),)),
        ("n1:7:8 [0] NCCL INFO Assigned NET plugin IB to comm", (NetworkUse(Role.NETWORK, "IB"),)),
        ("n1:7:8 [0] NCCL INFO Using 256 threads, Min Comp Cap 7, Trees disabled", ()),
        ("n1:7:8 [0] NCCL INFO NET/IB : No device found.", ()),
    ],
)  # fmt: skip
def test_the_lines_of_each_release_are_read(line: str, uses: tuple[NetworkUse, ...]) -> None:
    assert network_uses([line]) == uses


def test_what_every_rank_prints_is_returned_once() -> None:
    assert network_uses(["Bootstrap: Using eth0:10.1.0.1<0>", "nothing", "Bootstrap : Using [0]eth0:10.1.0.1<0>"]) == (
        ETH0,
    )


@pytest.mark.parametrize(
    "line", ["Bootstrap : Using " + "[0]" * 5000, "NET/IB : Using " + "[1]a/" * 3000, "Using network "]
)
def test_nonsense_names_nothing(line: str) -> None:
    assert network_uses([line]) == ()
