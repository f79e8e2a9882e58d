"""known_hosts read as OpenSSH reads it: our answer and that of ssh itself, case by case, against one real sshd."""

from __future__ import annotations

import base64
import hmac
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from ncheck.ssh.known_hosts import HostKeyAnswer, HostRecord, KnownHosts, Trust, look_up


class Keys(Protocol):
    def path(self, name: str) -> Path: ...
    def public(self, name: str) -> str: ...


def hashed(name: str) -> str:
    salt = b"twenty bytes of salt"
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


# {good} is the host's key, {bad} another of the same type, {kin} its own of another type, {at} "[127.0.0.1]:PORT".
CASES = {
    "exact": "{at} {good}",
    "not there": "node08 {good}",
    "empty": "",
    "a list of names": "node08,{at},node09 {good}",
    "wildcard": "[127.0.0.*]:* {good}",
    "question marks": "[127.0.?.?]:{port} {good}",
    "brackets are no character class": "[127].0.0.1 {good}",
    "negated": "*,!{at} {good}",
    "negated elsewhere": "*,!node08 {good}",
    "only a negation": "!node08 {good}",
    "hashed": "{hashed} {good}",
    "hashed, of another": "{hashed_other} {good}",
    "hashed and changed": "{hashed} {bad}",
    "without its port": "127.0.0.1 {good}",
    "without its port and wrong": "127.0.0.1 {bad}",
    "with its port wrong, without right": "{at} {bad}\n127.0.0.1 {good}",
    "changed": "{at} {bad}",
    "changed, of another type": "{at} {rsa}",
    "two keys, one right": "{at} {bad}\n{at} {good}",
    "revoked": "{at} {good}\n@revoked {at} {good}",
    "another key revoked": "{at} {good}\n@revoked {at} {bad}",
    "revoked for everyone": "@revoked * {good}",
    "revoked for another host": "{at} {good}\n@revoked node08 {good}",
    "revoked without its port": "{at} {good}\n@revoked 127.0.0.1 {good}",
    "an authority only": "@cert-authority * {bad}",
    "an authority and the key": "@cert-authority * {bad}\n{at} {good}",
    "an unknown marker": "@believed {at} {good}",
    "comments and blanks": "# {at} {bad}\n\n   \t\n  {at}   {good}  and a comment",
    "a line that is no key": "{at} ssh-ed25519 AAAA!!!!\n{at} {good}",
    "a key that is cut short": "{at} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n{at} {good}",
    "a type that does not match its key": "{at} ssh-rsa {good_text}\n{at} {good}",
    "half a line": "{at}\n{at} ssh-ed25519\n{at} {good}",
    "bytes that are no text": "\xff\xfe {bad}\n{at} {good}",
    "a broken hash": "|1|nonsense {good}\n{at} {good}",
    "upper case": "[127.0.0.1]:{port} {good}",
}


@pytest.fixture(scope="module")
def said_by_ssh() -> Callable[[int, Path], Trust]:
    return ask_ssh


def ask_ssh(port: int, file: Path) -> Trust:
    """Return what ssh makes of a host key: it is known when ssh goes on to the authentication."""
    options = [f"-oUserKnownHostsFile={file}", "-oGlobalKnownHostsFile=/dev/null", "-oStrictHostKeyChecking=yes"]
    asked = [
        "ssh",
        "-F",
        "none",
        "-oBatchMode=yes",
        "-oPubkeyAuthentication=no",
        *options,
        "-p",
        str(port),
        "127.0.0.1",
    ]
    told = subprocess.run([*asked, "true"], capture_output=True, text=True, timeout=60, check=False).stderr
    for words, standing in (("REVOKED", Trust.REVOKED), ("HAS CHANGED", Trust.CHANGED)):
        if words in told:
            return standing
    return Trust.UNKNOWN if "Host key verification failed" in told else Trust.KNOWN


@pytest.mark.parametrize("case", CASES)
def test_our_answer_is_that_of_ssh(
    case: str, sshd: Callable[..., int], keys: Keys, tmp_path: Path, said_by_ssh: Callable[[int, Path], Trust]
) -> None:
    port = sshd("HostKeyAlgorithms ssh-ed25519")
    text = CASES[case].format(
        at=f"[127.0.0.1]:{port}", port=port, good=keys.public("host_ed25519"), bad=keys.public("other"),
        rsa=keys.public("rsa"), good_text=keys.public("host_ed25519").split()[1],
        hashed=hashed(f"[127.0.0.1]:{port}"), hashed_other=hashed("[127.0.0.2]:22"),
    )  # fmt: skip
    file = tmp_path / "known"
    file.write_bytes(text.encode("latin-1") + b"\n")
    record = look_up(KnownHosts([str(file)]), "127.0.0.1", port)
    assert record.judge(blob(keys, "host_ed25519")).trust is said_by_ssh(port, file)


def blob(keys: Keys, name: str) -> bytes:
    return base64.b64decode(keys.public(name).split()[1])


def record_of(tmp_path: Path, *texts: str, host: str = "node07", port: int = 22, alias: str = "") -> HostRecord:
    files = []
    for number, text in enumerate(texts):
        files.append(tmp_path / f"known{number}")
        files[-1].write_text(text)
    return look_up(KnownHosts(str(file) for file in files), host, port, alias)


def test_a_change_names_the_line_of_the_same_type_of_key(tmp_path: Path, keys: Keys) -> None:
    record = record_of(tmp_path, f"node07 {keys.public('rsa')}\nnode07 {keys.public('other')}\n")
    answer = record.judge(blob(keys, "host_ed25519"))
    assert answer.trust is Trust.CHANGED
    assert answer.line is not None
    assert answer.line.place == f"{tmp_path}/known0:2"


def test_the_second_file_counts_too_and_one_that_is_not_there_does_not(tmp_path: Path, keys: Keys) -> None:
    record = record_of(tmp_path, "", f"node07 {keys.public('other')}\n")
    assert record.judge(blob(keys, "other")).trust is Trust.KNOWN
    assert KnownHosts([str(tmp_path / "absent")]).entries("node07") == ()


def test_the_types_of_known_keys_are_told_so_that_they_are_asked_for_first(tmp_path: Path, keys: Keys) -> None:
    record = record_of(tmp_path, f"node07 {keys.public('ecdsa')}\n@revoked node07 {keys.public('rsa')}\n")
    assert record.key_types == ("ecdsa-sha2-nistp256",)


def test_an_alias_is_looked_up_without_the_port(tmp_path: Path, keys: Keys) -> None:
    record = record_of(tmp_path, f"cluster {keys.public('other')}\n", port=10001, alias="cluster")
    assert record.judge(blob(keys, "other")).trust is Trust.KNOWN


def test_names_are_the_same_in_upper_and_lower_case(tmp_path: Path, keys: Keys) -> None:
    record = record_of(tmp_path, f"NODE07 {keys.public('other')}\n", host="Node07")
    assert record.judge(blob(keys, "other")).trust is Trust.KNOWN


def test_an_unknown_host_has_no_line(tmp_path: Path, keys: Keys) -> None:
    assert record_of(tmp_path, "").judge(blob(keys, "other")) == HostKeyAnswer(Trust.UNKNOWN)


def test_an_authority_is_noticed(tmp_path: Path, keys: Keys) -> None:
    assert record_of(tmp_path, f"@cert-authority node* {keys.public('ca')}\n").has_authority


def test_ten_thousand_hashed_lines_are_read_once_and_searched_in_a_blink(tmp_path: Path, keys: Keys) -> None:
    lines = [f"{hashed(f'node{number}')} {keys.public('other')}" for number in range(10_000)]
    file = tmp_path / "many"
    file.write_text("\n".join(lines))
    began = time.process_time()
    known = KnownHosts([str(file)])
    assert [line.number for line in known.entries("node9999")] == [10_000]
    assert time.process_time() - began < 5  # it takes 0.1 s; the quadratic readers of this file take minutes
