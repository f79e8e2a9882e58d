"""Interfaces: what we ask the kernel ourselves, held to what psutil and ip say of this machine."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys

import psutil
import pytest
from ncheck.agent.answers.interfaces import answer, default_routes
from ncheck.agent.sources import Sources
from ncheck.triage.agent.net_namespaces import addresses

TOLD = {interface["name"]: interface for interface in answer(None, None, 10.0)["interfaces"]}
FAMILIES = {socket.AF_INET: 4, socket.AF_INET6: 6}


def test_addresses_are_those_that_psutil_sees() -> None:
    theirs = {
        name: sorted(a.address.partition("%")[0] for a in addresses if a.family in FAMILIES)
        for name, addresses in psutil.net_if_addrs().items()
    }
    ours = {name: sorted(a["ip"] for a in TOLD[name]["addresses"]) for name in theirs}
    assert ours == theirs


@pytest.mark.skipif(not shutil.which("ip"), reason="there is no ip program here")
def test_everything_else_is_what_ip_says() -> None:
    links = json.loads(subprocess.run(["ip", "-j", "addr"], capture_output=True, check=True).stdout)
    assert list(TOLD) == [link["ifname"] for link in sorted(links, key=lambda link: int(link["ifindex"]))]
    for link in links:
        ours = TOLD[link["ifname"]]
        theirs = [(a["local"], a["prefixlen"]) for a in link["addr_info"]]
        assert [(a["ip"], a["prefix"]) for a in ours["addresses"]] == theirs
        assert (ours["index"], ours["mtu"], ours["up"]) == (link["ifindex"], link["mtu"], "UP" in link["flags"])
        assert ours["mac"] == link.get("address")


def test_the_loopback_is_told_as_the_kernel_knows_it() -> None:
    lo = TOLD["lo"]
    assert (lo["type"], lo["loopback"], lo["index"], lo["device"], lo["pci"]) == (772, True, 1, None, None)
    assert lo["addresses"][0] == {"ip": "127.0.0.1", "prefix": 8, "scope": "host"}


@pytest.mark.skipif(not shutil.which("ip"), reason="there is no ip program here")
def test_default_routes_are_those_that_ip_shows() -> None:
    shown = subprocess.run(["ip", "-j", "route", "show", "default"], capture_output=True, check=True).stdout
    routes = json.loads(shown)
    assert {route["dev"] for route in routes if "dev" in route} <= set(default_routes())


@pytest.fixture
def without_ctypes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ctypes", "ncheck.agent.answers.getifaddrs", "ncheck.agent.answers.interfaces"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "_ctypes", None)


@pytest.mark.usefixtures("without_ctypes")
def test_a_python_without_ctypes_says_why_there_are_no_interfaces_and_its_addresses_are_still_those_of_proc() -> None:
    reply = Sources().read({"kind": "answer", "name": "interfaces"})
    why = "this python3 was built without ctypes, by which addresses are read"
    assert (reply["status"], reply["reason"]) == ("failed", why)
    ours = {(one["ip"], name) for name, link in TOLD.items() for one in link["addresses"]}
    assert {(ip, name) for ip, name in addresses("/proc/self")} == ours
