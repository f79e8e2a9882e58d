"""The InfiniBand tools: ibstat, ibstatus, ibv_devinfo, ibv_devices, ibdev2netdev, rdma link, opainfo, tables of ports.

ibstat is parsed to records, the others to dicts whose keys are the names that `ncheck read` prints; None means that the
text does not hold the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import lines_of

Record = dict[str, object]

# "CA type" is the card's PCI device number in decimal.
_MODELS = {
    "MT4099": "ConnectX-3", "MT4103": "ConnectX-3 Pro", "MT4113": "Connect-IB", "MT4115": "ConnectX-4",
    "MT4117": "ConnectX-4 Lx", "MT4119": "ConnectX-5", "MT4121": "ConnectX-5 Ex", "MT4123": "ConnectX-6",
    "MT4125": "ConnectX-6 Dx", "MT4127": "ConnectX-6 Lx", "MT4129": "ConnectX-7", "MT4131": "ConnectX-8",
    "MT41682": "BlueField", "MT41686": "BlueField-2", "MT41692": "BlueField-3",
}  # fmt: skip


def model_of(ca_type: str) -> str:
    """Return "ConnectX-7 (MT4129)", or the type alone where no name of it is known."""
    return f"{_MODELS[ca_type]} ({ca_type})" if ca_type in _MODELS else ca_type


# CA 'mlx5_0'
_CA = expression(r"(?:^|\s)CA '([^']+)'")

#         Port 1:
_PORT = expression(r"(?:^|\s)Port (\d+):\s*$")

_NAMES = dict.fromkeys((
    "CA type", "Number of ports", "Firmware version", "Hardware version", "Node GUID", "System image GUID", "State",
    "Physical state", "Rate", "Base lid", "LMC", "SM lid", "Capability mask", "Port GUID", "Link layer",
))  # fmt: skip

#                 Physical state: LinkUp
_ENTRY = expression(rf"(?:^|\s)({'|'.join(_NAMES)}):[ \t]*(.*\S|)\s*$")

# ibpanic: [7114] main: stat of IB device 'mlx5_1' failed: Invalid argument
# ibwarn: [2716] mad_rpc_open_port: can't open UMAD port ((null):0)
_PANIC = expression(r"(ibpanic|ibwarn(?=.{0,300}(?:[Ff]ail|[Cc]an't|[Cc]ouldn't))): (?:\[\d+\] )?(?:\w+: )?(.*\S)")

# Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)
_FAILURE = expression(
    r"Fatal error: .*\S|No IB devices? found|Failed to (?:get|open|query) .*\S|[Uu]nable to (?:get|open|query) .*\S"
)

# # ibstat: command not found
_NOT_FOUND = expression(r"(?<![\w/.\-])[\w/.\-]+: (?:command )?not found|^.*: No such file or directory$")

_KNOWN_WORDS = (
    "Down", "Initializing", "Armed", "Active", "InfiniBand", "Ethernet", "Unspecified", "LinkUp", "Polling", "Disabled",
    "Sleep", "PortConfigurationTraining", "LinkErrorRecovery", "PhyTest",
)  # fmt: skip


@dataclass(frozen=True)
class Port:
    """One port; None means that the text does not hold it. Rate in Gb/s, LIDs as numbers, GUIDs as 0x and 16 digits."""

    number: int
    state: str | None = None
    physical: str | None = None
    rate: float | None = None
    lid: int | None = None
    sm_lid: int | None = None
    guid: str | None = None
    link_layer: str | None = None


@dataclass(frozen=True)
class Adapter:
    """One channel adapter (CA). `truncated`: the text ends within it, before its ports."""

    name: str
    type: str | None = None
    port_count: int | None = None
    firmware: str | None = None
    node_guid: str | None = None
    ports: tuple[Port, ...] = ()
    truncated: bool = False


def parse_ibstat(text: str) -> tuple[Adapter, ...]:
    """Return the adapters in the order of the text. Indentation is ignored: pasted text often loses it."""
    blocks = list(_blocks(lines_of(text)))
    adapters = [_adapter(name, lines) for name, lines in blocks]
    if adapters and not adapters[-1].ports and not any("System image GUID" in line for line in blocks[-1][1]):
        adapters[-1] = replace(adapters[-1], truncated=True)
    return tuple(adapters)


def tool_error(text: str) -> str | None:
    """Return the tools' own error message without process ids, or that of a shell that did not find the tool.

    An ibwarn that reports no failure is debug output of `ibstat -d`.
    """
    lines = lines_of(text)
    if panic := next((found for line in lines if (found := _PANIC.search(line))), None):
        return f"{panic[1]}: {panic[2]}"
    if failure := next((found[0] for line in lines if (found := _FAILURE.search(line))), None):
        return failure
    missing = [found[0] for line in lines if (found := _NOT_FOUND.search(line))]
    return "; ".join(missing) or None


def failed_devices(error: str | None) -> list[str]:
    """Return the devices that ibstat's error message names: it prints no device after the one that failed."""
    return re.findall(r"stat of IB device '([^']+)' failed", error or "")


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    name, block = "", list[str]()
    for line in lines:
        if "CA '" in line and (found := _CA.search(line)):
            if name:
                yield name, block
            name, block = found[1], []
        else:
            block.append(line)
    if name:
        yield name, block


def _adapter(name: str, lines: Sequence[str]) -> Adapter:
    starts = [number for number, line in enumerate(lines) if "Port " in line and _PORT.search(line)]
    entries = _entries(lines[: starts[0]] if starts else lines)
    ends = [*starts[1:], len(lines)]
    return Adapter(
        name,
        type=entries.get("CA type"),
        port_count=_decimal(entries.get("Number of ports")),
        firmware=_whole_release(entries.get("Firmware version")),
        node_guid=_whole_guid(entries.get("Node GUID")),
        ports=tuple(_port(lines[start:end]) for start, end in zip(starts, ends, strict=False)),
    )


def _port(lines: Sequence[str]) -> Port:
    number = _PORT.search(lines[0])
    entries = _entries(lines[1:])
    return Port(
        int(number[1]) if number else 0,
        state=_whole(entries.get("State")),
        physical=_whole(entries.get("Physical state")),
        rate=rate_of(entries.get("Rate")),
        lid=_decimal(entries.get("Base lid")),
        sm_lid=_decimal(entries.get("SM lid")),
        guid=_whole_guid(entries.get("Port GUID")),
        link_layer=_whole(entries.get("Link layer")),
    )


def _entries(lines: Sequence[str]) -> dict[str, str]:
    """Return the entries that have a value; an author may have replaced a value by "...".

    The first entry of a name counts: later ones may be part of an author's text about it.
    """
    entries: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.strip().partition(":")
        if not colon or name not in _NAMES:  # an author may have written something before it
            found = _ENTRY.search(line)
            name, value = found.groups() if found else ("", "")
        value = value.lstrip(" \t")
        if value.strip(". "):
            entries.setdefault(name, value)
    return entries


@lru_cache(maxsize=256)  # the ports of a cluster have the same few states and link layers
def _whole(word: str | None) -> str | None:
    """Return the word, or None if the text was cut off within it: "Infini" is not a link layer."""
    partial = any(known.startswith(word) and known != word for known in _KNOWN_WORDS) if word else True
    return None if partial else word


def _whole_guid(text: str | None) -> str | None:
    """Return the GUID, or None if digits are missing at its end; one that an author has masked is returned as it is."""
    return None if text and re.fullmatch(r"0x[0-9a-fA-F]{0,15}", text) else text


def _whole_release(text: str | None) -> str | None:
    return None if text and text.endswith(".") else text


def rate_of(text: str | None) -> float | None:
    """Return the Gb/s in "200", "2.5" or "200 Gb/sec (4X HDR)": an int for a whole number."""
    found = re.match(r"\s*(\d+(?:\.\d+)?)", text or "")
    if not found:
        return None
    return float(found[1]) if "." in found[1] else int(found[1])


def _decimal(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


# Infiniband device 'mlx5_0' port 1 status:
_STATUS_HEADING = expression(r"Infiniband device '([^']+)' port (\d+) status:", re.IGNORECASE)

#         phys state:      5: LinkUp
_STATUS_ENTRY = expression(r"(?:^|\s)(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s+(.*\S|)\s*$")

# hca_id: mlx5_0
_HCA = expression(r"(?:^|\s)hca_id:\s*(\S+)")

#                 port:   1
_HCA_PORT = expression(r"(?:^|\s)port:\s*(\d+)\s*$")

#                         active_mtu:             4096 (5)
_HCA_ENTRY = expression(r"^\s*(\w+):[ \t]*(.*\S|)\s*$")

# PORT_DOWN (1)
_NUMBERED = expression(r"^(\S+(?: Gbps)?)\s*\((\w+)\)")

# mlx5_0 port 1 ==> ib0 (Up)
# 0000:05:00.0 mlx5_0 (MT4115 - MT1525X) CX456A - ConnectX-4 fw 12.28.2006 port 1 (ACTIVE) ==> ens785f0 (Up)
_NETDEV = expression(r"\sport\s+\d+\s+(?:\(\s*\w+\s*\)\s+)?<?=+>\s+(\S+)\s+\((\w+)\)")

# link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0
# 2/1: mlx5_2/1: state DOWN physical_state DISABLED netdev ens2f0
_RDMA_LINK = expression(r"(?:^|\s)(?:link|\d+/\d+:) (\w[^\s/]*)/(\d+):?(?= )")
_RDMA_STATE = expression(r"\sstate (\w+) physical_state (\w+)")
_RDMA_NETDEV = expression(r" netdev (\S+)")

#     irdma0              6a05cafffec1b900
_DEVICE = expression(r"^\s*(\S+)\s+([0-9a-f]{16})\s*$")

# hfi1_0:1                           PortGID:0xfe80000000000000:0011750101701541
_OPA_HEADING = expression(r"(?:^|\s)(\w+):(\d+)\s+PortGID:(\S+)")

# "| 2021-07-13 18:45:24 | cg30-9 | hfi1_0 | 1 | OmniPath | 100 Gb/sec (4X EDR) | 9: <unknown> | 1: DOWN |"
_TABLE_STATE = expression(r"^(\d+): ?(\S+)$")

_PORT_KEYS = {"state", "phys_state", "max_mtu", "active_mtu", "sm_lid", "port_lid", "port_id", "port_lmc", "link_layer",
              "active_width", "active_speed"}  # fmt: skip

_STATES = ("PORT_NOP", "PORT_DOWN", "PORT_INIT", "PORT_ARMED", "PORT_ACTIVE", "PORT_ACTIVE_DEFER")
_HCA_PORT_KEYS = ("port", "state", "state_num", "physical_state", "active_mtu", "link_layer")

_STATUS_KEYS = ("state", "state_num", "physical_state", "physical_state_num", "rate", "rate_text", "link_layer",
                "default_gid", "base_lid", "sm_lid")  # fmt: skip


def parse_ibstatus(text: str) -> list[Record]:
    """Return a record per port: ca, port, and _STATUS_KEYS."""
    ports: list[Record] = []
    for line in lines_of(text):
        if found := _STATUS_HEADING.search(line):
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
    """Return a record per HCA: hca, firmware, node_guid, vendor_part_id, ports; `truncated` if its ports are missing.

    The entries of a port are recognised by name: pasted text loses indentation, and grep loses the line "port: 1".
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
    """Return whether all are rxe or siw, RDMA in software on any NIC: these have no vendor and no firmware."""
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
        complete = found or word in _STATES
        return {"state": word if complete else None, "state_num": _integer(found[2]) if found else None}
    if key == "phys_state":
        return {"physical_state": word}
    if key in ("max_mtu", "active_mtu", "sm_lid", "port_lid", "port_id"):
        return {key: _integer(word)}
    return {key: word}


def parse_netdevs(text: str) -> dict[str, list[str]]:
    """Return `ibdev2netdev` as device -> [interface, Up or Down]: the state of the interface, not of the IB port."""
    found = ((row, line[: row.start()]) for line in lines_of(text) if (row := _NETDEV.search(line)))
    devices = ((row, left.partition("(")[0].split()[-1:]) for row, left in found)
    return {name: [row[1], row[2]] for row, names in devices for name in names}


def parse_rdma_links(text: str) -> list[Record]:
    """Return a record per port of `rdma link`, also with -j; `netdev` is None for a port without an interface."""
    links = _rdma_json(text)
    for line in lines_of(text):
        link = _RDMA_LINK.search(line)
        state = _RDMA_STATE.search(line, link.end()) if link else None
        if link and state:
            netdev = _RDMA_NETDEV.search(line, state.end())
            links.append({
                "ca": link[1], "port": int(link[2]), "state": state[1], "physical_state": state[2],
                "netdev": netdev[1] if netdev else None,
            })  # fmt: skip
    return links


def _rdma_json(text: str) -> list[Record]:
    """Read `rdma -j link`: a list of objects with ifname, port, state, physical_state, netdev."""
    start = text.find("[{") if '"physical_state"' in text else -1
    try:
        found, _ = json.JSONDecoder().raw_decode(text[start:]) if start >= 0 else ([], 0)
    except (json.JSONDecodeError, RecursionError):
        return []
    keys = {"ca": "ifname", "port": "port", "state": "state", "physical_state": "physical_state", "netdev": "netdev"}
    rows = (link for link in found if isinstance(link, dict) and "physical_state" in link and "ifname" in link)
    return [{key: link.get(name) for key, name in keys.items()} for link in rows]


# CA: node01 HCA-1:           Switch: 0x0002c90200419288 MF0;sw01:IS5030/U1:
_LINKINFO_HEADING = expression(r"^\s*(CA|Switch): (\S.*?):?\s*$")

#  0x0002c903000e0b73     1    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       2    1[  ] "..." ( )
_LINKINFO = expression(
    r"\s(\d{1,3})\[ {0,2}\] ==\(\s{0,20}(?:(\d{1,2}X)\s{1,20}([\d.]{1,9}) Gbps\s{1,20})?(\w+)/\s{0,20}(\w+)\)==>"
)


def parse_linkinfo(text: str) -> list[Record]:
    """Return a record per port of `iblinkinfo`: ca (the node or switch), port, state, physical_state, rate_text."""
    ports: list[Record] = []
    device = ""
    for line in lines_of(text):
        if found := _LINKINFO_HEADING.match(line):
            device = found[2]
        elif link := _LINKINFO.search(line):
            rate = f"{link[2]} {link[3]} Gbps" if link[2] else None
            ports.append({
                "ca": device or None, "port": int(link[1]), "state": link[4], "physical_state": link[5],
                "rate_text": rate,
            })  # fmt: skip
    return ports


def lists_devices(text: str) -> bool:
    """Return whether the heading of `ibv_devices` is there, even with no device under it."""
    return any(re.match(r"^\s*device\s+node GUID\s*$", line) for line in lines_of(text))


def parse_devices(text: str) -> dict[str, str]:
    """Return `ibv_devices` as device -> node GUID."""
    found = (row for line in lines_of(text) if (row := _DEVICE.match(line)))
    return {row[1]: row[2] for row in found}


def parse_opainfo(text: str) -> list[Record]:
    """Return a record per port of `opainfo`; the rate is link speed times link width, in Gb/s."""
    ports: list[Record] = []
    for line in lines_of(text):
        if found := _OPA_HEADING.search(line):
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
    """Read a table of ports with | between its columns, as monitoring prints; a cell is recognised by its content."""
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
