"""Which algorithms are offered to a host: OpenSSH's defaults, as the ssh configuration changes them (Ciphers, MACs,
KexAlgorithms, HostKeyAlgorithms, PubkeyAcceptedAlgorithms).

What OpenSSH refuses by default (CBC, 3des, MD5, SHA-1 in keys and key exchanges) is offered only where the
configuration asks for it.

The names are those that paramiko has; it is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ncheck.lazy_dataclass import dataclass
from ncheck.ssh.config_syntax import matches, matches_list

# Each list by its keyword, the fast ones first: hosts in FIPS mode lack some, so the others follow.
DEFAULT: Mapping[str, tuple[str, ...]] = {
    "kexalgorithms": (
        "curve25519-sha256@libssh.org", "curve25519-sha256", "ecdh-sha2-nistp256", "mlkem768x25519-sha256",
        "ecdh-sha2-nistp384", "ecdh-sha2-nistp521", "diffie-hellman-group16-sha512",
        "diffie-hellman-group-exchange-sha256", "diffie-hellman-group14-sha256",
    ),
    "ciphers": (
        "aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr",
    ),
    "macs": (
        "hmac-sha2-256", "hmac-sha2-512", "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com",
        "hmac-sha1",
    ),
    "hostkeyalgorithms": (
        "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-512",
        "rsa-sha2-256",
    ),
}  # fmt: skip

# What some releases of paramiko have beside these, and OpenSSH offers only where it is told to.
_ON_REQUEST: Mapping[str, tuple[str, ...]] = {
    "kexalgorithms": (
        "diffie-hellman-group-exchange-sha1", "diffie-hellman-group14-sha1", "diffie-hellman-group1-sha1",
    ),
    "ciphers": ("aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"),
    "macs": ("hmac-md5", "hmac-sha1-96", "hmac-md5-96"),
    "hostkeyalgorithms": (),  # no certificates: paramiko cannot check who signed them
}  # fmt: skip

KEYWORDS = {
    "kexalgorithms": "KexAlgorithms",
    "ciphers": "Ciphers",
    "macs": "MACs",
    "hostkeyalgorithms": "HostKeyAlgorithms",
}


@dataclass(frozen=True)
class WantedAlgorithms:
    """The values of the configuration as they are written, "" where it has none. With `known_first`, the types of a
    host's known keys are asked for before others, as OpenSSH does unless HostKeyAlgorithms says which come first.
    """

    kexalgorithms: str = ""
    ciphers: str = ""
    macs: str = ""
    hostkeyalgorithms: str = ""
    pubkeyacceptedalgorithms: str = ""
    known_first: bool = True


AS_DEFAULT = WantedAlgorithms()


@lru_cache(maxsize=64)
def offered(wanted: WantedAlgorithms, keyword: str) -> tuple[str, ...]:
    """Return the list of one keyword, in the order of the offer; empty where paramiko has none of what is wanted."""
    default = DEFAULT[keyword]
    return assembled(getattr(wanted, keyword), default, (*default, *_ON_REQUEST[keyword]))


def assembled(value: str, default: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Apply a value to a default list: `+` adds, `-` removes, `^` puts first, else it replaces; with patterns."""
    sign, names = (value[0], value[1:]) if value[:1] in ("+", "-", "^") else ("", value)
    if not value:
        return default
    if sign == "-":
        return tuple(name for name in default if not matches_list(name, names))
    patterns = tuple(names.split(","))
    listed = {"+": (*default, *patterns), "^": (*patterns, *default), "": patterns}[sign]
    return tuple(dict.fromkeys(name for pattern in listed for name in known if matches(name, pattern)))


def lacking(wanted: WantedAlgorithms) -> str:
    """Name the first keyword of whose value paramiko has nothing, "" where it can serve."""
    return next((f"{KEYWORDS[key]} {getattr(wanted, key)}" for key in KEYWORDS if not offered(wanted, key)), "")


_SHA2 = ("rsa-sha2-512", "rsa-sha2-256")
_CERTIFICATE = "-cert-v01@openssh.com"

# OpenSSH's own default of PubkeyAcceptedAlgorithms, without certificates.
_USER_KEYS = (*DEFAULT["hostkeyalgorithms"], "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com")


def _with_certificates(names: tuple[str, ...]) -> tuple[str, ...]:
    certified = (name.replace("@openssh.com", "") + _CERTIFICATE for name in names)
    return (*names, *certified)


@lru_cache(maxsize=64)
def user_keys(wanted: WantedAlgorithms) -> tuple[str, ...]:
    """Return the algorithms that a key of the user may sign with, certificates too."""
    default = _with_certificates(_USER_KEYS)
    return assembled(wanted.pubkeyacceptedalgorithms, default, (*default, *_with_certificates(("ssh-rsa", "ssh-dss"))))


def may_sign(kind: str, wanted: WantedAlgorithms) -> bool:
    """Tell whether a key of this type ("ssh-rsa", or that of a certificate) is to be offered."""
    if not wanted.pubkeyacceptedalgorithms:
        return True
    tail = _CERTIFICATE if kind.endswith(_CERTIFICATE) else ""
    same = {kind, *(name + tail for name in signatures_of(kind))}
    return not same.isdisjoint(user_keys(wanted))


def signatures_of(kind: str) -> tuple[str, ...]:
    """Return the algorithms with which a key of this type signs; a certificate signs as its key does."""
    plain = kind.removesuffix(_CERTIFICATE)
    plain += "@openssh.com" if plain != kind and plain.startswith("sk-") else ""
    return (plain, *_SHA2) if plain == "ssh-rsa" else (plain,)
