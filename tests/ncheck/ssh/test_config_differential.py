"""Our reading of ssh_config against the real `ssh -G`, over configurations made at random from a fixed seed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from ncheck.ssh.algorithms import AS_DEFAULT, KEYWORDS, WantedAlgorithms, offered, user_keys
from ncheck.ssh.config import read_ssh_config
from ncheck.ssh.config_syntax import LocalUser, local_user
from ncheck.ssh.login import ListedHost, Options
from ncheck.ssh.target import SshTarget, from_ssh_g

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs openssh-client")

HOSTS = ("node01", "node02", "gpu-7.rack2", "Node01", "10.0.0.3", "fe80::1", "login")
PATTERNS = ("*", "node*", "node??", "!node02", "node01", "*.rack2", "10.0.0.?", "gpu-7.rack2,node01", "LOGIN", "login")
ENVIRON = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "KEYS": "/keys", "SSH_AUTH_SOCK": "/agent"}
VALUES = {
    "HostName": ("%h.cluster", "10.1.1.%h", "head", "UPPER.%h", "100%%", '"quoted"', "bad%x"),
    "Port": ("2222", "10001", "=22", "ssh", "0"),
    "User": ("alice", "bob # the admin", '"al ice"', "root"),
    "IdentityFile": ("~/.ssh/k1", "~/.ssh/%h_%r", '"/keys/with space"', "${KEYS}/%u", "none", "/k%%", "~/k2 # two"),
    "CertificateFile": ("~/c-%n-cert.pub", "/c%p", "~/c1"),
    "IdentitiesOnly": ("yes", "no", "TRUE"),
    "IdentityAgent": ("none", "SSH_AUTH_SOCK", "$SSH_AUTH_SOCK", "~/agent-%i", "${KEYS}/a"),
    "ProxyJump": ("none", "bastion", "u@b:2200,c  # through two"),
    "ProxyCommand": ("none", "nc %h %p # all of it", "sh -c 'x", '= "quoted" command'),
    "UserKnownHostsFile": ("~/kh", "/a/%h /b/%k", "none", '"/a"/b'),
    "GlobalKnownHostsFile": ("/g1 /g2", "~/g", "none"),
    "HostKeyAlias": ("cluster", "'al'"),
    "StrictHostKeyChecking": ("yes", "no", "off", "ask", "accept-new", "sometimes"),
    "ConnectTimeout": ("5", "1m30s", "none", "2H", "soon"),
    "HashKnownHosts": ("yes", "no"),
    "ControlPath": ("none", "~/.ssh/cm-%C", "/sockets/%r@%h:%p-%n-%L"),
    "ControlMaster": ("auto", "no", "autoask"),
    "GSSAPIAuthentication": ("yes", "no"),
    "HostbasedAuthentication": ("yes", "no"),
    "PreferredAuthentications": ("publickey,password", "hostbased"),
    "AddressFamily": ("inet", "inet6", "any", "INET"),
    "BindAddress": ("10.0.0.1", "::1"),
    "PKCS11Provider": ("none", "/usr/lib/p11.so"),
    "CanonicalizeHostname": ("no",),
    "ForwardAgent": ("yes",),
    "Compression": ("no",),
    "SendEnv": ("LANG LC_*",),
    "LocalForward": ("8080 localhost:80",),
    "Ciphers": ("+aes128-cbc", "-aes128-*", "^aes256-ctr", "aes256-ctr,chacha20-poly1305@openssh.com", "aes*"),
    "MACs": ("+hmac-md5", "-hmac-sha1*,hmac-sha2-256", "hmac-sha2-512,umac-64@openssh.com"),
    "KexAlgorithms": ("-*sha256*", "^ecdh-sha2-nistp521", "ecdh-sha2-nistp256"),
    "HostKeyAlgorithms": ("ssh-ed25519*,rsa-*", "-ecdsa-*", "^rsa-sha2-256", "+ssh-rsa"),
    "PubkeyAcceptedAlgorithms": ("+ssh-rsa", "-*-cert-v01@openssh.com", "ssh-ed25519*,*rsa*"),
    "PubkeyAcceptedKeyTypes": ("^ssh-rsa", "ecdsa-*,sk-*"),
}
MATCHES = (
    "host {0}", "originalhost {0}", "user alice,root", "!host {0} user root", "all", "localuser {1}", "canonical",
    "!user bob", 'originalhost "{0}"', "host={0}", "host {0} originalhost {2}", "all # every one", "localuser nobody",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One configuration and one way to call ssh with it."""

    config: Path
    host: ListedHost
    options: Options


def spelled(chance: random.Random, keyword: str, value: str) -> str:
    """Write one line in one of the ways in which people write it."""
    keyword = chance.choice((keyword, keyword, keyword.lower(), keyword.upper()))
    return chance.choice(("", "  ", "\t")) + keyword + chance.choice((" ", "  ", "\t", "=", " = ")) + value


def patterns(chance: random.Random) -> str:
    return chance.choice(PATTERNS)


def opening(chance: random.Random, user: str) -> str:
    if chance.random() < 0.5:
        several = " ".join(patterns(chance) for _ in range(chance.randint(1, 3)))
        return spelled(chance, "Host", several.replace(",", " "))
    return "Match " + chance.choice(MATCHES).format(patterns(chance), user, patterns(chance))


def lines(chance: random.Random, user: str, included: list[str], *, errors: bool) -> list[str]:
    """Make one file: blocks, comments, empty lines, and includes of the files that were made before it."""
    made = ["# made at random", ""]
    for _ in range(chance.randint(2, 14)):
        dice = chance.random()
        if dice < 0.3:
            made.append(opening(chance, user))
        elif dice < 0.4 and included:
            made.append(spelled(chance, "Include", chance.choice(included)))
        else:
            keyword = chance.choice(sorted(VALUES))
            fine = [value for value in VALUES[keyword] if value not in ("0", "sometimes", "soon", "bad%x")]
            made.append(spelled(chance, keyword, chance.choice(VALUES[keyword] if errors else fine)))
        if chance.random() < 0.1:
            made[-1] += chance.choice(("  ", "\t", "\r"))
    return made


def case(seed: int, folder: Path, user: LocalUser) -> Case:
    chance = random.Random(seed)  # noqa: S311  nothing secret
    folder.mkdir()
    included: list[str] = []
    for name in ("deep.conf", "more.conf", "config"):
        text = "\n".join(lines(chance, user.name, included, errors=chance.random() < 0.1)) + "\n"
        (folder / name).write_bytes(text.encode())
        (folder / name).chmod(0o600)
        included += [str(folder / name), str(folder / "*.none"), str(folder / "dee*"), f'"{folder / name}" /nowhere']
    host = ListedHost(
        chance.choice(HOSTS), user=chance.choice((None, None, "carol")), port=chance.choice((None, None, 2022))
    )
    options = Options(
        config_file=str(folder / "config"),
        port=chance.choice((None, None, 10001)),
        identity=chance.choice((None, None, str(folder / "config"))),  # any file that is there will do
    )
    return Case(folder / "config", host, options)


def openssh(case: Case, user: LocalUser) -> SshTarget | None:
    """Ask ssh itself; None where it refuses the configuration."""
    port, name = case.host.port or case.options.port, case.host.user
    given = (*(("-p", str(port)) if port else ()), *(("-l", name) if name else ()))
    identity = ("-i", case.options.identity) if case.options.identity else ()
    asked = subprocess.run(
        ["ssh", "-G", "-F", str(case.config), *given, *identity, "--", case.host.name],
        capture_output=True, check=False, env=ENVIRON, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return None if asked.returncode else from_ssh_g(asked.stdout.decode(), user, lambda: False)


def lists(wanted: WantedAlgorithms) -> dict[str, set[str]]:
    """Return what is offered, without what this release of ssh may be too old for."""
    newer = {"mlkem768x25519-sha256"}
    made = {keyword: set(offered(wanted, keyword)) - newer for keyword in KEYWORDS}
    return {**made, "pubkeyacceptedalgorithms": set(user_keys(wanted))}


@pytest.mark.slow
@pytest.mark.parametrize("decade", range(20))
def test_our_reading_is_openssh_s_own_or_says_that_it_cannot_decide(decade: int, tmp_path: Path) -> None:
    user = local_user(ENVIRON)
    for seed in range(decade * 20, decade * 20 + 20):
        made = case(seed, tmp_path / str(seed), user)
        ours = read_ssh_config(made.options, ENVIRON, user).read(made.host)
        theirs = openssh(made, user)
        if not ours.unsure:
            assert theirs is not None, made.config.read_text()
            plain = replace(ours, algorithms=AS_DEFAULT)
            assert plain == replace(theirs, algorithms=AS_DEFAULT), made.config.read_text()
            assert lists(ours.algorithms) == lists(theirs.algorithms), made.config.read_text()


def test_most_of_these_configurations_are_decided_without_asking_ssh(tmp_path: Path) -> None:
    user = local_user(ENVIRON)
    cases = [case(seed, tmp_path / str(seed), user) for seed in range(200)]
    unsure = [read_ssh_config(made.options, ENVIRON, user).read(made.host).unsure for made in cases]
    assert sum(not reason for reason in unsure) > 140, sorted(unsure)
