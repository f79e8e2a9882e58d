"""Why a node's configuration can only be met by the ssh program itself."""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Callable, Mapping
from os.path import exists  # asked for every node: a Path each would cost more than all the rest
from pathlib import Path

from ncheck.ssh.target import SshTarget

Options = Mapping[str, tuple[str, ...]]


# Switches that paramiko has nothing for, with the values that switch them on.
_SWITCHES = {
    "hostbasedauthentication": ("HostbasedAuthentication", ("yes",)),
    "pubkeyauthentication": ("PubkeyAuthentication", ("no",)),
    "verifyhostkeydns": ("VerifyHostKeyDNS", ("yes", "ask")),
    "nohostauthenticationforlocalhost": ("NoHostAuthenticationForLocalhost", ("yes",)),
}


# Keywords that paramiko has nothing for, whatever they name.
_NAMED = {
    "pkcs11provider": "PKCS11Provider",
    "knownhostscommand": "KnownHostsCommand",
    "revokedhostkeys": "RevokedHostKeys",
    "bindinterface": "BindInterface",
}


def needs_openssh(options: Options, target: SshTarget, ticket: Callable[[], bool]) -> str:
    """Say why ssh itself must connect, "" where paramiko can.

    `GSSAPIAuthentication yes` alone is no reason: Debian and Red Hat ship that line to everyone. Without a Kerberos
    ticket it cannot succeed, whoever wrote it, and ssh itself would go on to the keys; so a ticket must be in sight.
    """
    return (
        _proxy(target)
        or _switched(options)
        or _authentications(options)
        or _live_master(target)
        or _only_security_keys(target)
        or ("GSSAPIAuthentication with a Kerberos ticket" if _wants_ticket(options) and ticket() else "")
    )


def _proxy(target: SshTarget) -> str:
    if target.proxy_jump:
        return f"ProxyJump {target.proxy_jump}"
    return "ProxyCommand" if target.proxy_command else ""


def _switched(options: Options) -> str:
    for keyword, (name, values) in _SWITCHES.items():
        if keyword in options and options[keyword][0] in values:
            return f"{name} {options[keyword][0]}"
    for keyword, name in _NAMED.items():
        if keyword in options and options[keyword][0].lower() != "none":
            return name
    return ""


def _authentications(options: Options) -> str:
    methods = options.get("preferredauthentications", ("publickey",))[0]
    return "" if "publickey" in methods.split(",") else f"PreferredAuthentications {methods}"


def _wants_ticket(options: Options) -> bool:
    return options.get("gssapiauthentication") == ("yes",)


def _live_master(target: SshTarget) -> str:
    """Look for the socket of a connection that is open already: perhaps the only way in, after a second factor.

    A socket without a master behind it does no harm: ssh then connects by itself.
    """
    path = target.control_path
    if not path:
        return ""
    try:
        return f"ControlPath {path} is open" if stat.S_ISSOCK(Path(path).stat().st_mode) else ""
    except (OSError, ValueError):
        return ""


def _only_security_keys(target: SshTarget) -> str:
    """Tell whether every identity that is there is a security key's: its file holds no more than a handle."""
    keys = [path for path in target.identity_files if path.endswith("_sk") and exists(path)]  # noqa: PTH110
    others = (path for path in target.identity_files if not path.endswith("_sk"))
    if not keys or any(exists(path) for path in others):  # noqa: PTH110
        return ""
    return f"{keys[0]} is a security key"


def kerberos_ticket(environ: Mapping[str, str], uid: int) -> bool:
    """Tell whether a valid ticket is in sight: klist's word where it exists, else a ticket cache in its usual place."""
    if klist := shutil.which("klist", path=environ.get("PATH")):
        try:
            asked = subprocess.run([klist, "-s"], env=dict(environ), timeout=5, check=False, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return asked.returncode == 0
    cache = environ.get("KRB5CCNAME", f"FILE:/tmp/krb5cc_{uid}")
    kind, colon, path = cache.partition(":")
    if not colon or kind in ("FILE", "DIR"):
        return Path(path if colon else cache).exists()
    return True
