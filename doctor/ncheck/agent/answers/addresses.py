"""One address as the answer tells it."""

import socket


def described(family, packed, mask):
    """Return {"ip", "prefix", "family", "scope"} of an address and its netmask, both as bytes."""
    prefix = "".join(map("{:b}".format, mask)).count("1") if mask else None
    version, scope = (4 if family == socket.AF_INET else 6), _scope(family, packed)
    return {"ip": socket.inet_ntop(family, packed), "prefix": prefix, "family": version, "scope": scope}


def _scope(family, packed):
    """Tell 127.0.0.0/8 and ::1 (host) and 169.254.0.0/16 and fe80::/10 (link) from the rest."""
    if family == socket.AF_INET:
        return "host" if packed[:1] == b"\x7f" else "link" if packed[:2] == b"\xa9\xfe" else "global"
    if packed == b"\0" * 15 + b"\x01":
        return "host"
    return "link" if b"\xfe\x80" <= packed[:2] <= b"\xfe\xbf" else "global"
