"""The algorithms that are offered: OpenSSH's defaults, and its rules for changing them, held to the ssh program."""

from __future__ import annotations

import re
import shutil
import subprocess

import paramiko
import pytest
from ncheck.model.evidence import Cause
from ncheck.ssh.algorithms import DEFAULT, KEYWORDS, WantedAlgorithms, assembled, lacking, may_sign, offered

from .sites import Keys, Known, Site, Sshd

TABLES = {  # what this release of paramiko has
    "kexalgorithms": "_kex_info",
    "ciphers": "_cipher_info",
    "macs": "_mac_info",
    "hostkeyalgorithms": "_key_info",
}
NEWER = {"mlkem768x25519-sha256"}  # OpenSSH 9.9


@pytest.mark.parametrize(
    ("value", "list_"),
    [
        ("", ("b", "a")),
        ("+c", ("b", "a", "c")),
        ("+a,c", ("b", "a", "c")),
        ("-b", ("a",)),
        ("-*", ()),
        ("^a", ("a", "b")),
        ("^c,a", ("c", "a", "b")),
        ("c,b", ("c", "b")),
        ("c*,?", ("c", "cc", "b", "a")),
        ("unknown", ()),
        ("+unknown", ("b", "a")),
    ],
)
def test_a_value_changes_the_default_as_its_sign_says(value: str, list_: tuple[str, ...]) -> None:
    assert assembled(value, ("b", "a"), ("b", "a", "c", "cc")) == list_


def by_ssh(keyword: str, value: str) -> tuple[str, ...]:
    """Return the list that the ssh program makes of a value."""
    ssh = shutil.which("ssh") or pytest.skip("no ssh program here")
    given = [f"-o{keyword}={value}"] if value else []
    done = subprocess.run([ssh, "-G", "-F", "none", *given, "host"], capture_output=True, text=True, check=True)
    (line,) = re.findall(rf"^{keyword} (.*)$", done.stdout, re.MULTILINE)
    return tuple(line.split(","))


VALUES = {
    "ciphers": ("+aes128-cbc", "-aes*-ctr", "^aes256-ctr", "aes256-ctr,aes128-ctr", "3des-cbc"),
    "macs": ("+hmac-md5", "-hmac-sha1*", "^hmac-sha2-512", "hmac-md5-96,hmac-sha1"),
    "kexalgorithms": ("-*sha256*", "^ecdh-sha2-nistp521", "+diffie-hellman-group14-sha1"),
    "hostkeyalgorithms": ("-ssh-ed25519", "^rsa-sha2-*", "ecdsa-sha2-nistp256,ssh-ed25519"),
}


@pytest.mark.parametrize(("keyword", "value"), [(key, value) for key, of in VALUES.items() for value in ("", *of)])
def test_what_is_offered_is_what_the_ssh_program_would_offer(keyword: str, value: str) -> None:
    ours, known = (offered(WantedAlgorithms(**{keyword: one}), keyword) for one in (value, "*"))  # type: ignore[arg-type]
    theirs = tuple(name for name in by_ssh(keyword, value) if name in known)
    assert set(ours) - NEWER == set(theirs)
    if value and value[0] not in "+-^" and "*" not in value:
        assert ours == theirs


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_every_default_is_in_paramiko(keyword: str) -> None:
    aliases = {"curve25519-sha256"}  # its other name is in all releases
    assert set(DEFAULT[keyword]) - set(getattr(paramiko.Transport, TABLES[keyword])) - aliases - NEWER == set()


@pytest.mark.parametrize("value", ["chacha20-poly1305@openssh.com", "-*"])
def test_where_paramiko_has_nothing_of_a_value_it_says_so(value: str) -> None:
    assert lacking(WantedAlgorithms(ciphers=value)) == f"Ciphers {value}"
    assert lacking(WantedAlgorithms(ciphers="+aes128-cbc", macs="hmac-sha1")) == ""


@pytest.mark.parametrize(
    ("kind", "value", "offered_"),
    [
        ("ssh-ed25519", "", True),
        ("ssh-dss", "", True),  # paramiko has none, and says so
        ("ssh-ed25519", "ecdsa-*", False),
        ("ecdsa-sha2-nistp384", "ecdsa-*", True),
        ("ssh-rsa", "rsa-sha2-512", True),
        ("ssh-rsa", "-rsa-*", False),
        ("ssh-rsa", "+ssh-rsa", True),
        ("ssh-ed25519", "+ssh-rsa", True),
        ("ssh-ed25519-cert-v01@openssh.com", "ssh-ed25519", False),
        ("ssh-ed25519-cert-v01@openssh.com", "ssh-ed25519*", True),
        ("ssh-rsa-cert-v01@openssh.com", "rsa-sha2-256-cert-v01@openssh.com", True),
        ("sk-ssh-ed25519@openssh.com", "^ssh-ed25519", True),
    ],
)
def test_a_key_is_offered_where_its_algorithm_is_accepted(kind: str, value: str, offered_: bool) -> None:  # noqa: FBT001  a table
    assert may_sign(kind, WantedAlgorithms(pubkeyacceptedalgorithms=value)) is offered_


# Real servers, by both clients


@pytest.mark.parametrize(
    ("server", "wanted"),
    [
        (("Ciphers aes128-cbc",), {"Ciphers": "+aes128-cbc"}),
        (("Ciphers 3des-cbc",), {"Ciphers": "aes256-ctr,3des-cbc"}),
        (("Ciphers aes128-ctr", "MACs hmac-md5"), {"MACs": "^hmac-md5"}),
    ],
)
def test_what_openssh_refuses_by_default_is_offered_only_where_it_is_asked_for(
    site: Site, sshd: Sshd, known: Known, server: tuple[str, ...], wanted: dict[str, str]
) -> None:
    known(port := sshd(*server))
    login = site.with_lines(Port=port).failure()
    assert login.cause is Cause.TRANSPORT
    stream = site.with_lines(Port=port, **wanted).connect()
    stream.close()
    assert stream.login.reached


@pytest.mark.parametrize(
    ("server", "wanted"),
    [
        ("Ciphers aes256-ctr", {"Ciphers": "aes128-ctr"}),
        ("Ciphers aes256-ctr", {"Ciphers": "-aes256-*"}),
        ("KexAlgorithms ecdh-sha2-nistp256", {"KexAlgorithms": "curve25519-sha256@libssh.org"}),
        ("HostKeyAlgorithms ssh-ed25519", {"HostKeyAlgorithms": "ecdsa-sha2-nistp256"}),
    ],
)
def test_what_the_configuration_leaves_out_is_not_offered(
    site: Site, sshd: Sshd, known: Known, server: str, wanted: dict[str, str]
) -> None:
    known(port := sshd(server))
    login = site.with_lines(Port=port, **wanted).failure()
    assert login.cause is Cause.TRANSPORT


def test_the_host_key_is_of_the_type_that_is_asked_for(site: Site, sshd: Sshd, keys: Keys) -> None:
    port = sshd()
    known = [f"[127.0.0.1]:{port} {keys.public(name)}\n" for name in ("host_ed25519", "host_ecdsa")]
    (site.folder / "known_hosts").write_text("".join(known))
    stream = site.with_lines(Port=port, HostKeyAlgorithms="^ecdsa-sha2-nistp256").connect()
    stream.close()
    assert stream.login.host_key.startswith("ecdsa-sha2-nistp256 ")


@pytest.mark.parametrize("keyword", ["PubkeyAcceptedAlgorithms", "PubkeyAcceptedKeyTypes"])
def test_a_key_that_is_not_accepted_is_not_offered(site: Site, sshd: Sshd, known: Known, keyword: str) -> None:
    known(port := sshd())
    login = site.with_lines(Port=port, **{keyword: "ecdsa-*"}).failure()
    assert (login.cause, login.offered_keys) == (Cause.AUTH_REFUSED, ())
    stream = site.with_lines(Port=port, **{keyword: "^ssh-ed25519"}).connect()
    stream.close()
    assert stream.login.reached
