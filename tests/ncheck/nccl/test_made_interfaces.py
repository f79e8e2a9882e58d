"""The same question on interfaces that this machine does not have: made in a namespace, asked of a real NCCL there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .agreement import RELEASES

# Without the search for duplicates an IPv6 address can be used at once.
READY = "mount -t sysfs sysfs /sys; echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad; ip link set lo up; "
WIRE = "ip link add {0} type veth peer name {0}p; ip link set {0} up; ip link set {0}p up; ip addr add {1} dev {0}; "
BRIDGE = "ip link add {0} type bridge; ip link set {0} up; ip addr add {1} dev {0}; "
DOCKER = BRIDGE.format("docker0", "172.17.0.1/16")
COMPOSE = BRIDGE.format("br-5b1d7c3e9f20", "172.18.0.1/16")
ETH0 = WIRE.format("eth0", "10.1.0.7/24")

DOWN = "ip link add {0} type veth peer name {0}p; ip addr add {1} dev {0}; "
ABOVE = "mount -t tmpfs layer /mnt; mkdir /mnt/upper /mnt/work; "
ABOVE += "mount -t overlay -o lowerdir={0},upperdir=/mnt/upper,workdir=/mnt/work layer {0}; "

LAYOUTS = {
    "lo alone": "",
    "a wire": ETH0,
    "docker before the wire": DOCKER + ETH0,
    "a compose network, without a link, before the wire": COMPOSE + ETH0,
    "virbr0 before the wire": BRIDGE.format("virbr0", "192.168.122.1/24") + ETH0,
    "a name that begins with ib comes first": ETH0 + WIRE.format("ib0", "10.2.0.7/24"),
    "two wires": WIRE.format("eno2", "10.3.0.7/24") + ETH0,
    "IPv6 alone": WIRE.format("eth0", "fd00::7/64"),
    "a wire that is down": "ip link add eth1 type veth peer name eth1p; ip addr add 10.4.0.7/24 dev eth1; " + ETH0,
    "docker alone": DOCKER,
    "eth1 and eth10": WIRE.format("eth1", "10.4.0.7/24") + WIRE.format("eth10", "10.5.0.7/24"),
    "eth1 is down, eth10 is not": DOWN.format("eth1", "10.4.0.7/24") + WIRE.format("eth10", "10.5.0.7/24") + DOCKER,
    "IPv6 beside IPv4": WIRE.format("eth1", "fd00::7/64") + ETH0,
    "one link-local address on two wires": WIRE.format("eth1", "fe80::7/64") + WIRE.format("eth10", "fe80::7/64"),
    "tunnels and bridges of containers alone": BRIDGE.format("tailscale0", "100.64.0.1/10") + COMPOSE,
    "a line in /etc/nccl.conf": ABOVE.format("/etc") + "echo NCCL_SOCKET_IFNAME=^docker0 > /etc/nccl.conf; " + ETH0,
    # NCCL takes the home from the list of users, whatever HOME says.
    "a line in ~/.nccl.conf": "export HOME=~root; "
    + ABOVE.format("$HOME")
    + "echo NCCL_SOCKET_IFNAME==eth0 > ~/.nccl.conf; "
    + DOCKER
    + ETH0,
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make interfaces: sudo make test")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nccl_and_ncheck_agree_there_too(nccl_folder: Callable[[str], Path], layout: str) -> None:
    folders = [str(nccl_folder(release)) for release in RELEASES]  # in there is no network to fetch it from
    inner = [sys.executable, str(Path(__file__).with_name("agreement.py")), *folders]
    script = f'{READY}{LAYOUTS[layout]}exec "$@"'
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-ec", script, "sh", *inner],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
