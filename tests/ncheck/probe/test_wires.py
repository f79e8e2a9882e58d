"""What shows the links of a step fits the network that carried it."""

from __future__ import annotations

from dataclasses import replace

from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.node_result import Carried, Method, Stage
from ncheck.probe.shortfalls import by_infiniband, shows_links

from tests.ncheck.probe.machines import H100, board, rail, ran, with_rails

NAMES = ("n1", "n2")
FABRIC = with_rails(board(H100, 8), rail(0))
ROCE = with_rails(board(H100, 8), replace(rail(0), link_layer="Ethernet", netdev="ens1np0"))
PLANNED = ("mlx5_0:1", "eno1")


def line(
    hardware: NodeHardware, *planned: str, net: str = "", used: str = "", method: Method = Method.NCCL, **sent: int
) -> str:
    carried = {device: Carried(count, count) for device, count in sent.items()}
    run = ran(Stage.ALL, NAMES, 8, planned=planned, net=net, method=method, used=(used,), carried=carried)
    return shows_links(run.results, dict.fromkeys(NAMES, hardware))


def test_a_fabric_shows_all_its_links_at_once() -> None:
    assert line(FABRIC, *PLANNED, net="IB") == "sudo iblinkinfo"
    assert line(NodeHardware(), *PLANNED, net="IB") == "sudo iblinkinfo"


def test_roce_goes_by_the_interface_of_its_port() -> None:
    assert line(ROCE, *PLANNED, net="IB") == "sudo ethtool -S ens1np0"


def test_sockets_go_by_the_interface_that_carried_most() -> None:
    assert line(FABRIC, *PLANNED, net="Socket") == "sudo ethtool -S eno1"
    assert line(FABRIC, "eno1", "eno2", net="Socket", eno1=10, eno2=2**30) == "sudo ethtool -S eno2"
    assert line(FABRIC, *PLANNED, used="NCCL INFO NET/Socket : Using [0]eno1:10.0.0.1<0>") == "sudo ethtool -S eno1"
    assert line(FABRIC, *PLANNED, method=Method.GLOO) == "sudo ethtool -S eno1"


def test_where_no_interface_is_known_all_are_shown() -> None:
    assert line(NodeHardware(), net="Socket") == "ip -s link"
    assert line(with_rails(board(H100, 8), replace(rail(0), link_layer="Ethernet")), "mlx5_0:1") == "ip -s link"


def test_only_infiniband_is_a_fabric() -> None:
    (result, _) = ran(Stage.PAIR, NAMES, 1, planned=PLANNED, net="IB").results.values()
    assert [by_infiniband(result, hardware) for hardware in (FABRIC, ROCE)] == [True, False]
