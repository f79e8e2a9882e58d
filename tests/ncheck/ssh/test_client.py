"""Which client serves a host: paramiko or the ssh program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ncheck.ssh.client import SshClient
from ncheck.ssh.login import ListedHost, LoginCause, LoginFailedError, Options

from .sites import Keys, Sshd

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


def client(folder: Path, text: str = "", transport: str = "auto") -> SshClient:
    config = folder / "config"
    config.write_text(text)
    return SshClient("true", Options(config_file=str(config)), transport, ENVIRON)


def test_a_plain_host_is_served_by_paramiko(tmp_path: Path) -> None:
    assert client(tmp_path).transport_for(ListedHost("node07")) == "paramiko"


def test_a_host_behind_a_jump_host_is_served_by_the_ssh_program(tmp_path: Path) -> None:
    made = client(tmp_path, "Host node07\n  ProxyJump bastion\n")
    assert (made.transport_for(ListedHost("node07")), made.transport_for(ListedHost("node08"))) == (
        "openssh",
        "paramiko",
    )


def test_a_transport_that_was_asked_for_outweighs_the_configuration(tmp_path: Path) -> None:
    made = client(tmp_path, "Host node07\n  ProxyJump bastion\n", "paramiko")
    assert made.transport_for(ListedHost("node07")) == "paramiko"


def test_a_host_certificate_is_left_to_ssh(tmp_path: Path, sshd: Sshd, keys: Keys) -> None:
    host = tmp_path / "host"
    for suffix in ("", ".pub"):
        host.with_name(f"host{suffix}").write_bytes(keys.path(f"other{suffix}").read_bytes())
    host.chmod(0o600)
    signing = ["ssh-keygen", "-q", "-s", str(keys.path("ca")), "-I", "test", "-h", "-n", "127.0.0.1", f"{host}.pub"]
    subprocess.run(signing, check=True)
    port = sshd(f"HostKey {host}", f"HostCertificate {host}-cert.pub")
    known = tmp_path / "authorities"
    known.write_text(f"@cert-authority * {keys.public('ca')}\n")
    made = client(tmp_path, f"Host *\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {keys.path('user')}\n"
                            f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n")  # fmt: skip
    stream = made.connect(ListedHost("node07"), 60)
    stream.close()
    assert stream.record.transport == "openssh"


def test_paramiko_does_not_bypass_a_jump_host(tmp_path: Path) -> None:
    made = client(tmp_path, "Host node07\n  ProxyJump bastion\n", "paramiko")
    with pytest.raises(LoginFailedError) as raised:
        made.connect(ListedHost("node07"), 60)
    assert (raised.value.cause, raised.value.openssh_may_work) == (LoginCause.TRANSPORT, True)
