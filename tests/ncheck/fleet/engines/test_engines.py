"""Which engine opens a node's stream, and how the ssh client's records become logins."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from ncheck.errors import SettingsError
from ncheck.fleet.engine import NotConnectedError
from ncheck.fleet.engines import engines
from ncheck.fleet.engines.ssh import answering
from ncheck.model.evidence import Cause
from ncheck.model.node import Node
from ncheck.settings import JobEnvironment, Settings
from ncheck.ssh import login as ssh

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
NODE = Node("node07")
PLAIN = Settings(ssh_config="none")


def test_ssh_serves_every_node_that_is_not_listed_otherwise() -> None:
    assert engines(PLAIN, ENVIRON)(Node("node07")).name == "ssh"


def test_a_command_in_place_of_ssh_is_preferred() -> None:
    settings = replace(PLAIN, environment=JobEnvironment(rsh="kubectl exec -i {node} --"))
    assert engines(settings, ENVIRON)(Node("node07")).name == "rsh"


def test_this_machine_itself_needs_no_ssh() -> None:
    assert engines(PLAIN, ENVIRON)(Node("here", places=("local",))).name == "local"


def test_a_transport_that_is_not_available_is_reported_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match="there is no ssh program on PATH"):
        engines(replace(PLAIN, transport="openssh"), ENVIRON)


def test_a_configuration_that_cannot_be_read_is_an_error_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^-F .*/none: No such file or directory$"):
        engines(Settings(ssh_config=f"{tmp_path}/none"), ENVIRON)


def test_paramiko_behind_a_jump_host_names_the_transport_that_works(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host node07\n  ProxyJump bastion\n")
    with pytest.raises(NotConnectedError) as raised:
        engines(Settings(transport="paramiko", ssh_config=str(config)), ENVIRON)(Node("node07")).connect(
            Node("node07"), 60
        )
    login = raised.value.login
    assert (login.cause, login.fix) == (Cause.TRANSPORT, "ncheck --transport openssh nodes.txt")


def test_every_cause_of_the_ssh_client_is_a_cause_in_evidence() -> None:
    assert {cause.name: cause.value for cause in ssh.LoginCause}.items() <= {c.name: c.value for c in Cause}.items()


def test_of_several_ports_the_first_with_an_ssh_server_is_found() -> None:
    gone, http, ssh_server = (socket.create_server(("127.0.0.1", 0)) for _ in range(3))
    ports = [server.getsockname()[1] for server in (gone, http, ssh_server)]
    gone.close()

    def greet(server: socket.socket, text: bytes) -> None:
        with server, server.accept()[0] as client:
            client.sendall(text)

    for server, text in ((http, b"HTTP/1.1 400\r\n"), (ssh_server, b"SSH-2.0-x\r\n")):
        Thread(target=greet, args=(server, text), daemon=True).start()
    assert (answering("127.0.0.1", ports), answering("127.0.0.1", ports[:1])) == (ports[2], 0)
