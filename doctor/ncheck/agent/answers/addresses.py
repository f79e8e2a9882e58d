"""An address as the answer gives it; and all addresses by psutil, else by netifaces.

These two serve an interpreter that was built without ctypes and has one of them.
"""

import socket

from ncheck.agent.files import number_in


def described(family, packed, mask):
    """Return {"ip", "prefix", "scope"} of an address and its netmask, both as bytes."""
    prefix = "".join(map("{:b}".format, mask)).count("1") if mask else None
    return {"ip": socket.inet_ntop(family, packed), "prefix": prefix, "scope": _scope(family, packed)}


def _scope(family, packed):
    """Tell 127.0.0.0/8 and ::1 (host) and 169.254.0.0/16 and fe80::/10 (link) from the rest."""
    if family == socket.AF_INET:
        return "host" if packed[:1] == b"\x7f" else "link" if packed[:2] == b"\xa9\xfe" else "global"
    if packed == b"\0" * 15 + b"\x01":
        return "host"
    return "link" if b"\xfe\x80" <= packed[:2] <= b"\xfe\xbf" else "global"


def by_library():
    """Return ({name: (flags, [addresses])}, which library); OSError where neither can be imported."""
    for asked in (_by_psutil, _by_netifaces):
        try:
            return asked()
        except ImportError:
            pass
    raise OSError("this python3 has neither ctypes nor psutil nor netifaces to read addresses with")


def _by_psutil():
    import psutil

    stats, rows = psutil.net_if_stats(), {}
    for name, addresses in psutil.net_if_addrs().items():
        pairs = [(row.family, row.address, row.netmask) for row in addresses if row.family in _FAMILIES]
        rows[name] = (_flags(name, stats[name].isup if name in stats else None), [_address(*pair) for pair in pairs])
    return rows, "psutil"


def _by_netifaces():
    import netifaces  # never its gateways(): on some builds that runs a program with no deadline

    rows = {}
    for name in netifaces.interfaces():
        found = netifaces.ifaddresses(name)
        pairs = [
            (family, row["addr"], row.get("netmask") or row.get("mask"))
            for family in _FAMILIES
            for row in found.get(int(family), [])
        ]
        rows[name] = (_flags(name, None), [_address(*pair) for pair in pairs])
    return rows, "netifaces"


_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def _flags(name, up):
    """Return the kernel's flags of an interface; IFF_RUNNING is read from its carrier."""
    flags = number_in("/sys/class/net/{}/flags".format(name), 16)
    carrier = number_in("/sys/class/net/{}/carrier".format(name))
    if flags is None:
        flags = 1 if up else 0
    return flags | (0x40 if carrier else 0)


def _address(family, text, netmask):
    ip = text.partition("%")[0]
    mask = (netmask or "").partition("/")[0]
    return described(family, socket.inet_pton(family, ip), socket.inet_pton(family, mask) if mask else None)
