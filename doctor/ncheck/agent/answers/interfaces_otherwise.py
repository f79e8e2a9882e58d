"""Addresses by psutil, else by netifaces: for an interpreter that was built without ctypes and has one of them."""

import socket

from ncheck.agent.answers.addresses import described
from ncheck.agent.files import number_in


def addresses_by_library():
    """Return ({name: (flags, [addresses])}, which library); OSError where neither can be imported."""
    for asked in (_by_psutil, _by_netifaces):
        try:
            return asked()
        except ImportError:
            pass
    raise OSError("this python3 has neither ctypes nor psutil nor netifaces to ask for addresses with")


def _by_psutil():
    import psutil

    stats, told = psutil.net_if_stats(), {}
    for name, rows in psutil.net_if_addrs().items():
        pairs = [(row.family, row.address, row.netmask) for row in rows if row.family in _FAMILIES]
        told[name] = (_flags(name, stats[name].isup if name in stats else None), [_address(*pair) for pair in pairs])
    return told, "psutil"


def _by_netifaces():
    import netifaces  # never its gateways(): on some builds that runs a program with no deadline

    told = {}
    for name in netifaces.interfaces():
        found = netifaces.ifaddresses(name)
        pairs = [
            (family, row["addr"], row.get("netmask") or row.get("mask"))
            for family in _FAMILIES
            for row in found.get(int(family), [])
        ]
        told[name] = (_flags(name, None), [_address(*pair) for pair in pairs])
    return told, "netifaces"


_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def _flags(name, up):
    """Return the kernel's own flags of an interface; whether it runs is in its carrier."""
    flags = number_in("/sys/class/net/{}/flags".format(name), 16)
    carrier = number_in("/sys/class/net/{}/carrier".format(name))
    if flags is None:
        flags = 1 if up else 0
    return flags | (0x40 if carrier else 0)


def _address(family, text, netmask):
    ip = text.partition("%")[0]
    mask = (netmask or "").partition("/")[0]
    return described(family, socket.inet_pton(family, ip), socket.inet_pton(family, mask) if mask else None)
