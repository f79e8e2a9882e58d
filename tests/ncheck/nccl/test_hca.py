"""Which ports NCCL_IB_HCA selects, and which GID is RoCE v2 with an IPv4 address."""

from __future__ import annotations

import pytest
from ncheck.facts.infiniband import Gid, HcaPort
from ncheck.nccl.hca import gid_position, ipv4_index, selected, value_for


def port(hca: str, number: int = 1, state: str = "Active", gids: tuple[Gid, ...] = ()) -> HcaPort:
    return HcaPort(hca, number, state, "LinkUp", 400.0, "InfiniBand", gids=gids)


@pytest.mark.parametrize(("value", "names"), [
    ("", "=mlx5_1:1,mlx5_2:2,mlx5_10:1"), ("mlx5_1", "=mlx5_1:1,mlx5_10:1"), ("=mlx5_1", "=mlx5_1:1"),
    ("=mlx5_2:1", "="), ("mlx5_2:2", "=mlx5_2:2"), ("^mlx5_1", "=mlx5_2:2"), ("^=mlx5_1", "=mlx5_2:2,mlx5_10:1"),
])  # fmt: skip
def test_a_list_is_read_as_nccl_reads_it(value: str, names: str) -> None:
    ports = (port("mlx5_10"), port("mlx5_1"), port("mlx5_2", 2), port("mlx5_3", state="Down"))
    assert value_for(selected(value, ports)) == names


def test_the_first_gid_of_roce_v2_with_an_ipv4_address_counts() -> None:
    six, four = "fe80:0000:0000:0000:0000:00ff:fe00:0001", "0000:0000:0000:0000:0000:ffff:0a01:0007"
    gids = (
        Gid(0, six, "RoCE v2"),
        Gid(1, four, "IB/RoCE v1"),
        Gid(2, "no address", "RoCE v2"),
        Gid(3, four, "RoCE v2"),
    )
    assert (ipv4_index(port("mlx5_0", gids=gids)), ipv4_index(port("mlx5_0", gids=gids[:3]))) == (3, None)
    assert gid_position(port("mlx5_0", gids=gids)) == "mlx5_0:1: RoCE v2 with an IPv4 address at index 3"
    assert gid_position(port("mlx5_0")) == "mlx5_0:1: RoCE v2 with an IPv4 address not found"
