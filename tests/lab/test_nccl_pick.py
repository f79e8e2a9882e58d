"""A real NCCL on every host is asked what it picks: by itself, under the plan, and with a bad file in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import faults, layers
from .command import Run
from .hosts import Lab
from .node import Node
from .promises import examined
from .ward import Row, Ward, hold, on, ward

PLACE = f"{layers.PACKAGES}/nvidia/nccl/lib/libnccl.so.2"

OF_THE_PLAN = ("--select", "NC11,NC2,NC3,NC4,NC5")  # all that a plan is made of

Folder = Callable[[str], Path]


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


def real_nccl(lab: Lab, folder: Path) -> None:
    """Put this library where the job's python finds the wheel's, on two hosts."""
    lab.remake(*lab.nodes[:2], real={PLACE: folder / "libnccl.so.2"})


def let_in_lo(node: Node, file: str) -> None:
    faults.docker_bridge(node)
    node.write(file, "NCCL_SOCKET_IFNAME=^docker0\n")


def family_astray(node: Node) -> None:
    compose_bridge_first(node)
    node.write("/etc/nccl.conf", "NCCL_SOCKET_FAMILY=AF_INET6\n")


BRIDGE, LO = "NCCL would pick br-5b1d7c3e9f20 (container-bridge)", "NCCL would pick lo (loopback): "
FIRST = "the first in the kernel's order except docker*"
# NC356: a bridge of containers has the same address on several nodes.
ROWS = (
    Row("a compose bridge before eth0, for an old NCCL", "NC304 NC201 NC356", on(compose_bridge_first),
        f"{BRIDGE}: {FIRST} and lo"),
    Row("a compose bridge before eth0", "NC304 NC356", on(compose_bridge_first), f"{BRIDGE}: {FIRST}, lo and virbr*"),
    Row("a container's veth", "NC337", on(faults.container_veth),
        "NCCL would also send data over veth3f9a1c2 (a link-local address), and may hang"),
    Row("lo let in by /etc/nccl.conf", "NC304 NC323 NC356", on(let_in_lo, "/etc/nccl.conf"),
        f"{LO}NCCL_SOCKET_IFNAME=^docker0"),
    Row("lo let in by ~/.nccl.conf", "NC304 NC323 NC356", on(let_in_lo, "/root/.nccl.conf"),
        f"{LO}NCCL_SOCKET_IFNAME=^docker0"),
    Row("NCCL_SOCKET_FAMILY=AF_INET6", "NC304 NC335 NC356", on(family_astray), f"{BRIDGE} at a link-local address: "),
)  # fmt: skip
OLD = ROWS[0].fault


@pytest.fixture(scope="module")
def astray(nccl_folder: Folder) -> Iterator[Ward]:
    """Put the real library where the job's python finds the wheel's; on one host an old one."""
    old, new = (nccl_folder(release) / "libnccl.so.2" for release in ("2.19.3", "2.28.3"))

    def prepare(made: Ward) -> None:
        made.lab.remake(*made.lab.nodes, real={PLACE: new})
        made.lab.remake(made.node(OLD), real={PLACE: old})

    with ward(ROWS, prepare=prepare) as made:
        yield made


@pytest.fixture(scope="module")
def run(astray: Ward) -> Run:
    return astray.examined(*OF_THE_PLAN)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_what_nccl_picks_is_told_by_itself_and_under_the_plan_it_picks_the_planned_interface(
    astray: Ward, run: Run, row: Row
) -> None:
    node = hold(astray, run, row)

    assert run.verdicts()["NC324", node] == "passed"


def test_those_that_nccl_is_right_on_are_whole_and_the_plan_outweighs_what_leads_astray(astray: Ward, run: Run) -> None:
    assert run.failed() == astray.failing
    assert {run.verdicts()["NC324", name] for name in astray.whole} == {"passed"}
    plan = run.report["plan"]["env"]
    assert (plan["NCCL_SOCKET_IFNAME"]["value"], plan["NCCL_SOCKET_FAMILY"]["value"]) == ("=eth0", "AF_INET")


def test_nccl_is_asked_itself_and_each_line_is_told_with_its_file(astray: Ward, run: Run) -> None:
    asked = {name: f["evidence"] for f in run.report["findings"] if f["code"] == "NC304" for name in f["nodes"]}
    assert asked == {
        name: [f"asked NCCL {'2.19.3' if name == astray.node(OLD).name else '2.28.3'} itself"] for name in asked
    }
    told = {finding["message"] for finding in run.report["findings"] if finding["code"] == "NC323"}
    assert told == {
        f"NCCL_SOCKET_IFNAME=^docker0 in {file} excludes docker0, but not lo"
        for file in ("/etc/nccl.conf", "/root/.nccl.conf")
    }


def test_a_containers_veth_that_nccl_would_use_beside_the_card_is_an_error_until_the_fix_is_set(
    lab: Lab, nccl_folder: Folder
) -> None:
    real_nccl(lab, nccl_folder("2.28.3"))
    for node in lab.nodes[:2]:
        faults.container_veth(node)

    run = examined(lab, *OF_THE_PLAN, nodes=lab.names[:2])

    assert (run.exit_code, run.failed()) == (1, {"NC337": {"node01", "node02"}})
    found = run.finding("NC337")
    assert found["message"] == "NCCL would also send data over veth3f9a1c2 (a link-local address), and may hang"
    assert (found["fix"], found["where"]) == ("echo NCCL_SOCKET_IFNAME==eth0 >> ~/.nccl.conf", "")
    assert run.report["plan"]["blockers"] == []
    assert {run.verdicts()["NC324", name] for name in lab.names[:2]} == {"passed"}

    for node in lab.nodes[:2]:
        node.sh("export HOME=/root; " + found["fix"])
    mended = examined(lab, *OF_THE_PLAN, nodes=lab.names[:2])

    assert (mended.exit_code, mended.failed()) == (0, {})
    assert {mended.verdicts()["NC337", name] for name in lab.names[:2]} == {"passed"}
    setting = mended.report["plan"]["env"]["NCCL_SOCKET_IFNAME"]
    picks = "eth0 is in 10.77.0.0/24; NCCL picks eth0 (NCCL_SOCKET_IFNAME==eth0; asked NCCL 2.28.3 itself): node[01-02]"
    assert (setting["value"], setting["evidence"][0]) == (None, picks)


def test_where_nothing_is_in_the_way_nccl_is_right_by_itself_and_no_plan_is_tried(
    lab: Lab, nccl_folder: Folder
) -> None:
    real_nccl(lab, nccl_folder("2.28.3"))

    run = examined(lab, *OF_THE_PLAN, nodes=lab.names[:2])

    assert run.failed() == {}
    assert {run.verdicts()["NC304", name] for name in lab.names[:2]} == {"passed"}
    assert {run.verdicts()["NC324", name] for name in lab.names[:2]} == {"skipped"}
    assert run.report["plan"]["env"]["NCCL_SOCKET_IFNAME"]["value"] is None
