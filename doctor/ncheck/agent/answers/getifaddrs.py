"""The C library's getifaddrs: every interface with its flags and addresses, in the order that NCCL sees."""

import os
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    Address = Dict[str, Any]  # {"ip", "prefix", "scope"}
    Interface = Tuple[int, List[Address]]  # its flags

try:
    import ctypes
except ImportError:
    raise OSError("this python3 was built without ctypes, by which addresses are read") from None


class _Address(ctypes.Structure):
    pass


_Address._fields_ = [
    ("next", ctypes.POINTER(_Address)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
    ("netmask", ctypes.c_void_p),
    ("destination", ctypes.c_void_p),
    ("data", ctypes.c_void_p),
]


def getifaddrs() -> "Dict[str, Interface]":
    """Return {name: (flags, [addresses])}, as the C library tells it; links without an address are there too."""
    libc = ctypes.CDLL(None, use_errno=True)
    first = ctypes.POINTER(_Address)()
    if libc.getifaddrs(ctypes.byref(first)) != 0:
        raise OSError(ctypes.get_errno(), "getifaddrs: " + os.strerror(ctypes.get_errno()))
    found: "Dict[str, Interface]" = {}
    entry = first
    try:
        while entry:
            one = entry.contents
            name = one.name.decode("utf-8", "backslashreplace")
            flags, addresses = found.get(name, (one.flags, []))
            address = _address(one)
            found[name] = (flags, [*addresses, address] if address else addresses)
            entry = one.next
    finally:
        libc.freeifaddrs(first)
    return found


def _address(one: "_Address") -> "Optional[Address]":
    if not one.address:
        return None
    family = struct.unpack("H", ctypes.string_at(one.address, 2))[0]
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    # struct sockaddr_in: family, port, address. struct sockaddr_in6: family, port, flow, address.
    offset, size = (4, 4) if family == socket.AF_INET else (8, 16)
    packed = ctypes.string_at(one.address + offset, size)
    return _described(family, packed, one.netmask and ctypes.string_at(one.netmask + offset, size))


def _described(family: int, packed: bytes, mask: "Optional[bytes]") -> "Address":
    """Return {"ip", "prefix", "scope"} of an address and its netmask, both as bytes."""
    prefix = "".join(map("{:b}".format, mask)).count("1") if mask else None
    return {"ip": socket.inet_ntop(family, packed), "prefix": prefix, "scope": _scope(family, packed)}


def _scope(family: int, packed: bytes) -> str:
    """Tell 127.0.0.0/8 and ::1 (host) and 169.254.0.0/16 and fe80::/10 (link) from the rest."""
    if family == socket.AF_INET:
        return "host" if packed[:1] == b"\x7f" else "link" if packed[:2] == b"\xa9\xfe" else "global"
    if packed == b"\0" * 15 + b"\x01":
        return "host"
    return "link" if b"\xfe\x80" <= packed[:2] <= b"\xfe\xbf" else "global"
