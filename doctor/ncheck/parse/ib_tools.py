"""The other InfiniBand tools: ibstatus, ibv_devinfo, ibv_devices, ibdev2netdev, opainfo, and tables made of them.

Each returns plain records by the names that the tool itself uses; what the text does not hold is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncheck.parse.capture import lines_of
from ncheck.parse.ibstat import rate_of

Record = dict[str, object]


# Infiniband device 'mlx5_0' port 1 status:
_STATUS_HEAD = re.compile(r"Infiniband device '([^']+)' port (\d+) status:", re.IGNORECASE)


#         phys state:      5: LinkUp
_STATUS_ENTRY = re.compile(r"(?:^|\s)(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s+(.*?)\s*$")


# hca_id: mlx5_0
_HCA = re.compile(r"(?:^|\s)hca_id:\s*(\S+)")


#                 port:   1
_HCA_PORT = re.compile(r"(?:^|\s)port:\s*(\d+)\s*$")


#                         active_mtu:             4096 (5)
_HCA_ENTRY = re.compile(r"^\s*(\w+):[ \t]*(.*?)\s*$")


# PORT_DOWN (1)
_NUMBERED = re.compile(r"^(\S+(?: Gbps)?)\s*\((\w+)\)")


# mlx5_0 port 1 ==> ib0 (Up)
# 0000:05:00.0 mlx5_0 (MT4115 - MT1525X) CX456A - ConnectX-4 fw 12.28.2006 port 1 (ACTIVE) ==> ens785f0 (Up)
_NETDEV = re.compile(
    r"(?:[0-9a-f]{4}:\S+\s+)?(\w\S*)\s+(?:\(.*\)\s.*)?port\s+(\d+)\s+(?:\(\s*\w+\s*\)\s+)?<?=+>\s+(\S+)\s+\((\w+)\)"
)


# link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0
# 2/1: mlx5_2/1: state DOWN physical_state DISABLED netdev ens2f0
_RDMA_LINK = re.compile(
    r"(?:^|\s)(?:link|\d+/\d+:) (\w[^\s/]*)/(\d+):? (?:.*?\s)?state (\w+) physical_state (\w+)(?:.*? netdev (\S+))?"
)


#     irdma0              6a05cafffec1b900
_DEVICE = re.compile(r"^\s*(\S+)\s+([0-9a-f]{16})\s*$")


# hfi1_0:1                           PortGID:0xfe80000000000000:0011750101701541
_OPA_HEAD = re.compile(r"(?:^|\s)(\w+):(\d+)\s+PortGID:(\S+)")


# "| 2021-07-13 18:45:24 | cg30-9 | hfi1_0 | 1 | OmniPath | 100 Gb/sec (4X EDR) | 9: <unknown> | 1: DOWN |"
_TABLE_STATE = re.compile(r"^(\d+): ?(\S+)$")


_PORT_KEYS = {"state", "phys_state", "max_mtu", "active_mtu", "sm_lid", "port_lid", "port_id", "port_lmc", "link_layer",
              "active_width", "active_speed"}  # fmt: skip


_STATES = ("PORT_NOP", "PORT_DOWN", "PORT_INIT", "PORT_ARMED", "PORT_ACTIVE", "PORT_ACTIVE_DEFER")


_HCA_PORT_KEYS = ("port", "state", "state_num", "physical_state", "active_mtu", "link_layer")


_STATUS_KEYS = ("state", "state_num", "physical_state", "physical_state_num", "rate", "rate_text", "link_layer",
                "default_gid", "base_lid", "sm_lid")  # fmt: skip


def parse_ibstatus(text: str) -> list[Record]:
    """Return a record a port: ca, port, state, state_num, physical_state, rate, rate_text, link_layer, default_gid."""
    ports: list[Record] = []
    for line in lines_of(text):
        if found := _STATUS_HEAD.search(line):
            ports.append({**dict.fromkeys(_STATUS_KEYS), "ca": found[1], "port": int(found[2])})
        elif ports and (found := _STATUS_ENTRY.search(line)) and found[2].strip(". "):
            ports[-1].update(_status(found[1], found[2]))
    return ports


def _status(key: str, value: str) -> Record:
    number, _, word = value.partition(": ")
    if key == "state":
        return {"state": word, "state_num": _integer(number)}
    if key == "phys state":
        return {"physical_state": word, "physical_state_num": _integer(number)}
    if key == "rate":
        return {"rate": rate_of(value), "rate_text": value}
    return {key.replace(" ", "_"): value}


def parse_devinfo(text: str) -> list[Record]:
    """Return a record an HCA of `ibv_devinfo`: hca, firmware, node_guid, vendor_part_id, ports; `truncated` where cut.

    A port's entries are told by their names, not by indentation: pastes lose it, and greps lose the line "port: 1".
    """
    hcas: list[Record] = []
    for line in lines_of(text):
        if found := _HCA.search(line):
            hcas.append({"hca": found[1], "firmware": None, "node_guid": None, "vendor_part_id": None, "ports": []})
        elif hcas and (found := _HCA_PORT.search(line)):
            _ports(hcas[-1]).append({**dict.fromkeys(_HCA_PORT_KEYS), "port": int(found[1])})
        elif hcas and (found := _HCA_ENTRY.search(line)) and found[2].strip(". "):
            _add(hcas[-1], found[1], found[2])
    if hcas and not _ports(hcas[-1]):
        hcas[-1]["truncated"] = True
    return hcas


def is_software(hcas: Iterable[Record]) -> bool:
    """Tell rxe and siw, which are InfiniBand on top of any NIC, from hardware: no vendor, no firmware."""
    return all(not hca.get("vendor_part_id") and hca.get("firmware") in (None, "0.0.0", "") for hca in hcas)


def _ports(hca: Record) -> list[Record]:
    ports = hca["ports"]
    return ports if isinstance(ports, list) else []


def _add(hca: Record, key: str, value: str) -> None:
    if key in _PORT_KEYS:
        ports = _ports(hca)
        if not ports or (key == "state" and ports[-1]["state"] is not None):
            ports.append(dict.fromkeys(_HCA_PORT_KEYS))
        ports[-1].update(_port_entry(key, value))
    elif key == "fw_ver":
        hca["firmware"] = value
    elif value:
        hca[key] = _integer(value) if key in ("vendor_part_id", "phys_port_cnt") else value


def _port_entry(key: str, value: str) -> Record:
    found = _NUMBERED.match(value)
    word = found[1] if found else value
    if key == "state":
        whole = found or word in _STATES
        return {"state": word if whole else None, "state_num": _integer(found[2]) if found else None}
    if key == "phys_state":
        return {"physical_state": word}
    if key in ("max_mtu", "active_mtu", "sm_lid", "port_lid", "port_id"):
        return {key: _integer(word)}
    return {key: word}


def parse_netdevs(text: str) -> dict[str, list[str]]:
    """Return `ibdev2netdev` as device to [interface, Up or Down]; that of IPoIB says nothing of the IB port itself."""
    found = (row for line in lines_of(text) if (row := _NETDEV.search(line)))
    return {row[1]: [row[3], row[4]] for row in found}


def parse_rdma_links(text: str) -> list[Record]:
    """Return a record a port of `rdma link`; a port without a network interface has None for `netdev`."""
    found = (row for line in lines_of(text) if (row := _RDMA_LINK.search(line)))
    keys = ("ca", "port", "state", "physical_state", "netdev")
    return [dict(zip(keys, (row[1], int(row[2]), *row.groups()[2:]), strict=True)) for row in found]


def lists_devices(text: str) -> bool:
    """Tell the heading of `ibv_devices`, under which there may be no device."""
    return any(re.match(r"^\s*device\s+node GUID\s*$", line) for line in lines_of(text))


def parse_devices(text: str) -> dict[str, str]:
    """Return `ibv_devices` as device to node GUID."""
    found = (row for line in lines_of(text) if (row := _DEVICE.match(line)))
    return {row[1]: row[2] for row in found}


def parse_opainfo(text: str) -> list[Record]:
    """Return a record a port of `opainfo`; the rate is link speed times link width, in Gb/s."""
    ports: list[Record] = []
    for line in lines_of(text):
        if found := _OPA_HEAD.search(line):
            ports.append({"hfi": found[1], "port": int(found[2]), "port_gid": found[3]})
        elif ports:
            ports[-1].update(_opa_entry(line))
    for port in ports:
        speed, width = rate_of(str(port.get("link_speed"))), port.get("link_width")
        port["rate"] = speed * width if speed and isinstance(width, int) else None
    return ports


def _opa_entry(line: str) -> Record:
    if found := re.search(r"PortState:\s+(\S+)", line):  # "   PortState:     Active"
        return {"state": found[1]}
    if found := re.search(r"LinkSpeed\s+Act: (\S+)", line):  # "   LinkSpeed      Act: 25Gb         En: 25Gb"
        return {"link_speed": found[1]}
    if found := re.search(r"LinkWidth\s+Act: (\d+)", line):  # "   LinkWidth      Act: 4            En: 4"
        return {"link_width": int(found[1])}
    if found := re.search(r"Link Quality: (\d+)", line):  # "   Link Quality: 5 (Excellent)"
        return {"link_quality": int(found[1])}
    return {}


def parse_port_table(text: str) -> list[Record]:
    """Read a table of ports between bars, as monitoring prints it; each cell is known by what stands in it."""
    rows = ([cell.strip() for cell in line.split("|")] for line in lines_of(text) if line.count("|") > 3)  # noqa: PLR2004
    return [record for row in rows if (record := _table_row(row)).get("ca") and "state" in record]


def _table_row(cells: list[str]) -> Record:
    record: Record = {}
    for cell in cells:
        if found := _TABLE_STATE.match(cell):
            key = "state" if found[2].isupper() else "physical_state"
            record.update({key: found[2], f"{key}_num": int(found[1])})
        elif "Gb/sec" in cell:
            record.update(rate=rate_of(cell), rate_text=cell)
        elif cell in ("InfiniBand", "Ethernet", "OmniPath"):
            record["link_layer"] = cell
        elif re.fullmatch(r"(?:mlx|hfi|irdma|bnxt|rocep|ib|mthca|qib|efa)\w*", cell):  # mlx5_0
            record["ca"] = cell
        elif cell.isdigit():
            record["port"] = int(cell)
    return record


def _integer(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
