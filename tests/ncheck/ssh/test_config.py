"""ssh configuration: what we decide, what we leave to ssh, and why ssh itself must connect."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from ncheck.ssh.config import SshConfig, read_ssh_config
from ncheck.ssh.config_syntax import LocalUser
from ncheck.ssh.login import ConfigError, ListedHost, Options
from ncheck.ssh.target import SshTarget

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs openssh-client")


def user(home: Path, environ: Mapping[str, str] | None = None) -> LocalUser:
    return LocalUser("me", os.getuid(), str(home), "head.cluster", environ or {})


def config(home: Path, text: str, environ: Mapping[str, str] | None = None) -> SshConfig:
    """Read this text by -F."""
    file = home / "ssh_config"
    file.write_text(text)
    return read_ssh_config(Options(config_file=str(file)), environ or {}, user(home, environ))


def read(home: Path, text: str, name: str = "node01", environ: Mapping[str, str] | None = None) -> SshTarget:
    return config(home, text, environ).read(ListedHost(name))


def test_without_a_configuration_everything_is_openssh_s_default(tmp_path: Path) -> None:
    home = str(tmp_path)
    me = user(tmp_path, {"SSH_AUTH_SOCK": "/agent"})
    target = read_ssh_config(Options(config_file="none"), {}, me).read(ListedHost("N1"))
    kinds = ("rsa", "ecdsa", "ecdsa_sk", "ed25519", "ed25519_sk", "xmss", "dsa")
    assert target == SshTarget(
        name="N1", host_name="n1", port=22, user="me", identity_agent="/agent",
        identity_files=tuple(f"{home}/.ssh/id_{kind}" for kind in kinds),
        known_hosts_files=(f"{home}/.ssh/known_hosts", f"{home}/.ssh/known_hosts2"),
        global_known_hosts_files=("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"),
    )  # fmt: skip


def test_the_user_s_file_is_read_before_the_system_s_and_its_includes_start_in_dot_ssh(tmp_path: Path) -> None:
    (tmp_path / ".ssh/conf.d").mkdir(parents=True)
    (tmp_path / ".ssh/config").write_text("Include conf.d/*\nHost *\n  Port 3\n")
    (tmp_path / ".ssh/conf.d/a").write_text("Host node*\n  Port 1\n")
    (tmp_path / ".ssh/conf.d/b").write_text("Port 2\n")
    for file in tmp_path.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    files = read_ssh_config(Options(), {}, user(tmp_path))
    assert (files.read(ListedHost("node1")).port, files.read(ListedHost("gpu1")).port) == (1, 2)


@pytest.mark.parametrize(
    ("listing", "flag", "file", "port"), [(1, 2, 3, 1), (None, 2, 3, 2), (None, None, 3, 3), (None, None, None, 22)]
)
def test_a_port_of_the_listing_outweighs_p_and_that_the_files(
    tmp_path: Path, listing: int | None, flag: int | None, file: int | None, port: int
) -> None:
    path = tmp_path / "ssh_config"
    path.write_text(f"Port {file}\n" if file else "")
    options = Options(config_file=str(path), port=flag)
    assert read_ssh_config(options, {}, user(tmp_path)).read(ListedHost("node01", port=listing)).port == port


def test_a_user_of_the_listing_is_what_match_user_sees(tmp_path: Path) -> None:
    files = config(tmp_path, "Match user alice\n  IdentityFile ~/alice\nHost *\n  User bob\n  IdentityFile ~/bob\n")
    assert files.read(ListedHost("n", user="alice")).identity_files == (f"{tmp_path}/alice", f"{tmp_path}/bob")
    assert (files.read(ListedHost("n")).user, files.read(ListedHost("n")).identity_files) == (
        "bob",
        (f"{tmp_path}/bob",),
    )


def test_the_key_of_i_is_tried_first(tmp_path: Path) -> None:
    file = tmp_path / "ssh_config"
    file.write_text("IdentityFile ~/other\n")
    options = Options(config_file=str(file), identity="/keys/100%")
    target = read_ssh_config(options, {}, user(tmp_path)).read(ListedHost("n"))
    assert target.identity_files == ("/keys/100%", f"{tmp_path}/other")


def test_tokens_and_variables_are_expanded(tmp_path: Path) -> None:
    text = "HostName %h.ib\nUser bob\nPort 2222\nIdentityFile %d/%u-%r@%h:%p-%n-%L-%l-%i-%k-%%\n"
    target = read(tmp_path, text + "IdentityAgent ${SOCKETS}/a\n", "N1", {"SOCKETS": "/run/s"})
    assert target.identity_files == (f"{tmp_path}/me-bob@n1.ib:2222-N1-head-head.cluster-{os.getuid()}-N1-%",)
    assert (target.identity_agent, target.unsure) == ("/run/s/a", "")


@pytest.mark.parametrize(
    ("text", "unsure"),
    [
        ("Match exec true\n  Port 1", "Match exec"),
        ("Match host other exec true\n  Port 1", ""),
        ("Match final\n  Port 1", "{file} line 1: only ssh can decide Match final"),
        ("Match localnetwork 10.0.0.0/8\n  Port 1", "{file} line 1: only ssh can decide Match localnetwork"),
        ("Match tagged x\n  Port 1", "{file} line 1: only ssh can decide Match tagged"),
        ("Match all host x\n  Port 1", "{file} line 1: Match all beside other criteria"),
        ("CanonicalizeHostname yes", "CanonicalizeHostname"),
        ("Host other\n  CanonicalizeHostname always", ""),
        ("NewKeyword yes", "{file} line 1: unknown keyword newkeyword"),
        ("IgnoreUnknown New*,Use*\nNewKeyword yes\nUseKeychain no", ""),
        ("Host b\n  IgnoreUnknown New*\n  NewKeyword 1", "{file} line 3: unknown keyword newkeyword"),
        ("IdentityFile ~/%j", "~/%j: only ssh can expand %j"),
        ("IdentityFile ${UNSET}/k", "${{UNSET}}/k: the variable UNSET is not set"),
        ("HostName %p.example", "HostName %p.example: only ssh can expand %p"),
        ("User %u", "{file} line 1: '%u' needs expansion"),
        ("Port ssh", "{file} line 1: 'ssh' is not a port number"),
        ("ConnectTimeout soon", "{file} line 1: 'soon' is not a time"),
        ("StrictHostKeyChecking maybe",
         "{file} line 1: 'maybe' is not one of yes, no, ask, accept-new, true, false, off"),
        ("Port", "{file} line 1: port without a value"),
        ("Port 22 23", "{file} line 1: port with more than one value"),
        ('HostName "x', "{file} line 1: an unclosed quote"),
        ("ProxyCommand sh -c 'x", "{file} line 1: an unclosed quote"),
        ("ProxyJump a # it's", ""),
        ("Include %d/x", "{file} line 1: only ssh can follow this Include"),
        ("Include ssh_config", ""),
    ],
)  # fmt: skip
def test_what_only_ssh_can_decide_is_left_to_it_with_the_reason(tmp_path: Path, text: str, unsure: str) -> None:
    assert read(tmp_path, text).unsure == unsure.format(file=tmp_path / "ssh_config")


def test_a_file_that_includes_itself_without_end_is_left_to_ssh(tmp_path: Path) -> None:
    file = tmp_path / "ssh_config"
    file.touch(0o600)
    assert read(tmp_path, f"Include {file}\n").unsure == f"{file} line 1: Include nested too deep"


def test_a_file_of_the_user_that_others_may_write_to_is_left_to_ssh_which_refuses_it(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").touch()
    (tmp_path / ".ssh/config").chmod(0o666)
    unsure = read_ssh_config(Options(), {}, user(tmp_path)).read(ListedHost("n")).unsure
    assert unsure == f"{tmp_path}/.ssh/config: bad owner or permissions"


@needs_ssh
def test_ssh_is_asked_where_we_are_unsure(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"]}
    files = config(tmp_path, "Match exec true\n  Port 2222\n  User bob\nProxyJump bastion\n", environ)
    target = files.resolve(ListedHost("node01", user="alice"))
    assert (target.name, target.port, target.user, target.unsure) == ("node01", 2222, "alice", "")
    assert target.needs_openssh == "ProxyJump bastion"


@needs_ssh
def test_what_ssh_refuses_is_an_error_in_its_own_words(tmp_path: Path) -> None:
    home = tmp_path / "a-folder-whose-name-is-long"
    home.mkdir()
    files = config(home, "Bogus yes\n", {"PATH": os.environ["PATH"]})
    with pytest.raises(ConfigError) as caught:
        files.resolve(ListedHost("node01"))
    assert str(caught.value) == f"ssh configuration: {home}/ssh_config: line 1: Bad configuration option: bogus"


def test_without_an_ssh_program_our_own_reading_stands_and_says_that_it_is_unsure(tmp_path: Path) -> None:
    files = config(tmp_path, "Port 2222\nMatch exec true\n  User bob\n", {"PATH": str(tmp_path)})
    target = files.resolve(ListedHost("node01"))
    assert (target.port, target.user, target.unsure) == (2222, "me", "Match exec")


def test_a_file_of_f_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_ssh_config(Options(config_file=f"{tmp_path}/none"), {}, user(tmp_path))
    assert str(caught.value) == f"-F {tmp_path}/none: No such file or directory"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ProxyJump bastion", "ProxyJump bastion"),
        ("ProxyJump none", ""),
        ("ProxyCommand nc %h %p", "ProxyCommand"),
        ("ProxyCommand none", ""),
        ("HostbasedAuthentication yes", "HostbasedAuthentication yes"),
        ("PubkeyAuthentication no", "PubkeyAuthentication no"),
        ("PreferredAuthentications keyboard-interactive", "PreferredAuthentications keyboard-interactive"),
        ("PreferredAuthentications gssapi-with-mic,publickey", ""),
        ("PKCS11Provider /usr/lib/p11.so", "PKCS11Provider"),
        ("KnownHostsCommand /bin/keys %H", "KnownHostsCommand"),
        ("RevokedHostKeys /etc/ssh/revoked", "RevokedHostKeys"),
        ("VerifyHostKeyDNS ask", "VerifyHostKeyDNS ask"),
        ("BindInterface ib0", "BindInterface"),
        ("GSSAPIAuthentication yes", ""),
        ("ControlMaster auto\nControlPath ~/.ssh/cm-%C", ""),
        ("Compression yes\nForwardAgent yes\nCiphers aes128-ctr", ""),
    ],
)
def test_ssh_itself_connects_only_where_its_configuration_asks_for_what_paramiko_lacks(
    tmp_path: Path, text: str, reason: str
) -> None:
    assert read(tmp_path, text, environ={"PATH": "", "KRB5CCNAME": "/nowhere"}).needs_openssh == reason


@pytest.mark.parametrize(
    ("cache", "reason"),
    [
        ("{home}/ticket", "GSSAPIAuthentication with a Kerberos ticket"),
        ("FILE:{home}/ticket", "GSSAPIAuthentication with a Kerberos ticket"),
        ("KEYRING:persistent:0", "GSSAPIAuthentication with a Kerberos ticket"),
        ("FILE:{home}/none", ""),
    ],
)
def test_gssapi_counts_where_a_ticket_is_in_sight(tmp_path: Path, cache: str, reason: str) -> None:
    (tmp_path / "ticket").touch()
    environ = {"PATH": "", "KRB5CCNAME": cache.format(home=tmp_path)}
    assert read(tmp_path, "GSSAPIAuthentication yes", environ=environ).needs_openssh == reason


@pytest.mark.parametrize(("status", "reason"), [(0, "GSSAPIAuthentication with a Kerberos ticket"), (1, "")])
def test_klist_has_the_word_on_tickets_where_it_exists(tmp_path: Path, status: int, reason: str) -> None:
    (tmp_path / "klist").write_text(f"#!/bin/sh\nexit {status}\n")
    (tmp_path / "klist").chmod(0o700)
    environ = {"PATH": str(tmp_path), "KRB5CCNAME": "KCM:"}
    assert read(tmp_path, "GSSAPIAuthentication yes", environ=environ).needs_openssh == reason


def test_a_connection_that_is_open_already_is_used(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as master:
        master.bind(str(tmp_path / "cm-node01-22"))
        target = read(tmp_path, "ControlPath ~/cm-%h-%p")
    assert target.needs_openssh == f"ControlPath {tmp_path}/cm-node01-22 is open"


@pytest.mark.parametrize(("lines", "shared"), [
    ("ControlMaster auto\nControlPath ~/cm", True), ("ControlMaster autoask\nControlPath ~/cm-%r@%p", True),
    ("ControlMaster auto\nControlPath ~/cm-%h", False), ("ControlMaster auto\nControlPath ~/cm-%C", False),
    ("ControlMaster auto\nControlPath ~/cm-%n", False), ("ControlMaster auto\nControlPath none", False),
    ("ControlMaster no\nControlPath ~/cm", False), ("ControlPath ~/cm", False),
    (f"ControlMaster auto\nControlPath ~/cm-{'0a' * 20}", False), ("ControlMaster auto", False),
])  # fmt: skip
def test_a_control_path_without_a_hosts_name_is_one_for_all_hosts(tmp_path: Path, lines: str, shared: bool) -> None:  # noqa: FBT001
    target = read(tmp_path, lines)
    assert target.shared_socket == (target.control_path if shared else "")


def test_one_that_is_open_is_used_without_a_control_master_too(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as master:
        master.bind(str(tmp_path / "cm"))
        assert read(tmp_path, "ControlPath ~/cm").shared_socket == f"{tmp_path}/cm"


def test_a_security_key_that_is_the_only_key_needs_ssh(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_ed25519_sk").touch()
    assert read(tmp_path, "").needs_openssh == f"{tmp_path}/.ssh/id_ed25519_sk is a security key"
    (tmp_path / ".ssh/id_rsa").touch()
    assert read(tmp_path, "").needs_openssh == ""


@pytest.mark.parametrize(
    ("text", "known_as"),
    [("", "node01"), ("Port 2222", "[node01]:2222"), ("Port 2222\nHostKeyAlias farm", "farm"), ("HostName ::1", "::1")],
)
def test_known_hosts_is_searched_for_the_name_that_openssh_searches_for(
    tmp_path: Path, text: str, known_as: str
) -> None:
    assert read(tmp_path, text).known_as == known_as


def test_the_arguments_for_ssh_say_what_the_listing_and_the_flags_say(tmp_path: Path) -> None:
    options = Options(config_file="/c", port=10001, user="bob", identity="/k")
    files = SshConfig(options, user(tmp_path), ())
    assert files.ssh_arguments(ListedHost("n", user="alice")) == [
        "-F", "/c", "-i", "/k", "-l", "alice", "-p", "10001", "--", "n",
    ]  # fmt: skip
    assert SshConfig(Options(), user(tmp_path), ()).ssh_arguments(ListedHost("n")) == ["--", "n"]


def test_a_thousand_hosts_of_a_long_file_are_quick(tmp_path: Path) -> None:
    blocks = "".join(f"Host n{i}\n  HostName 10.0.{i // 250}.{i % 250}\n  Port 2222\n" for i in range(1000))
    files = config(tmp_path, blocks + "Host n*\n  User bob\n")
    began = time.process_time()
    targets = [files.read(ListedHost(f"n{i}")) for i in range(1000)]
    assert time.process_time() - began < 1  # a thirtieth of it, unless something grows with the square
    assert {(target.port, target.user) for target in targets} == {(2222, "bob")}
