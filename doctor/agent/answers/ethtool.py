"""What driver stands behind an interface, by the ioctl that `ethtool -i` uses: it names veth, macvlan and tun too."""

import ctypes
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946  # linux/sockios.h
ETHTOOL_GDRVINFO = 0x3  # linux/ethtool.h
DRVINFO_BYTES = 196  # struct ethtool_drvinfo: cmd u32, then driver char[32], and more than is read here


def driver_of(name):
    """Return the driver's name, or None where the kernel does not tell: WireGuard, and some sandboxes."""
    info = ctypes.create_string_buffer(struct.pack("I", ETHTOOL_GDRVINFO), DRVINFO_BYTES)
    request = struct.pack("16sP", name.encode("utf-8", "surrogateescape"), ctypes.addressof(info)).ljust(40, b"\0")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            fcntl.ioctl(asking.fileno(), SIOCETHTOOL, request)
    except (OSError, ValueError):
        return None
    return info.raw[4:36].split(b"\0", 1)[0].decode("ascii", "replace") or None
