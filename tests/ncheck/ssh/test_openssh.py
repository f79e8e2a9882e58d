"""The ssh program as a client: its command line, jump hosts, and its log, among which a server's banner is printed."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.model.evidence import Cause
from ncheck.ssh.client import SshClient
from ncheck.ssh.login import ListedHost, Options
from ncheck.ssh.openssh import SshLog
from ncheck.ssh.target import SshTarget

from .sites import Known, Site, Sshd

TARGET = SshTarget("node07", "node07", 22, "ada")


@pytest.mark.parametrize("address", ["10.0.0.7", "fe80::1%eth0", "2001:db8::7"])
def test_the_address_is_the_one_that_ssh_connects_to(address: str) -> None:
    assert SshLog(f"debug1: Connecting to node07 [{address}] port 22.\n", TARGET).address == address


@pytest.mark.parametrize("lie", ["$(reboot)", "-oProxyCommand=reboot", "10.0.0.8; reboot", "fe80::1%$(reboot)"])
def test_a_banner_that_looks_like_ssh_itself_brings_no_command_into_a_line_to_type(lie: str) -> None:
    said = f"debug1: Connecting to node07 [10.0.0.7] port 22.\ndebug1: Connecting to x [{lie}] port 22.\n"
    assert SshLog(said, TARGET).address == "10.0.0.7"


def test_a_name_can_never_be_read_as_an_option(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    client = SshClient("true", Options(config_file=str(tmp_path / "config")), "openssh", {"PATH": "/usr/bin:/bin"})
    host = ListedHost("-oProxyCommand=touch /tmp/never")
    argv = client.openssh().argv(host, client.target(host), 15)
    assert argv[argv.index("--") + 1] == "-oProxyCommand=touch /tmp/never"
    assert len(argv) == argv.index("--") + 3


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_a_node_is_reached_through_a_jump_host(site: Site, sshd: Sshd, known: Known) -> None:
    jump, port = sshd(), sshd()
    known(jump)
    known(port)
    command = f"ssh -F {site.folder}/jump -p {jump} -W %h:%p jump"
    inner = "\n".join(f"{key} {value}" for key, value in site.lines.items())
    (site.folder / "jump").write_text(inner + "\n")
    assert site.with_lines(Port=port, ProxyCommand=command).says("echo in") == (b"in\n", 0)


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_what_a_jump_host_cannot_reach_is_the_nodes_trouble(site: Site, sshd: Sshd, known: Known) -> None:
    known(jump := sshd())
    inner = "\n".join(f"{key} {value}" for key, value in site.lines.items())
    (site.folder / "jump").write_text(inner + "\n")
    command = f"ssh -F {site.folder}/jump -p {jump} -W %h:%p jump"
    login = site.with_lines(Port=1, ProxyCommand=command).failure()
    assert (login.cause, login.detail) == (
        Cause.REFUSED, "the jump host cannot reach 127.0.0.1 port 1: Connection refused"
    )  # fmt: skip


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_a_jump_host_that_fails_is_not_blamed_on_the_node(site: Site) -> None:
    login = site.with_lines(Port=1, ProxyCommand="echo the bastion is closed >&2; exit 1").failure()
    assert login.cause is Cause.TRANSPORT
    assert login.detail == "ProxyCommand does not work: the bastion is closed"


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_a_proxy_command_that_is_not_installed_is_named_in_its_shells_words(site: Site) -> None:
    login = site.with_lines(Port=1, ProxyCommand="no-such-corkscrew proxy 8080 %h %p").failure()
    assert login.cause is Cause.TRANSPORT
    assert re.fullmatch(r"ProxyCommand does not work: .*no-such-corkscrew: (command )?not found", login.detail)


def test_a_server_that_drops_a_connection_through_a_proxy_is_no_broken_proxy() -> None:
    said = "kex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535\n"
    assert SshLog(said, replace(TARGET, proxy_command="nc %h %p")).only_dropped


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_closing_ends_ssh_and_what_it_started(site: Site, sshd: Sshd, known: Known) -> None:
    jump, port = sshd(), sshd()
    known(jump)
    known(port)
    inner = "\n".join(f"{key} {value}" for key, value in site.lines.items())
    (site.folder / "jump").write_text(inner + "\n")
    command = f"ssh -F {site.folder}/jump -p {jump} -W %h:%p jump"
    stream = site.with_lines(Port=port, ProxyCommand=command).connect()
    stream.close()
    end = time.monotonic() + 60  # what ends does so in its own time
    while clients_of(site.folder) and time.monotonic() < end:
        time.sleep(0.02)
    assert clients_of(site.folder) == []


def clients_of(folder: Path) -> list[str]:
    """Return the command lines in which the folder occurs, but for those of servers."""
    told = subprocess.run(["pgrep", "-af", str(folder)], capture_output=True, text=True, check=False).stdout
    # 4711 sshd: /usr/sbin/sshd -D -e -f /tmp/folder/sshd-1 [listener] 0 of 10-100 startups
    return [line for line in told.splitlines() if not re.search(r"\bsshd\b", line.partition(str(folder))[0])]
