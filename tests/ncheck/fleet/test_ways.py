"""Which way leads into a node: the choice of the transport, jump hosts, commands in place of ssh, several addresses."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
from ncheck.errors import SettingsError
from ncheck.fleet.choose import Choice, transports
from ncheck.fleet.link import LoginFailedError, Stream
from ncheck.model.evidence import Cause, Login
from ncheck.model.node import Node
from ncheck.settings import JobEnvironment, Settings
from ncheck.ssh.config import read_ssh_config
from ncheck.ssh.dial import dial
from ncheck.ssh.fault import FaultError
from ncheck.ssh.program import OpenSshTransport, RshTransport
from ncheck.ssh.target import SshTarget

Served = Callable[[Callable[[socket.socket], None]], AbstractContextManager[int]]
ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


class Keys(Protocol):
    def path(self, name: str) -> Path: ...
    def public(self, name: str) -> str: ...


class Site(Protocol):
    kind: str
    folder: Path
    lines: dict[str, str]
    extra: tuple[str, ...]

    def with_lines(self, **lines: object) -> Site: ...
    def connect(self, timeout: float = 60.0) -> Stream: ...
    def failure(self, timeout: float = 60.0) -> Login: ...
    def says(self, script: str, timeout: float = 60.0) -> tuple[bytes, int | None]: ...


def choice(folder: Path, text: str = "", **settings: object) -> Choice:
    config = folder / "config"
    config.write_text(text)
    made = replace(Settings(ssh_config=str(config)), **settings)  # type: ignore[arg-type]
    return Choice(made, read_ssh_config(made, ENVIRON))


# The choice


def test_a_plain_node_goes_by_paramiko(tmp_path: Path) -> None:
    assert choice(tmp_path).name_for(Node("node07")) == "paramiko"


def test_a_node_behind_a_jump_host_goes_by_ssh(tmp_path: Path) -> None:
    chosen = choice(tmp_path, "Host node07\n  ProxyJump bastion\n")
    assert (chosen.name_for(Node("node07")), chosen.name_for(Node("node08"))) == ("openssh", "paramiko")


def test_what_was_asked_for_outweighs_the_configuration(tmp_path: Path) -> None:
    chosen = choice(tmp_path, "Host node07\n  ProxyJump bastion\n", transport="paramiko")
    assert chosen.name_for(Node("node07")) == "paramiko"


def test_a_command_in_place_of_ssh_goes_before_all(tmp_path: Path) -> None:
    chosen = choice(tmp_path, environment=JobEnvironment(rsh="kubectl exec -i {node} --"))
    assert chosen.name_for(Node("node07")) == "rsh"


def test_this_machine_itself_needs_no_ssh(tmp_path: Path) -> None:
    assert choice(tmp_path).name_for(Node("here", places=("local",))) == "local"


def test_a_transport_that_cannot_be_had_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match="there is no ssh program on PATH"):
        transports(Settings(transport="openssh", ssh_config="none"), ENVIRON)


# The ssh program


def test_a_name_can_never_be_read_as_an_option(tmp_path: Path) -> None:
    made = choice(tmp_path, transport="openssh")
    transport = OpenSshTransport(made.config, made.target, environ=ENVIRON)
    node = Node("-oProxyCommand=touch /tmp/never")
    argv = transport.argv(node, made.target(node), 15)
    assert argv[argv.index("--") + 1] == "-oProxyCommand=touch /tmp/never"
    assert len(argv) == argv.index("--") + 3


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_a_node_is_reached_through_a_jump_host(
    site: Site, sshd: Callable[..., int], known: Callable[[int], None]
) -> None:
    jump, port = sshd(), sshd()
    known(jump)
    known(port)
    command = f"ssh -F {site.folder}/jump -p {jump} -W %h:%p jump"
    inner = "\n".join(f"{key} {value}" for key, value in site.lines.items())
    (site.folder / "jump").write_text(inner + "\n")
    assert site.with_lines(Port=port, ProxyCommand=command).says("echo in") == (b"in\n", 0)


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_what_a_jump_host_cannot_reach_is_the_nodes_trouble(
    site: Site, sshd: Callable[..., int], known: Callable[[int], None]
) -> None:
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
    assert login.detail.startswith("ProxyCommand does not work: ")


@pytest.mark.parametrize("site", ["openssh"], indirect=True)
def test_closing_ends_ssh_and_what_it_started(
    site: Site, sshd: Callable[..., int], known: Callable[[int], None]
) -> None:
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


def test_a_host_certificate_is_left_to_ssh(tmp_path: Path, sshd: Callable[..., int], keys: Keys) -> None:
    host = tmp_path / "host"
    for suffix in ("", ".pub"):
        host.with_name(f"host{suffix}").write_bytes(keys.path(f"other{suffix}").read_bytes())
    host.chmod(0o600)
    signing = ["ssh-keygen", "-q", "-s", str(keys.path("ca")), "-I", "test", "-h", "-n", "127.0.0.1", f"{host}.pub"]
    subprocess.run(signing, check=True)
    port = sshd(f"HostKey {host}", f"HostCertificate {host}-cert.pub")
    known = tmp_path / "authorities"
    known.write_text(f"@cert-authority * {keys.public('ca')}\n")
    made = choice(tmp_path, f"Host *\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {keys.path('user')}\n"
                            f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n")  # fmt: skip
    stream = made.connect(Node("node07"), 60)
    stream.close()
    assert stream.login.transport == "openssh"


# A command in place of ssh


def test_a_command_in_place_of_ssh_runs_the_same_shell() -> None:
    transport = RshTransport(lambda _node: "env NODE={node}", ENVIRON)
    stream = transport.connect(Node("pod-7"), 60)
    stream.send(b'echo "$NODE"; echo err >&2; exit 4\n', 60)
    assert stream.receive(60) == b"pod-7\n"
    assert stream.receive(60) == b""
    assert (stream.exit_status(60), stream.stderr(), stream.login.transport) == (4, b"err\n", "rsh")
    assert stream.login.fix == "env NODE=pod-7 true"  # what to type for whatever goes wrong behind it
    stream.close()


def test_a_name_in_that_command_stays_one_word_and_no_command(tmp_path: Path) -> None:
    transport = RshTransport(lambda _node: "kubectl exec -i {node} --", ENVIRON)
    node = Node(f"pod; touch {tmp_path}/never $(id)")
    shell = shlex.split("/bin/sh -c 'IFS= read -r line && eval \"$line\"'")
    assert transport.argv(node) == ["kubectl", "exec", "-i", node.name, "--", *shell]


def test_a_command_that_is_not_there_is_our_trouble() -> None:
    transport = RshTransport(lambda _node: "no-such-program {node}", ENVIRON)
    with pytest.raises(LoginFailedError) as raised:
        transport.connect(Node("pod-7"), 60)
    assert raised.value.login.cause is Cause.TRANSPORT


# Several addresses


def test_the_next_address_is_tried_when_the_first_is_dead() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # localhost is ::1 too, where nothing listens
        sock, address = dial(SshTarget("a", "localhost", listener.getsockname()[1]), 60)
        sock.close()
    assert address == "127.0.0.1"


def test_every_address_that_failed_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(FaultError) as raised:
            dial(SshTarget("a", "localhost", taken.getsockname()[1]), 60)
    assert raised.value.fault.cause is Cause.REFUSED


@pytest.mark.parametrize("name", ["a" * 300, "nöde", "node\x00", "-x", ""])
def test_no_name_is_too_strange(name: str) -> None:
    began = time.monotonic()
    with pytest.raises(FaultError):
        dial(SshTarget("a", name, 1), 5)
    assert time.monotonic() - began < 60


def test_paramiko_does_not_pass_by_a_jump_host(tmp_path: Path) -> None:
    chosen = choice(tmp_path, "Host node07\n  ProxyJump bastion\n", transport="paramiko")
    with pytest.raises(LoginFailedError) as raised:
        chosen.connect(Node("node07"), 60)
    login = raised.value.login
    assert (login.cause, login.fix) == (Cause.TRANSPORT, "ncheck --transport openssh nodes.txt")
