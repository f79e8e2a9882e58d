"""Public keys in their wire form: type, fingerprint, certificates, and the public half of a key file."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import struct
from pathlib import Path

CERTIFICATE = "-cert-v01@openssh.com"
OPENSSH_MAGIC = b"openssh-key-v1\0"

_KINDS = {"ssh-ed25519": "ED25519", "ssh-rsa": "RSA", "ssh-dss": "DSA", "sk-ssh-ed25519@openssh.com": "ED25519-SK"} | {
    f"ecdsa-sha2-nistp{size}": "ECDSA" for size in (256, 384, 521)
}


def type_of(blob: bytes) -> str:
    return blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode("ascii", "replace")


def described(blob: bytes) -> str:
    """Return "ED25519 SHA256:..." as ssh-keygen -l names a key; a certificate has the fingerprint of its own blob."""
    kind = type_of(blob).removesuffix(CERTIFICATE)
    certificate = "-CERT" if CERTIFICATE in type_of(blob) else ""
    return f"{_KINDS.get(kind, type_of(blob))}{certificate} {fingerprint(blob)}"


def fingerprint(blob: bytes) -> str:
    """Return the SHA256:... of a public key."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def certifies(certificate: bytes, public: bytes) -> bool:
    """Tell whether a certificate is for this public key: after its nonce come the key's own fields."""
    kind, nonce = split_strings(certificate, 2)
    fields = certificate[8 + len(kind) + len(nonce) :]
    return kind.decode("ascii", "replace").removesuffix(CERTIFICATE) == type_of(public) and fields.startswith(
        public[4 + len(type_of(public)) :]
    )


# How many fields of its own a key has in a certificate, between the nonce and the serial number.
_FIELDS = {"ssh-ed25519": 1, "ssh-rsa": 2, "ssh-dss": 4, "sk-ssh-ed25519": 2, "sk-ecdsa-sha2-nistp256": 3} | {
    f"ecdsa-sha2-nistp{size}": 2 for size in (256, 384, 521)
}


def validity(certificate: bytes) -> tuple[int, int]:
    """Return from when and until when a certificate is valid, in seconds since 1970 (OpenSSH's PROTOCOL.certkeys).

    Raises ValueError or struct.error for what is none.
    """
    kind = type_of(certificate).removesuffix(CERTIFICATE)
    if kind not in _FIELDS or CERTIFICATE not in type_of(certificate):
        raise ValueError("no certificate of a known type")
    before = split_strings(certificate, 2 + _FIELDS[kind])  # type, nonce, key
    at = sum(4 + len(part) for part in before) + 8 + 4  # serial number, kind of certificate
    names = split_strings(certificate[at:], 2)  # its name, and those of the users
    after, until = struct.unpack_from(">QQ", certificate, at + sum(4 + len(part) for part in names))
    return after, until


def public_part(path: str) -> bytes | None:
    """Return a key's public half without its passphrase: from the key file itself, or from the .pub beside it."""
    for candidate in (Path(path), Path(path + ".pub")):
        if (found := read_public(candidate)) is not None:
            return found
    return None


def read_public(path: Path) -> bytes | None:
    """Return the public key in a file: of a private key in OpenSSH's format, or of a .pub."""
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
    """Read the public key, which every file of OpenSSH's own format holds in clear, passphrase or not."""
    body = base64.b64decode(b"".join(line for line in text.splitlines() if not line.startswith(b"-----")))
    if not body.startswith(OPENSSH_MAGIC):
        return None
    rest = body[len(OPENSSH_MAGIC) :]
    head = split_strings(rest, 3)  # cipher, key derivation, its options
    after = rest[sum(4 + len(part) for part in head) + 4 :]  # 4: the number of keys
    return split_strings(after, 1)[0]


def split_strings(data: bytes, count: int) -> list[bytes]:
    """Return the first `count` length-prefixed strings. Raises ValueError where they are cut short."""
    strings, at = [], 0
    for _ in range(count):
        (length,) = struct.unpack_from(">I", data, at)
        if at + 4 + length > len(data):
            raise ValueError("cut short")
        strings.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return strings
