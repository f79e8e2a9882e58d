"""The keys that may be offered to a node, in OpenSSH's order, from files and from the agent."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import struct
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.pkey import PublicBlob, UnknownKeyType

from ncheck.ssh.agent import CERTIFICATE, AgentKey, agent_keys, split_strings, type_of
from ncheck.ssh.target import SshTarget

OPENSSH_MAGIC = b"openssh-key-v1\0"


@dataclass(frozen=True)
class Identity:
    """One key ready to be offered. `told` is what people read: "ED25519 SHA256:... ~/.ssh/id_ed25519"."""

    key: paramiko.PKey
    told: str
    path: str = ""


@dataclass(frozen=True)
class Identities:
    """What can be offered, and the files that cannot, with the reason."""

    offers: tuple[Identity, ...]
    locked: tuple[str, ...] = ()  # protected by a passphrase, and in no agent
    unreadable: tuple[str, ...] = ()  # "~/.ssh/id_dsa: why"
    agent: str = ""  # why the agent could not be asked, "" when it could or there is none


class Keyring:
    """Loads keys once for all nodes; safe to ask from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[object, Identities] = {}

    def for_target(self, target: SshTarget) -> Identities:
        """Return what OpenSSH would offer to this node, in its order."""
        wanted = (target.identity_files, target.certificate_files, target.identities_only, target.identity_agent)
        with self._lock:
            if wanted not in self._known:
                self._known[wanted] = gathered(*wanted)
            return self._known[wanted]


def gathered(files: tuple[str, ...], certificates: tuple[str, ...], only: bool, agent: str) -> Identities:  # noqa: FBT001
    """Read files and agent. The order is that of ssh: certificates, the agent's keys that are configured too, its
    others (not with IdentitiesOnly), and then keys that only lie in files.
    """
    held, trouble = agent_keys(agent)
    shelf = _Shelf(held)
    certified = [] if only else [_from_agent(key) for key in held if CERTIFICATE in key.get_name()]
    for path in files:
        shelf.put(path)
    for path in certificates:
        shelf.certify(path)
    rest = [] if only else [_from_agent(key) for key in held if key.blob not in shelf.public.values()]
    offers = _once([*shelf.certified, *certified, *shelf.configured, *rest, *shelf.filed])
    return Identities(tuple(offers), tuple(shelf.locked), tuple(shelf.unreadable), trouble)


class _Shelf:
    """Identity files sorted by what can be done with each."""

    def __init__(self, held: list[AgentKey]) -> None:
        self.held = {key.blob: key for key in held}
        self.public: dict[str, bytes] = {}
        self.certified: list[Identity] = []
        self.configured: list[Identity] = []
        self.filed: list[Identity] = []
        self.locked: list[str] = []
        self.unreadable: list[str] = []

    def put(self, path: str) -> None:
        if not Path(path).exists() and not Path(path + ".pub").exists():
            return
        public = public_part(path)
        if public is not None:
            self.public[path] = public
        certificate = path.removesuffix(".pub") + "-cert.pub"
        if public is not None and public in self.held:
            self.configured.append(_told(self.held[public], path))
            self.certify(certificate)
        elif Path(path).exists() and (key := self._load(path)):
            self.filed.append(_told(key, path))
            self.public[path] = key.asbytes()
            self.certify(certificate)

    def certify(self, path: str) -> None:
        """Offer a certificate with whichever key it was made for."""
        if not Path(path).exists():
            return
        blob = _public_text(Path(path))
        if blob is None or CERTIFICATE not in type_of(blob):
            self.unreadable.append(f"{path}: not a certificate")
            return
        for candidate in (*self.configured, *self.filed):
            if certifies(blob, candidate.key.asbytes()):
                self.certified.append(_told(_with_certificate(candidate, blob), path, blob))
                return

    def _load(self, path: str) -> paramiko.PKey | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an old kind of key is no news to print
                key = paramiko.PKey.from_path(path)
        except TypeError:  # cryptography's way to say that a passphrase is wanted
            self.locked.append(path)
            return None
        except (OSError, ValueError, UnsupportedAlgorithm, paramiko.SSHException, UnknownKeyType) as error:
            why = error.strerror if isinstance(error, OSError) else "no private key of a kind that paramiko knows"
            self.unreadable.append(f"{path}: {why}")
            return None
        key.public_blob = None  # the plain key; its certificate is an offer of its own, as with ssh
        return key


def _with_certificate(identity: Identity, certificate: bytes) -> paramiko.PKey:
    if isinstance(identity.key, AgentKey):
        return identity.key.certified(certificate)
    key = paramiko.PKey.from_path(identity.path)
    key.public_blob = PublicBlob(type_of(certificate), certificate)
    return key


def _once(identities: list[Identity]) -> list[Identity]:
    offered: dict[bytes, Identity] = {}
    for identity in identities:
        blob = identity.key.public_blob
        offered.setdefault(blob.key_blob if blob else identity.key.asbytes(), identity)
    return list(offered.values())


def _told(key: paramiko.PKey, path: str, blob: bytes | None = None) -> Identity:
    shown = str(path).replace(str(Path.home()), "~", 1) if path.startswith(str(Path.home()) + "/") else path
    held = " (agent)" if isinstance(key, AgentKey) else ""
    return Identity(key, f"{described(blob or key.asbytes())} {shown}{held}", path)


def _from_agent(key: AgentKey) -> Identity:
    return Identity(key, f"{described(key.blob)} {key.comment} (agent)")


def described(blob: bytes) -> str:
    """Return "ED25519 SHA256:..." as ssh-keygen -l names a key; a certificate is told as its own blob."""
    return f"{_KINDS.get(type_of(blob).removesuffix(CERTIFICATE), type_of(blob))}{_cert(blob)} {fingerprint(blob)}"


_KINDS = {"ssh-ed25519": "ED25519", "ssh-rsa": "RSA", "ssh-dss": "DSA", "sk-ssh-ed25519@openssh.com": "ED25519-SK"} | {
    f"ecdsa-sha2-nistp{size}": "ECDSA" for size in (256, 384, 521)
}


def _cert(blob: bytes) -> str:
    return "-CERT" if CERTIFICATE in type_of(blob) else ""


def fingerprint(blob: bytes) -> str:
    """Return SHA256:... of a public key's wire form."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def certifies(certificate: bytes, public: bytes) -> bool:
    """Tell whether a certificate is for this public key: after its nonce, the key's own fields stand in it."""
    kind, nonce = split_strings(certificate, 2)
    fields = certificate[8 + len(kind) + len(nonce) :]
    return kind.decode("ascii", "replace").removesuffix(CERTIFICATE) == type_of(public) and fields.startswith(
        public[4 + len(type_of(public)) :]
    )


def public_part(path: str) -> bytes | None:
    """Return a key's public half without its passphrase: out of the key file itself, or from the .pub beside it."""
    for candidate in (Path(path), Path(path + ".pub")):
        if (found := _public_text(candidate)) is not None:
            return found
    return None


def _public_text(path: Path) -> bytes | None:
    try:
        text = path.read_bytes()[:65536]
    except OSError:
        return None
    with contextlib.suppress(ValueError, struct.error, IndexError):
        if b"BEGIN OPENSSH PRIVATE KEY" in text:
            return _from_container(text)
        fields = text.split()
        blob = base64.b64decode(fields[1], validate=True)
        return blob if type_of(blob) == fields[0].decode("ascii", "replace") else None
    return None


def _from_container(text: bytes) -> bytes | None:
    """Read the public key that stands in clear in every file of OpenSSH's own format, passphrase or not."""
    body = base64.b64decode(b"".join(line for line in text.splitlines() if not line.startswith(b"-----")))
    if not body.startswith(OPENSSH_MAGIC):
        return None
    rest = body[len(OPENSSH_MAGIC) :]
    head = split_strings(rest, 3)  # cipher, key derivation, its options
    after = rest[sum(4 + len(part) for part in head) + 4 :]  # 4: the number of keys
    return split_strings(after, 1)[0]
