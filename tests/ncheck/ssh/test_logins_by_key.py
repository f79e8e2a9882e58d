"""Whose host key it is, and whose key logs in: the same promises for both clients."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from ncheck.model.evidence import Cause
from ncheck.settings import Settings
from ncheck.ssh.failures import to_have_a_key
from ncheck.ssh.target import SshTarget

from .sites import Keys, Known, Served, Site, Sshd, fingerprint, where

# Whose host key it is


def test_an_unknown_host_key_is_refused_before_any_key_of_ours_is_shown(site: Site, sshd: Sshd, keys: Keys) -> None:
    port = sshd()
    login = site.with_lines(Port=port).failure()
    assert (login.cause, login.offered_keys) == (Cause.HOST_KEY_UNKNOWN, ())
    assert fingerprint(keys, "host_ed25519") in login.detail
    assert login.fix == f"ssh -F {site.folder}/config-{site.kind} -o StrictHostKeyChecking=ask {where(port)}"


def test_a_changed_host_key_names_both_fingerprints_and_compares_before_the_old_key_is_removed(
    site: Site, sshd: Sshd, keys: Keys
) -> None:
    port, file = sshd(), site.folder / "known_hosts"
    file.write_text(f"# comment\n[127.0.0.1]:{port} {keys.public('other')}\n")
    login = site.with_lines(Port=port).failure()
    assert (login.cause, login.offered_keys) == (Cause.HOST_KEY_CHANGED, ())
    assert login.detail.startswith(f"the host key of [127.0.0.1]:{port} changed: it presents ")
    assert fingerprint(keys, "host_ed25519") in login.detail
    assert f"{file}:2 has ED25519 {fingerprint(keys, 'other')}. " in login.detail
    assert login.detail.endswith(f"type: ssh-keygen -f {file} -R '[127.0.0.1]:{port}'")
    assert login.fix == "cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -"


def test_a_revoked_host_key(site: Site, sshd: Sshd, known: Known, keys: Keys) -> None:
    known(port := sshd())
    with (site.folder / "known_hosts").open("a") as file:
        file.write(f"@revoked * {keys.public('host_ed25519')}\n")
    login = site.with_lines(Port=port).failure()
    assert login.cause is Cause.HOST_KEY_REVOKED
    names = site.folder / "known_hosts"
    assert login.detail.endswith(
        f"on this machine: ssh-keygen -f {names} -R '[127.0.0.1]:{port}'; ssh-keyscan -p {port} 127.0.0.1 >> {names}"
    )
    assert login.fix.startswith("sudo rm /etc/ssh/ssh_host_*_key* && sudo ssh-keygen -A && (sudo systemctl restart ")


@pytest.mark.parametrize("marker", ["", "@revoked "])
def test_a_host_key_that_only_the_configuration_trusts_is_a_warning(
    site: Site, sshd: Sshd, keys: Keys, marker: str
) -> None:
    port, file = sshd(), site.folder / "known_hosts"
    key = "host_ed25519" if marker else "other"
    file.write_text(f"# comment\n{marker}[127.0.0.1]:{port} {keys.public(key)}\n")
    stream = site.with_lines(Port=port, StrictHostKeyChecking="no").connect()
    stream.close()
    begins = f"the host key of [127.0.0.1]:{port} {'is marked ' if marker else 'changed: it presents '}"
    assert stream.login.host_key_warning.startswith(begins)
    assert fingerprint(keys, "host_ed25519") in stream.login.host_key_warning
    assert (f"{file}:2" in stream.login.host_key_warning) or bool(marker)


@pytest.mark.parametrize("strict", ["no", "accept-new"])
def test_a_host_key_that_is_known_or_new_is_none(site: Site, sshd: Sshd, known: Known, strict: str) -> None:
    new, port = sshd(), sshd()
    known(port)
    for one in (new, port):
        stream = site.with_lines(Port=one, StrictHostKeyChecking=strict).connect()
        stream.close()
        assert stream.login.host_key_warning == ""


def test_a_host_that_is_known_by_its_other_key_is_asked_for_that_one(site: Site, sshd: Sshd, keys: Keys) -> None:
    port = sshd()
    (site.folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {keys.public('host_ecdsa')}\n")
    stream = site.with_lines(Port=port).connect()
    stream.close()
    assert stream.login.host_key == f"ecdsa-sha2-nistp256 {fingerprint(keys, 'host_ecdsa')}"


def test_a_new_host_key_is_written_only_when_asked_for(site: Site, sshd: Sshd, keys: Keys) -> None:
    port, file = sshd(), site.folder / "known_hosts"
    file.write_text("# mine, without a newline at its end" + ("\n" if site.kind == "openssh" else ""))
    file.chmod(0o640)
    asked = replace(site, settings=Settings(accept_new_host_keys=True)).with_lines(Port=port)  # type: ignore[type-var]
    asked.connect().close()
    assert f"[127.0.0.1]:{port} {keys.public('host_ed25519')}" in file.read_text().splitlines()
    assert file.read_text().splitlines()[0] == "# mine, without a newline at its end"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    site.with_lines(Port=port).connect().close()


def test_a_changed_host_key_is_never_taken_for_a_new_one(site: Site, sshd: Sshd, keys: Keys) -> None:
    port, file = sshd(), site.folder / "known_hosts"
    file.write_text(text := f"[127.0.0.1]:{port} {keys.public('other')}\n")
    asked = replace(site, settings=Settings(accept_new_host_keys=True)).with_lines(Port=port)  # type: ignore[type-var]
    assert asked.failure().cause is Cause.HOST_KEY_CHANGED
    assert file.read_text() == text


# Who we are


@pytest.mark.parametrize("name", ["user", "ecdsa", "rsa"])
def test_each_type_of_key_logs_in(site: Site, sshd: Sshd, known: Known, keys: Keys, name: str) -> None:
    known(port := sshd(authorized=(name,)))
    assert site.with_lines(Port=port, IdentityFile=keys.path(name)).says("echo in") == (b"in\n", 0)


def test_refused_keys_are_listed_with_the_line_that_installs_one(
    site: Site, sshd: Sshd, known: Known, keys: Keys
) -> None:
    known(port := sshd(authorized=("other",)))
    login = site.with_lines(Port=port).failure()
    assert (login.cause, login.offered_keys) == (
        Cause.AUTH_REFUSED, (f"ED25519 {fingerprint(keys, 'user')} {keys.path('user')}",)
    )  # fmt: skip
    assert re.fullmatch(rf"ssh-copy-id .*{re.escape(where(port))}", login.fix)


def test_a_key_with_a_passphrase_is_never_asked_for(site: Site, sshd: Sshd, known: Known, keys: Keys) -> None:
    known(port := sshd(authorized=("locked",)))
    login = site.with_lines(Port=port, IdentityFile=keys.path("locked")).failure()
    assert login.cause is Cause.AUTH_REFUSED
    if site.kind == "paramiko":
        assert f"{keys.path('locked')} has a passphrase and is in no agent" in login.detail
        assert login.fix == f'eval "$(ssh-agent)"; ssh-add {keys.path("locked")}'


def test_no_key_at_all(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd())
    login = site.with_lines(Port=port, IdentityFile=site.folder / "none").failure()
    assert (login.cause, login.offered_keys, login.fix) == (
        Cause.AUTH_REFUSED,
        (),
        NAME_ONE,
    )


NAME_ONE = "name a key that is in authorized_keys there, with -i"


def test_who_has_no_key_is_shown_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    usual = tuple(str(tmp_path / ".ssh" / name) for name in ("id_rsa", "id_ed25519"))
    target = SshTarget("n1", "n1", port=10001, user="ann", identity_files=usual)
    assert to_have_a_key(target) == "ssh-keygen -t ed25519; ssh-copy-id -p 10001 ann@n1"
    assert to_have_a_key(replace(target, identity_files=("/opt/key",))) == NAME_ONE
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").touch()  # it is there, and cannot be read
    assert to_have_a_key(target) == NAME_ONE


def test_too_many_keys(site: Site, sshd: Sshd, known: Known, keys: Keys) -> None:
    known(port := sshd("MaxAuthTries 2"))
    more = tuple(f"IdentityFile {keys.path(name)}" for name in ("third", "ecdsa", "user"))
    many = replace(site.with_lines(Port=port, IdentityFile=keys.path("other")), extra=more)  # type: ignore[type-var]
    login = many.failure()
    assert login.cause is Cause.TOO_MANY_KEYS
    assert login.fix.startswith(f"ssh -F {site.folder}/config-{site.kind} -o IdentitiesOnly=yes -i ")


def test_a_login_that_wants_a_password_too(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd("AuthenticationMethods publickey,password", "PasswordAuthentication yes"))
    assert site.with_lines(Port=port).failure().cause is Cause.PERSON_WANTED


def test_a_login_that_takes_no_keys(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd("AuthenticationMethods keyboard-interactive", "KbdInteractiveAuthentication yes"))
    assert site.with_lines(Port=port).failure().cause is Cause.PERSON_WANTED


def test_a_node_that_wants_a_slurm_job(site: Site, sshd: Sshd, known: Known) -> None:
    words = site.folder / "banner"
    words.write_text("Access denied by pam_slurm_adopt: you have no active jobs on this node\n")
    known(port := sshd(f"Banner {words}", authorized=()))
    login = site.with_lines(Port=port).failure()
    assert (login.cause, login.fix) == (Cause.SLURM_JOB_WANTED, "salloc -w node07")


def test_an_account_without_a_shell_is_for_the_stream_to_tell(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd("ForceCommand echo This account is currently not available.; exit 1"))
    assert site.with_lines(Port=port).says("echo in") == (b"This account is currently not available.\n", 1)


def test_a_user_certificate_logs_in(site: Site, sshd: Sshd, known: Known, keys: Keys, tmp_path: Path) -> None:
    signing = ["ssh-keygen", "-q", "-s", str(keys.path("ca")), "-I", "test", "-n", where(0).split()[2].split("@")[0]]
    certificate = tmp_path / "user-cert.pub"
    public = tmp_path / "user.pub"
    public.write_text(keys.path("user.pub").read_text())
    subprocess.run([*signing, str(public)], check=True)
    known(port := sshd(f"TrustedUserCAKeys {keys.path('ca')}.pub", authorized=()))
    assert site.with_lines(Port=port, CertificateFile=certificate).says("echo in") == (b"in\n", 0)


def test_a_certificate_that_has_expired_is_named_with_its_time(
    site: Site, sshd: Sshd, known: Known, keys: Keys, tmp_path: Path
) -> None:
    certificates = {}
    for name, span in (("past", "20200101:20200102"), ("future", "20990101:20990102"), ("always", "always:forever")):
        public = tmp_path / f"{name}.pub"
        public.write_text(keys.path("user.pub").read_text())
        (tmp_path / name).write_bytes(keys.path("user").read_bytes())
        (tmp_path / name).chmod(0o600)
        signing = ["ssh-keygen", "-q", "-s", str(keys.path("ca")), "-I", name, "-n", "nobody", "-V", span, str(public)]
        subprocess.run(signing, check=True, env={**os.environ, "TZ": "UTC"})
        certificates[name] = tmp_path / f"{name}-cert.pub"
    known(port := sshd(f"TrustedUserCAKeys {keys.path('ca')}.pub", authorized=()))

    refused = {name: site.with_lines(Port=port, IdentityFile=tmp_path / name).failure() for name in certificates}

    past, future, always = refused["past"], refused["future"], refused["always"]
    assert (past.cause, past.fix) == (Cause.CERTIFICATE_EXPIRED, f"ssh-keygen -L -f {certificates['past']}")
    assert f" {certificates['past']} expired at 2020-01-02 00:00 UTC; it is 20" in past.detail
    assert future.cause is Cause.CERTIFICATE_EXPIRED
    assert " is valid only from 2099-01-01 00:00 UTC on; it is 20" in future.detail
    assert always.cause is Cause.AUTH_REFUSED  # it is for another user, which the server does not say


class _OnlyEcdsa(paramiko.Transport):
    """A server that lists ECDSA as OpenSSH 9.5 does where it accepts nothing else, and refuses every key."""

    @property
    def preferred_pubkeys(self) -> tuple[str, ...]:
        kinds = ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384")
        return (*kinds, "ssh-ed25519") if self.auth_handler else kinds  # without a handler, it is about to list them


class _Refuses(paramiko.ServerInterface):
    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002
        return "publickey"


def test_a_server_that_lists_its_types_of_keys_and_takes_none_of_ours_is_given_another_type(
    site: Site, served: Served, known: Known, keys: Keys
) -> None:
    def serve(connection: socket.socket) -> None:
        server = _OnlyEcdsa(connection)
        server.add_server_key(paramiko.Ed25519Key.from_private_key_file(str(keys.path("host_ed25519"))))
        server.start_server(server=_Refuses(), event=threading.Event())
        server.join(60)

    with served(serve) as port:
        known(port)
        login = site.with_lines(Port=port).failure()
        same = site.with_lines(Port=port, IdentityFile=keys.path("ecdsa")).failure()

    assert (login.cause, same.cause) == (Cause.KEY_TYPE_REFUSED, Cause.AUTH_REFUSED)
    listed = "ecdsa-sha2-nistp256, ecdsa-sha2-nistp384"
    assert login.detail == f"sshd accepts no key of the types that were offered; it accepts {listed}"
    assert login.fix.endswith(f"ssh-copy-id -i ~/.ssh/id_ecdsa.pub {where(port)}")


# The agent


@pytest.fixture
def agent(keys: Keys, empty_agent: Path) -> Path:
    environ = {**os.environ, "SSH_AUTH_SOCK": str(empty_agent)}
    names = [str(keys.path(name)) for name in ("rsa", "user")]
    subprocess.run(["ssh-add", "-q", *names], env=environ, check=True, stderr=subprocess.DEVNULL)
    return empty_agent


def test_the_agents_keys_log_in_after_those_that_are_configured(
    site: Site, sshd: Sshd, known: Known, keys: Keys, agent: Path
) -> None:
    known(port := sshd(authorized=("rsa",)))
    held = site.with_lines(Port=port, IdentitiesOnly="no", IdentityAgent=agent)
    stream = held.connect()
    stream.close()
    assert [told.split()[1] for told in stream.login.offered_keys] == [
        fingerprint(keys, "user"), fingerprint(keys, "rsa"),
    ]  # fmt: skip


def test_sixteen_logins_share_one_agent(site: Site, sshd: Sshd, known: Known, agent: Path) -> None:
    known(port := sshd("MaxStartups 100", authorized=("rsa",)))
    held = site.with_lines(Port=port, IdentitiesOnly="no", IdentityAgent=agent, IdentityFile=site.folder / "none")
    answers: list[object] = [held.says("echo in")]
    threads = [threading.Thread(target=lambda: answers.append(held.says("echo in"))) for _ in range(15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [(b"in\n", 0)] * 16
