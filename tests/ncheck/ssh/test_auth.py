"""Which keys are offered, in which order, and how those are reported that cannot be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Protocol

import pytest
from ncheck.ssh.auth import Identities, load_identities
from ncheck.ssh.public_keys import public_part


class Keys(Protocol):
    def path(self, name: str) -> Path: ...
    def public(self, name: str) -> str: ...


def fingerprint(path: Path) -> str:
    told = subprocess.run(["ssh-keygen", "-lf", str(path)], check=True, capture_output=True, text=True)
    return told.stdout.split()[1]


@pytest.fixture
def agent(tmp_path: Path, keys: Keys, empty_agent: Path) -> str:
    """Return the socket of an agent that holds `locked` and `rsa`."""
    ask = tmp_path / "ask"
    ask.write_text("#!/bin/sh\necho secret\n")
    ask.chmod(0o700)
    environ = {**os.environ, "SSH_AUTH_SOCK": str(empty_agent), "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
    names = [str(keys.path("locked")), str(keys.path("rsa"))]
    subprocess.run(["ssh-add", "-q", *names], env=environ, check=True, capture_output=True)
    return str(empty_agent)


def offered(identities: Identities) -> list[str]:
    return [identity.description for identity in identities.offers]


def test_files_are_offered_in_the_order_of_the_configuration(keys: Keys) -> None:
    paths = (str(keys.path("rsa")), "/no/such/key", str(keys.path("ecdsa")), str(keys.path("user")))
    assert offered(load_identities(paths, (), only=False, agent="")) == [
        f"RSA {fingerprint(keys.path('rsa'))} {paths[0]}",
        f"ECDSA {fingerprint(keys.path('ecdsa'))} {paths[2]}",
        f"ED25519 {fingerprint(keys.path('user'))} {paths[3]}",
    ]


def test_the_agents_configured_keys_come_first_then_its_others_then_files(keys: Keys, agent: str) -> None:
    paths = (str(keys.path("user")), str(keys.path("locked")))
    told = offered(load_identities(paths, (), only=False, agent=agent))
    assert [line.split()[1] for line in told] == [fingerprint(keys.path(name)) for name in ("locked", "rsa", "user")]


def test_identities_only_leaves_out_the_agents_others(keys: Keys, agent: str) -> None:
    told = offered(load_identities((str(keys.path("locked")),), (), only=True, agent=agent))
    assert told == [f"ED25519 {fingerprint(keys.path('locked'))} {keys.path('locked')} (agent)"]


def test_a_key_with_a_passphrase_that_no_agent_holds_is_named(keys: Keys) -> None:
    assert load_identities((str(keys.path("locked")),), (), only=False, agent="") == Identities(
        (), (str(keys.path("locked")),)
    )


def test_a_file_that_is_no_key_is_named_and_harms_no_other(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "nonsense").write_text("not a key")
    found = load_identities((str(tmp_path / "nonsense"), str(keys.path("user"))), (), only=False, agent="")
    assert len(found.offers) == 1
    assert found.unreadable == (f"{tmp_path / 'nonsense'}: not a private key that paramiko can read",)


def test_an_agent_that_is_gone_is_named(keys: Keys, tmp_path: Path) -> None:
    found = load_identities((str(keys.path("user")),), (), only=False, agent=str(tmp_path / "gone"))
    assert len(found.offers) == 1
    assert found.agent_error.startswith(f"the agent at {tmp_path / 'gone'} does not answer: ")


def test_a_certificate_beside_its_key_is_offered_before_it(keys: Keys, tmp_path: Path) -> None:
    for suffix in ("", ".pub"):
        (tmp_path / f"id{suffix}").write_bytes(keys.path(f"user{suffix}").read_bytes())
    (tmp_path / "id").chmod(0o600)
    signing = ["ssh-keygen", "-q", "-s", str(keys.path("ca")), "-I", "test", "-n", "ann", str(tmp_path / "id.pub")]
    subprocess.run(signing, check=True)
    told = offered(load_identities((str(tmp_path / "id"),), (), only=False, agent=""))
    assert [line.split()[0] for line in told] == ["ED25519-CERT", "ED25519"]


def test_the_public_half_is_read_without_the_passphrase(keys: Keys, tmp_path: Path) -> None:
    alone = tmp_path / "locked"
    alone.write_bytes(keys.path("locked").read_bytes())
    assert public_part(str(alone)) == public_part(str(keys.path("locked.pub")))
