"""What settings, names and rules of real hosts do to a job: made on each, and named on it and on no other."""

from __future__ import annotations

import pytest

from . import faults, layers
from .command import Run
from .hosts import Lab
from .layers import ADA
from .node import Node
from .promises import examined
from .wiring import ip

OURS = (*range(350, 363), 371, 372)


def ours(run: Run) -> dict[str, set[str]]:
    """Return the findings about settings of the net, by code."""
    return {code: nodes for code, nodes in run.failed().items() if int(code.removeprefix("NC")) in OURS}


def second_card(lab: Lab, node: Node, address: str) -> None:
    """Plug a second card into the same network, and filter strictly what comes in."""
    ip(lab.pid, f"link add link wire0 name eth1 netns {node.pid} type macvlan mode bridge\n")
    strict = " ".join(f"net.ipv4.conf.{name}.rp_filter=1" for name in ("all", "eth0", "eth1"))
    node.sh(f"ip address add {address}/24 dev eth1; ip link set eth1 up; sysctl -qw {strict}")


def names_astray(node: Node, **lines: str) -> None:
    """Let a node's hosts file tell other addresses of these names."""
    kept = node.path("/etc/hosts").read_text().splitlines()
    wrong = [f"{address} {name}" for name, address in lines.items()]
    node.write("/etc/hosts", "\n".join([*wrong, *(line for line in kept if line.split()[-1] not in lines)]) + "\n")


@pytest.fixture
def sick(lab: Lab) -> Lab:
    """Return the lab with faults on each of its nodes, and Docker's bridge on all."""
    one, two, three, four = lab.nodes
    names_astray(one, node01="127.0.1.1", node03="10.77.0.99")
    two.sh("ip link set eth0 mtu 1400")
    three.sh("sysctl -qw net.ipv4.ip_local_port_range='50000 51000'")
    three.sh("sysctl -qw net.ipv4.tcp_rmem='4096 4096 4096' net.ipv4.tcp_wmem='4096 4096 4096'")
    faults.firewall(three, "iifname lo accept", "ct state established,related accept", "tcp dport 22 accept", "drop")
    second_card(lab, four, "10.77.0.204")
    # The resolver sorts addresses, and this one shares more bits with 10.77.0.4 than 10.77.0.2 does.
    four.sh("sed '1i 10.77.0.6 node02' /etc/hosts > /run/hosts; cat /run/hosts > /etc/hosts")
    for user in layers.USERS:
        four.write(f"{user.home}/.bashrc", "export RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost\n", 0o644, user)
    for node in lab.nodes:
        faults.docker_bridge(node)
    return lab


MADE = {
    "NC350": {"node02"},
    "NC352": {"node04"},
    "NC353": {"node04"},
    "NC355": {"node03"},
    "NC356": {"node01", "node02", "node03", "node04"},
    "NC358": {"node03"},
    "NC360": {"node01"},
    "NC361": {"node01", "node04"},
    "NC371": {"node03"},
    "NC372": {"node04"},
}


def test_each_fault_is_named_on_its_node_and_on_no_other(sick: Lab) -> None:
    run = examined(sick)

    assert ours(run) == MADE, run.not_passed("node01")
    assert {tuple(one["nodes"]): one["message"] for one in run.report["findings"] if one["code"] == "NC361"} == {
        ("node01",): "node03 resolves to 10.77.0.99, which is not its address",
        ("node04",): "node02 resolves first to 10.77.0.6, which is not its address, and only then to its own",
    }
    assert "inet lab, chain input" in run.finding("NC358")["message"]
    assert run.finding("NC352")["evidence"] == ["from 10.77.0.1 to 10.77.0.204 by eth1: dropped"]
    assert run.finding("NC356")["severity"] == "info"


def test_an_ordinary_user_learns_all_but_the_rules_that_only_root_is_shown(sick: Lab) -> None:
    run = examined(sick, user=ADA)

    assert ours(run) == {code: nodes for code, nodes in MADE.items() if code != "NC358"}
    (rules,) = (v for v in run.report["verdicts"] if v["code"] == "NC358" and "node03" in v["nodes"])
    assert (rules["outcome"], rules["needs_root"]) == ("skipped", True)


def test_each_fix_mends_what_it_was_given_for(sick: Lab) -> None:
    one, two, three, four = sick.nodes
    found = examined(sick)
    fixes = {
        code: found.finding(code)["fix"].replace("sudo ", "")
        for code in ("NC350", "NC352", "NC353", "NC355", "NC358", "NC371")
    }
    two.sh(fixes["NC350"])
    three.sh(f"{fixes['NC355']}; {fixes['NC371']}")
    three.sh(fixes["NC358"])
    four.sh(f"{fixes['NC352']}; {fixes['NC353']}; sed '1d' /etc/hosts > /run/hosts; cat /run/hosts > /etc/hosts")
    faults.start_up_file(four, found.finding("NC372")["fix"])
    names_astray(one, node01="10.77.0.1", node03="10.77.0.3")

    assert set(ours(examined(sick))) == {"NC356"}


def test_strict_filters_are_no_finding_where_each_card_has_a_way_back_of_its_own(lab: Lab) -> None:
    node = lab.nodes[3]
    second_card(lab, node, "10.77.0.204")
    node.sh("ip rule add from 10.77.0.204 table 2; ip route add 10.77.0.0/24 dev eth1 table 2")

    run = examined(lab, "--select", "NC352")

    assert run.verdicts("node04") == {("NC352", "node04"): "passed"}
    assert run.exit_code == 0


def test_nothing_of_this_is_said_of_healthy_hosts(healthy: Run) -> None:
    assert ours(healthy) == {}
    assert {code for (code, _), outcome in healthy.verdicts().items() if outcome == "unknown"} == set()
