"""What sysfs shows of InfiniBand and RoCE adapters that ibstat does not: boards, lanes, P_Keys, GIDs, drivers."""

import os

from ncheck.agent.files import line_of, matching, need_sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator

HCAS = "/sys/class/infiniband"
MODULES = "/sys/module"
DRIVERS = ("mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_ib", "ib_core", "ib_uverbs")
READS = (
    HCAS + "/*/{board_id,ports/*/{rate,pkeys,gids,gid_attrs}}",
    MODULES + "/{" + ",".join(DRIVERS) + "}/version",
)

_MOST = 64  # HCAs; a host can have hundreds of virtual functions
_PKEYS = 8  # of the 128 entries of a table: partitions are entered from the first one on
_GIDS = 256  # entries of a table
_EMPTY = 16  # empty entries after which no more are expected: an address that goes leaves a gap


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"hcas": [HCA], "left_out": int, "modules": {name: version}}."""
    need_sysfs()
    folders = matching(HCAS + "/*")
    return {
        "hcas": [_hca(folder) for folder in folders[:_MOST]],
        "left_out": max(0, len(folders) - _MOST),
        "modules": {
            name: line_of("{}/{}/version".format(MODULES, name)) or ""
            for name in DRIVERS
            if os.path.isdir("{}/{}".format(MODULES, name))
        },
    }


def _hca(folder: str) -> "Dict[str, object]":
    ports = sorted(matching(folder + "/ports/*"), key=len)
    return {
        "hca": os.path.basename(folder),
        "board": line_of(folder + "/board_id") or "",
        "ports": [_port(port) for port in ports if os.path.basename(port).isdigit()],
    }


def _port(folder: str) -> "Dict[str, object]":
    pkeys = [line_of("{}/pkeys/{}".format(folder, index)) for index in range(_PKEYS)]
    return {
        "port": int(os.path.basename(folder)),
        "rate": line_of(folder + "/rate") or "",
        "pkeys": [key for key in pkeys if key is not None],
        "gids": list(_gids(folder)),
    }


def _gids(folder: str) -> "Iterator[Dict[str, object]]":
    """Yield the entries in use: an empty one shows zeros."""
    empty = 0
    for index in range(_GIDS):
        address = line_of("{}/gids/{}".format(folder, index))
        if address is None or empty == _EMPTY:
            return
        if not address.strip("0:"):
            empty += 1
            continue
        empty = 0
        kind, netdev = (line_of("{}/gid_attrs/{}/{}".format(folder, name, index)) for name in ("types", "ndevs"))
        yield {"index": index, "address": address, "kind": kind or "", "netdev": netdev or ""}
