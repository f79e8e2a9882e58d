"""A real NCCL on every host is asked what it picks: by itself, under the plan, and with a bad file in the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import faults, layers
from .command import Run
from .hosts import Lab
from .node import Node
from .promises import examined
from .ward import BETWEEN_NODES, selected

PLACE = f"{layers.PACKAGES}/nvidia/nccl/lib/libnccl.so.2"

Folder = Callable[[str], Path]


def real_nccl(lab: Lab, folder: Path) -> None:
    """Put this library where the job's python finds the wheel's, on every host."""
    lab.remake(*lab.nodes, real={PLACE: folder / "libnccl.so.2"})


# Without the search for duplicates an IPv6 address can be used at once.
BRIDGE_FIRST = """
sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
ip netns add aside
ip link set eth0 netns aside
ip link add br-5b1d7c3e9f20 index 2 type bridge
ip address add 172.18.0.1/16 dev br-5b1d7c3e9f20
ip link set br-5b1d7c3e9f20 up
ip link add veth0 type veth peer name veth1
ip link set veth0 master br-5b1d7c3e9f20 up
ip link set veth1 up
ip -n aside link set eth0 netns 1
ip netns delete aside
ip address add {address}/24 dev eth0
ip link set eth0 up
ip route add default via 10.77.0.254
"""


def compose_bridge_first(node: Node) -> None:
    """Add the bridge of a compose network, the same on every host, in the place where the kernel lists eth0.

    As if eth0's driver had been loaded anew. A bridge with no member that is up would have no link.
    """
    node.sh("set -e; " + BRIDGE_FIRST.format(address=node.address))


@pytest.mark.parametrize("release", ["2.19.3", "2.28.3"])
def test_what_nccl_picks_is_told_by_itself_and_under_the_plan_it_picks_the_planned_interface(
    lab: Lab, nccl_folder: Folder, release: str
) -> None:
    real_nccl(lab, nccl_folder(release))
    for node in lab.nodes[:2]:
        compose_bridge_first(node)

    run = examined(lab, nodes=lab.names[:2])

    assert run.finding("NC304")["nodes"] == ["node01", "node02"]
    assert run.finding("NC304")["message"].startswith("NCCL would pick br-5b1d7c3e9f20 (container-bridge)")
    assert run.finding("NC304")["evidence"] == [f"asked NCCL {release} itself"]
    assert run.report["plan"]["env"]["NCCL_SOCKET_IFNAME"]["value"] == "=eth0"
    assert {run.verdicts()["NC324", name] for name in lab.names[:2]} == {"passed"}
    assert sum(code == "NC304" for code in run.failed()) == 1


def test_a_containers_veth_that_nccl_would_use_beside_the_card_is_an_error_until_the_fix_is_set(
    lab: Lab, nccl_folder: Folder
) -> None:
    real_nccl(lab, nccl_folder("2.28.3"))
    for node in lab.nodes[:2]:
        faults.container_veth(node)

    run = examined(lab, nodes=lab.names[:2])

    assert (run.exit_code, run.failed()) == (1, {"NC337": {"node01", "node02"}})
    found = run.finding("NC337")
    assert found["message"] == "NCCL would also send data over veth3f9a1c2 (a link-local address), and may hang"
    assert (found["fix"], found["where"]) == ("echo NCCL_SOCKET_IFNAME==eth0 >> ~/.nccl.conf", "")
    assert run.report["plan"]["blockers"] == []
    assert {run.verdicts()["NC324", name] for name in lab.names[:2]} == {"passed"}

    for node in lab.nodes[:2]:
        node.sh("export HOME=/root; " + found["fix"])
    mended = examined(lab, "--probe", "none", nodes=lab.names[:2])

    assert (mended.exit_code, mended.failed()) == (0, {})
    assert {mended.verdicts()["NC337", name] for name in lab.names[:2]} == {"passed"}
    setting = mended.report["plan"]["env"]["NCCL_SOCKET_IFNAME"]
    picks = "eth0 is in 10.77.0.0/24; NCCL picks eth0 (NCCL_SOCKET_IFNAME==eth0; asked NCCL 2.28.3 itself): node[01-02]"
    assert (setting["value"], setting["evidence"][0]) == (None, picks)


def test_where_nothing_is_in_the_way_nccl_is_right_by_itself_and_no_plan_is_tried(
    lab: Lab, nccl_folder: Folder
) -> None:
    real_nccl(lab, nccl_folder("2.28.3"))

    run = examined(lab, nodes=lab.names[:2])

    assert run.failed() == {}
    assert {run.verdicts()["NC304", name] for name in lab.names[:2]} == {"passed"}
    assert {run.verdicts()["NC324", name] for name in lab.names[:2]} == {"skipped"}
    assert run.report["plan"]["env"]["NCCL_SOCKET_IFNAME"]["value"] is None


def test_a_line_that_lets_lo_in_is_found_in_either_file_and_the_plan_outweighs_it(
    lab: Lab, nccl_folder: Folder, healthy: Run
) -> None:
    real_nccl(lab, nccl_folder("2.28.3"))
    for node in lab.nodes:
        faults.docker_bridge(node)
    lab.nodes[1].write("/etc/nccl.conf", "NCCL_SOCKET_IFNAME=^docker0\n")
    lab.nodes[2].write("/root/.nccl.conf", "NCCL_SOCKET_IFNAME=^docker0\n")

    run = examined(lab, *selected(healthy, *BETWEEN_NODES))

    failed = run.failed()
    assert {code: failed[code] for code in ("NC304", "NC323")} == {
        "NC304": {"node02", "node03"}, "NC323": {"node02", "node03"},
    }  # fmt: skip
    picked = {finding["message"]: finding["fix"] for finding in run.report["findings"] if finding["code"] == "NC304"}
    assert picked.keys() == {"NCCL would pick lo (loopback): NCCL_SOCKET_IFNAME=^docker0"}
    told = {finding["message"] for finding in run.report["findings"] if finding["code"] == "NC323"}
    assert told == {
        f"NCCL_SOCKET_IFNAME=^docker0 in {file} excludes docker0, but not lo"
        for file in ("/etc/nccl.conf", "/root/.nccl.conf")
    }
    assert {run.verdicts()["NC324", name] for name in lab.names} == {"passed"}


def test_a_family_of_addresses_that_leads_astray_is_named_on_its_node_and_outweighed_by_the_plan(
    lab: Lab, nccl_folder: Folder, healthy: Run
) -> None:
    real_nccl(lab, nccl_folder("2.28.3"))
    for node in lab.nodes:
        compose_bridge_first(node)
    lab.nodes[3].write("/etc/nccl.conf", "NCCL_SOCKET_FAMILY=AF_INET6\n")

    run = examined(lab, *selected(healthy, *BETWEEN_NODES))

    assert run.failed()["NC335"] == {"node04"}
    (told,) = (
        finding["message"]
        for finding in run.report["findings"]
        if finding["nodes"] == ["node04"] and finding["code"] == "NC304"
    )
    assert told.startswith("NCCL would pick br-5b1d7c3e9f20 (container-bridge) at a link-local address: ")
    assert run.report["plan"]["env"]["NCCL_SOCKET_FAMILY"]["value"] == "AF_INET"
    assert {run.verdicts()["NC324", name] for name in lab.names} == {"passed"}
