"""What settings, names and rules of real hosts do to a job: made on each, and named on it and on no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import faults, layers
from .command import Run
from .fixes import type_fixes, typed_in
from .hosts import Lab
from .layers import ADA
from .node import Node
from .promises import examined
from .ward import Row, Ward, hold, hold_whole, on, sh, ward
from .wiring import ip

MESH = "32768-60999"  # the ports that the kernel picks: the mesh's, and no sshd's
OF_SETTINGS = ("--select", ",".join(f"NC{number}" for number in (*range(339, 344), *range(350, 363), 371, 372)))


def second_card(lab: Lab, node: Node) -> None:
    """Plug a second card into the same network, and filter strictly what comes in."""
    ip(lab.pid, f"link add link wire0 name eth1 netns {node.pid} type macvlan mode bridge\n")
    strict = " ".join(f"net.ipv4.conf.{name}.rp_filter=1" for name in ("all", "eth0", "eth1"))
    node.sh(f"ip address add 10.77.0.204/24 dev eth1; ip link set eth1 up; sysctl -qw {strict}")


def name_astray(node: Node, name: str, address: str) -> None:
    """Let a node's hosts file tell another address of a name."""
    kept = [line for line in node.path("/etc/hosts").read_text().splitlines() if line.split()[-1] != name]
    node.write("/etc/hosts", "\n".join([f"{address} {name}", *kept]) + "\n")


def name_first_astray(node: Node) -> None:
    # The resolver sorts addresses, and this one shares more bits with 10.77.0.8 than 10.77.0.2 does.
    assert node.name == "node08"
    node.sh("sed '1i 10.77.0.15 node02' /etc/hosts > /run/hosts; cat /run/hosts > /etc/hosts")


def leave_rank(node: Node) -> None:
    for user in layers.USERS:
        line = "export RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost\nexport VLLM_HOST_IP=10.77.0.1\n"
        node.write(f"{user.home}/.bashrc", line, 0o644, user)
    raylet(node, node.address)


def raylet(node: Node, address: str) -> None:
    """Let a process of each user look like Ray's daemon; it ends with its node."""
    node.write("/run/raylet", "#!/bin/sh\nsleep 3600; :\n", 0o755)
    for user in layers.USERS:
        as_user = f"setsid setpriv --reuid={user.uid} --regid={user.uid} --clear-groups"
        node.sh(f"({as_user} /run/raylet --node_ip_address={address} --x > /dev/null 2>&1 < /dev/null &)")


def few_ports_and_ray(node: Node) -> None:
    node.sh("sysctl -qw net.ipv4.ip_local_port_range='50000 51000'")
    raylet(node, "127.0.0.1")


ROWS = (
    Row("a smaller MTU", "NC350", sh("ip link set eth0 mtu 1400")),
    Row("RANK and VLLM_HOST_IP left over in a start-up file", "NC341 NC343 NC372", on(leave_rank),
        "VLLM_HOST_IP=10.77.0.1, which is the address of node01", beside="a smaller MTU"),
    Row("rp_filter drops", "NC352 NC353", second_card),
    Row("few ephemeral ports, and Ray at a loopback address", "NC342 NC355", on(few_ports_and_ray),
        "Ray knows this node by 127.0.0.1, which leads every other node to itself"),
    Row("a name that resolves to another address", "NC361", on(name_astray, "node03", "10.77.0.99"),
        "node03 resolves to 10.77.0.99, which is not its address",
        beside="few ephemeral ports, and Ray at a loopback address"),
    Row("small TCP buffers", "NC371",
        sh("sysctl -qw net.ipv4.tcp_rmem='4096 4096 4096' net.ipv4.tcp_wmem='4096 4096 4096'")),
    Row("an own name that is loopback", "NC360", lambda _, node: name_astray(node, node.name, "127.0.1.1"),
        beside="small TCP buffers"),
    Row("an active firewall", "NC358 NC311",
        on(faults.firewall, "iifname lo accept", "ct state established,related accept", "tcp dport 22 accept", "drop")),
    Row("connections reset", "NC310", on(faults.firewall, f"tcp dport {MESH} {faults.SYN} reject with tcp reset"),
        "node07 cannot be reached on 10.77.0.0/24 by any node: refused; "),
    Row("a name that resolves first to a dead address", "NC339", on(name_first_astray),
        "node02 resolves to 10.77.0.15 (/etc/hosts, line 1), which does not answer and is no listed node's; "
        "10.77.0.2 answers"),
    Row("connections dropped", "NC311", on(faults.firewall, f"tcp dport {MESH} {faults.SYN} drop"),
        "node[06,09] cannot be reached on 10.77.0.0/24 by any node: no answer; "),
    Row("large packets lost", "NC314", on(faults.firewall, f"tcp dport {MESH} tcp sport {MESH} meta length > 600 drop"),
        "large packets to node10 are lost on 10.77.0.0/24, from every other node: "
        "small packets pass (MTU 1500 at both ends"),
)  # fmt: skip


@pytest.fixture(scope="module")
def sick() -> Iterator[Ward]:
    with ward(ROWS) as made:
        yield made


@pytest.fixture(scope="module")
def run(sick: Ward) -> Run:
    return sick.examined("--select", "NC3")


@pytest.fixture(scope="module")
def by_ada(sick: Ward) -> Run:
    return sick.examined(*OF_SETTINGS, user=ADA)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_each_fault_is_named_on_its_node(sick: Ward, run: Run, row: Row) -> None:
    hold(sick, run, row)


def test_the_others_are_whole_and_the_run_ends_in_exit_1(sick: Ward, run: Run, healthy: Run) -> None:
    hold_whole(sick, run, healthy)
    assert run.failed() == sick.failing
    assert run.exit_code == 1


def test_what_is_measured_is_told_with_its_figures(run: Run) -> None:
    assert "inet lab, chain input" in run.finding("NC358")["message"]
    assert run.finding("NC352")["evidence"] == ["from 10.77.0.1 to 10.77.0.204 by eth1: dropped"]


def test_an_ordinary_user_learns_all_but_the_rules_that_only_root_is_shown(by_ada: Run, sick: Ward) -> None:
    found = {code: nodes for code, nodes in sick.failing.items() if code in {code for code, _ in by_ada.verdicts()}}
    assert by_ada.failed() == {code: nodes for code, nodes in found.items() if code != "NC358"}
    firewalled = sick.node("an active firewall").name
    (rules,) = (v for v in by_ada.report["verdicts"] if v["code"] == "NC358" and firewalled in v["nodes"])
    assert (rules["outcome"], rules["needs_root"]) == ("skipped", True)


def test_each_fix_mends_what_it_was_given_for(sick: Ward, run: Run, by_ada: Run) -> None:
    assert by_ada  # it saw the faults
    type_fixes(sick.lab, run, typed_in("test_network.py"))

    mended = sick.examined(*OF_SETTINGS)

    assert set(mended.failed()) == {"NC342", "NC360", "NC361"}  # Ray and /etc/hosts are for a person to look at


def test_strict_filters_are_no_finding_where_each_card_has_a_way_back_of_its_own(lab: Lab) -> None:
    node = lab.nodes[3]
    second_card(lab, node)
    node.sh("ip rule add from 10.77.0.204 table 2; ip route add 10.77.0.0/24 dev eth1 table 2")

    run = examined(lab, "--select", "NC352")

    assert run.verdicts("node04") == {("NC352", "node04"): "passed"}
    assert run.exit_code == 0


def test_nothing_of_this_is_said_of_healthy_hosts(healthy: Run) -> None:
    assert healthy.failed() == {}
    assert {code for (code, _), outcome in healthy.verdicts().items() if outcome == "unknown"} == set()
