"""What ssh -v says is read with care: the server's own banner is printed among its lines."""

from __future__ import annotations

import pytest
from ncheck.ssh.program_log import SshLog
from ncheck.ssh.target import SshTarget

TARGET = SshTarget("node07", "node07", 22, "ada")


@pytest.mark.parametrize("address", ["10.0.0.7", "fe80::1%eth0", "2001:db8::7"])
def test_the_address_is_the_one_that_ssh_connects_to(address: str) -> None:
    assert SshLog(f"debug1: Connecting to node07 [{address}] port 22.\n", TARGET).address == address


@pytest.mark.parametrize("lie", ["$(reboot)", "-oProxyCommand=reboot", "10.0.0.8; reboot", "fe80::1%$(reboot)"])
def test_a_banner_that_looks_like_ssh_itself_brings_no_command_into_a_line_to_type(lie: str) -> None:
    said = f"debug1: Connecting to node07 [10.0.0.7] port 22.\ndebug1: Connecting to x [{lie}] port 22.\n"
    assert SshLog(said, TARGET).address == "10.0.0.7"
