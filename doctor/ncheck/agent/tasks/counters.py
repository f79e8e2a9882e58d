"""How many bytes every interface and HCA port has moved, by the kernel's own counters, which any user may read."""

import glob
import os

from ncheck.agent.files import number_in

SYS = "/sys/class"
_WORD = 4  # bytes: an HCA port counts its data in units of four (PortXmitData of the InfiniBand specification)

READS = (
    "/sys/class/net/*/statistics/{tx_bytes,rx_bytes}",
    "/sys/class/infiniband/*/ports/*/counters/{port_xmit_data,port_rcv_data}",
)


def counters(root=SYS):
    """Return {name: (sent, received)} in bytes: interfaces by name, HCA ports as "mlx5_0:1"."""
    read = {}
    for folder in glob.glob(root + "/net/*/statistics"):
        read[folder.split("/")[-2]] = _pair(folder, "tx_bytes", "rx_bytes", 1)
    for folder in glob.glob(root + "/infiniband/*/ports/*/counters"):
        device, _, port = folder.split("/")[-4:-1]
        read[device + ":" + port] = _pair(folder, "port_xmit_data", "port_rcv_data", _WORD)
    return {name: pair for name, pair in read.items() if None not in pair}


def _pair(folder, sent, received, unit):
    values = [number_in(os.path.join(folder, name)) for name in (sent, received)]
    return tuple(None if value is None else value * unit for value in values)


def carried(before, after, planned=()):
    """Return {name: {"sent", "received"}}, what was moved between two readings: of those that moved anything, and of
    those that are `planned`. One that was set back meanwhile is left out.
    """
    told = {}
    for name in set(before) & set(after):
        sent, received = after[name][0] - before[name][0], after[name][1] - before[name][1]
        if min(sent, received) >= 0 and (sent or received or name in planned):
            told[name] = {"sent": sent, "received": received}
    return told
