"""What driver stands behind an interface, by the ioctl that `ethtool -i` uses: it names veth, macvlan and tun too."""

import array
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946  # linux/sockios.h
ETHTOOL_GDRVINFO = 0x3  # linux/ethtool.h
DRVINFO_BYTES = 196  # struct ethtool_drvinfo: cmd u32, then driver char[32], and more than is read here


def driver_of(name):
    """Return the driver's name, or None where the kernel does not tell: WireGuard, and some sandboxes."""
    info = array.array("B", struct.pack("I", ETHTOOL_GDRVINFO).ljust(DRVINFO_BYTES, b"\0"))
    request = struct.pack("16sP", name.encode("utf-8", "surrogateescape"), info.buffer_info()[0]).ljust(40, b"\0")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            fcntl.ioctl(asking.fileno(), SIOCETHTOOL, request)
    except (OSError, ValueError):
        return None
    return info.tobytes()[4:36].split(b"\0", 1)[0].decode("ascii", "replace") or None
