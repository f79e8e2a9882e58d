"""What ncheck knows of the machine that it runs on."""

from __future__ import annotations

import os

import psutil
import pytest
from ncheck.local_host import head_of
from ncheck.settings import JobEnvironment, Settings


def test_this_machines_addresses_are_known_by_their_interfaces_and_what_is_set_by_name() -> None:
    head = head_of(Settings(), {"LD_LIBRARY_PATH": "/opt/lib"})
    ours = {
        address.address: name
        for name, addresses in psutil.net_if_addrs().items()
        for address in addresses
        if address.family.name == "AF_INET"
    }
    assert head is not None
    assert {ip: name for ip, name in head.interfaces.items() if ":" not in ip} == ours
    assert (head.variables, head.root) == (frozenset({"LD_LIBRARY_PATH"}), os.geteuid() == 0)


@pytest.mark.parametrize("settings", [
    Settings(rehearsal=True),
    Settings(environment=JobEnvironment(enter="docker exec -i train")),
    Settings(environment=JobEnvironment(rsh="kubectl exec -i {node} --")),
])  # fmt: skip
def test_nothing_is_known_of_the_machine_where_a_line_is_typed_elsewhere(settings: Settings) -> None:
    assert head_of(settings, {}) is None
