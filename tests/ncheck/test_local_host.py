"""What ncheck knows of the machine that it runs on."""

from __future__ import annotations

import os

import psutil
import pytest
from ncheck.local_host import read_local_host
from ncheck.settings import JobEnvironment, Settings


def test_this_machines_addresses_are_known_by_their_interfaces_and_what_is_set_by_name() -> None:
    local_host = read_local_host(Settings(), {"LD_LIBRARY_PATH": "/opt/lib"})
    ours = {
        address.address: name
        for name, addresses in psutil.net_if_addrs().items()
        for address in addresses
        if address.family.name == "AF_INET"
    }
    assert local_host is not None
    assert {ip: name for ip, name in local_host.interfaces.items() if ":" not in ip} == ours
    assert (local_host.variables, local_host.root) == (frozenset({"LD_LIBRARY_PATH"}), os.geteuid() == 0)


@pytest.mark.parametrize("settings", [
    Settings(rehearsal=True),
    Settings(environment=JobEnvironment(enter="docker exec -i train")),
    Settings(environment=JobEnvironment(rsh="kubectl exec -i {node} --")),
])  # fmt: skip
def test_nothing_is_known_of_the_machine_where_a_line_is_typed_elsewhere(settings: Settings) -> None:
    assert read_local_host(settings, {}) is None
