"""Interfaces: what we ask the kernel ourselves, held to what psutil, netifaces and ip say of this machine."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys

import psutil
import pytest
from ncheck.agent.answers.interfaces import answer, default_routes

TOLD = {interface["name"]: interface for interface in answer(None, None, 10.0)["interfaces"]}
FAMILIES = {socket.AF_INET: 4, socket.AF_INET6: 6}


def test_addresses_are_those_that_psutil_sees() -> None:
    theirs = {
        name: sorted(a.address.partition("%")[0] for a in addresses if a.family in FAMILIES)
        for name, addresses in psutil.net_if_addrs().items()
    }
    ours = {name: sorted(a["ip"] for a in TOLD[name]["addresses"]) for name in theirs}
    assert ours == theirs


def test_addresses_are_those_that_netifaces_sees() -> None:
    netifaces = pytest.importorskip("netifaces")
    for name in netifaces.interfaces():
        theirs = [row["addr"].partition("%")[0] for row in netifaces.ifaddresses(name).get(netifaces.AF_INET, [])]
        assert [a["ip"] for a in TOLD[name]["addresses"] if ":" not in a["ip"]] == theirs


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


def test_a_python_without_ctypes_tells_the_same_by_psutil_and_by_netifaces(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("netifaces")
    ours = {name: sorted(map(str, one["addresses"])) for name, one in TOLD.items()}
    for library, missing in (("psutil", ()), ("netifaces", ("psutil",))):
        monkeypatch.setitem(sys.modules, "ncheck.agent.answers.getifaddrs", None)
        for name in missing:
            monkeypatch.setitem(sys.modules, name, None)
        told = answer(None, None, 10.0)
        assert told["source"] == library
        assert {one["name"]: sorted(map(str, one["addresses"])) for one in told["interfaces"]} == ours
        running = {one["name"]: one["running"] for one in told["interfaces"]}
        assert running["lo"] == TOLD["lo"]["running"]
