"""The lab itself: what it promises to the tests that use it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from . import hosts, namespaces
from .command import ENVIRONMENT
from .hosts import Lab
from .layers import ADA, CHECKOUT
from .wiring import SEVERAL_NICS


def test_every_host_reaches_every_other_by_name_on_both_ports(lab: Lab) -> None:
    for port in ("22", "10001"):
        for node in lab.nodes:
            others = " ".join(name for name in lab.names if name != node.name)
            said = node.sh(f"for other in {others}; do ssh -o BatchMode=yes -p {port} $other hostname; done").stdout
            assert said.split() == others.split()


def test_a_node_shows_its_own_interfaces_processes_and_files_only(lab: Lab) -> None:
    node = lab.nodes[0]

    assert node.sh("ls /sys/class/net").stdout.split() == ["eth0", "lo"]
    assert sorted(line.split(" ")[0] for line in node.processes().values()) == ["bash", "sshd:"]
    assert node.sh("ls -A /root /home /opt; hostname").stdout.split() == [
        "/home:", "ada", "/opt:", "/root:", ".ssh", node.name,
    ]  # fmt: skip


def test_a_remade_node_is_as_it_was(lab: Lab) -> None:
    node = lab.nodes[1]
    before = node.tree()
    node.sh("echo x >/root/x; rm /usr/bin/python3; sleep 100 >/dev/null 2>&1 & hostname other")
    assert node.tree() != before

    lab.remake(node)

    assert node.tree() == before
    assert node.sh("hostname").stdout == f"{node.name}\n"


def test_labs_do_not_meet_and_leave_nothing_on_the_machine() -> None:
    before = _of_this_machine()
    with hosts.lab(2) as one, hosts.lab(2) as other:
        one.nodes[0].sh("hostname mine; ip link set eth0 down")
        assert other.nodes[0].sh("hostname; cat /sys/class/net/eth0/operstate").stdout.split() == ["node01", "up"]
        inits = [one.pid, other.pid, *(node.pid for node in (*one.nodes, *other.nodes))]
        folders = [one.folder, other.folder]

    assert _of_this_machine() == before
    assert not [pid for pid in inits if Path("/proc", str(pid)).exists()]
    assert not [folder for folder in folders if folder.exists()]


def test_a_lab_of_several_nics_is_soon_there_and_in_the_order_that_leads_astray() -> None:
    before, begun = _of_this_machine(), time.monotonic()
    with hosts.lab(2, SEVERAL_NICS) as lab:
        assert time.monotonic() - begun < 60  # half a second, where nothing else goes on
        lab.remake(*lab.nodes)
        speeds = "for nic in fast0 enp3s0 eth0; do cat /sys/class/net/$nic/speed 2>&- || :; done"
        shown = [node.sh(f"ip -4 -br address; {speeds}") for node in lab.nodes]

    virtual = ["lo 127.0.0.1/8", "veth1a2b 192.168.49.1/24", "docker0 172.17.0.1/16"]
    assert [[_named(line) for line in said.stdout.splitlines()] for said in shown] == [
        [*virtual, "fast0 10.78.0.1/24", "eth0 10.77.0.1/24", "10000", "1000"],
        [*virtual, "enp3s0 10.78.0.2/24", "eth0 10.77.0.2/24", "10000", "1000"],
    ]
    assert _of_this_machine() == before


def _named(line: str) -> str:
    """Return name and address of a line of ip's: "eth0@if2  UP  10.77.0.1/24"; what is one word stays."""
    words = line.split()
    return f"{words[0].partition('@')[0]} {words[2]}" if len(words) > 1 else line


MAKER = """
from lab.hosts import Lab
lab = Lab(1)
lab.start()
print(lab.folder, lab.pid, lab.nodes[0].pid, flush=True)
input()
"""


def _of_this_machine() -> list[str]:
    """Return the root namespace's links, addresses, routes, mounts, host name and kernel settings for neighbours."""
    words = [namespaces.run(["ip", "-br", "address"]).stdout, namespaces.run(["ip", "route"]).stdout]
    limits = sorted(Path("/proc/sys/net/ipv4/neigh/default").glob("gc_thresh*"))
    return [*words, Path("/proc/self/mountinfo").read_text(), os.uname().nodename, *(p.read_text() for p in limits)]


def test_a_lab_ends_by_itself_when_its_maker_is_killed() -> None:
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert maker.stdout
    folder, *inits = maker.stdout.readline().split()
    maker.kill()
    maker.communicate()

    assert [namespaces.gone(int(pid), 60) for pid in inits] == [True, True]
    Path(folder).rmdir()


def test_without_root_the_lab_is_skipped_with_a_reason_and_where_nothing_may_be_it_fails(lab: Lab) -> None:
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "shows_its_own", __file__]
    as_ada = namespaces.enter(lab.pid, ["env", "-i", "-C", str(CHECKOUT), *ENVIRONMENT, "CI=true", *tests])
    as_ada[1:1] = ["-S", str(ADA.uid), "-G", str(ADA.uid)]

    said = namespaces.run(as_ada)
    assert "1 skipped" in said.stdout
    assert "the lab needs root" in said.stdout

    said = namespaces.run([word.replace("CI=true", "NCHECK_SKIP_NOTHING=1") for word in as_ada], check=False)
    assert said.returncode == 1
    assert "NCHECK_SKIP_NOTHING=1: the lab needs root" in said.stdout
