"""What nvidia-smi prints of each GPU beside its name: memory, ECC, links, throttling, processes.

A device is a dict of the keys in KEYS that the text holds; memory in MiB as printed, power in W, temperature in C.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ncheck.expression import expression
from ncheck.parse.nvidia_smi import pci_address, table_lines

Record = dict[str, object]

# |   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |
_FIRST_ROW = expression(r"^\s*(\d{1,3})\s+(\S.*?)\s*$")
_PCI = expression(r"^\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)(?:\s|$)")

# | N/A   27C    P0             72W /  700W |       1MiB /  81559MiB |      0%      Default |
_SENSORS = expression(r"^\s*(\d+\s*%|N/A|ERR!)\s+(\d+C|N/A|ERR!)\s+(P\d+|N/A|ERR!|Unknown)\s+(\S+)\s*/\s*(\S+)")
_MEMORY = expression(r"(?<!\d)(\d{1,9})\s?MiB\s{0,20}/\s{0,20}(\d{1,9})\s?MiB")
_LOAD = expression(r"^\s*(\d+\s*%|N/A|ERR!)\s+(\S.*?)\s*$")

# |    0   N/A  N/A      4711      C   python3                         10240MiB |
# |    0      4711      C   python                                     10240MiB |
_PROCESS = expression(
    r"^\W*\|\s+(\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+(?=\d))?(\d+)\s+(?:([CGM][+\w]*)\s+)?(\S.*?)\s+(\d+MiB|N/A)\s*\|"
)

_MOST_PROCESSES = 10_000


def parse_devices(text: str) -> list[Record]:
    """Return the devices of any of nvidia-smi's outputs; none for other text."""
    lines = table_lines(text)
    for read in (_blocks, _links, _csv, _rows):
        if devices := read(lines):
            return devices
    return []


def parse_processes(text: str) -> list[Record]:
    """Return the processes of the table, of -q or of --query-compute-apps: pid, and gpu, type, name, memory_mib."""
    lines = table_lines(text)
    found = [row for line in lines if (row := _PROCESS.match(line))]
    listed = [
        {"gpu": int(row[1]), "pid": int(row[2]), "type": row[3], "name": row[4], "memory_mib": _number(row[5])}
        for row in found[:_MOST_PROCESSES]
    ]
    return listed or list(_queried_processes(lines))


def _queried_processes(lines: Sequence[str]) -> Iterator[Record]:
    """Read `Process ID`, `Type`, `Name`, `Used GPU Memory` of -q, and the CSV of --query-compute-apps."""
    heading = next((at for at, line in enumerate(lines) if _APPS.match(line)), None)
    if heading is not None:
        titles = [title.partition(" [")[0].strip() for title in lines[heading].split(",")]
        for row in csv.reader(lines[heading + 1 :], skipinitialspace=True):
            cells = dict(zip(titles, row, strict=False))
            if cells.get("pid", "").isdigit():
                size = cells.get("used_gpu_memory") or cells.get("used_memory") or ""
                name = cells.get("process_name") or cells.get("name")
                yield {"gpu": None, "pid": int(cells["pid"]), "type": None, "name": name, "memory_mib": _number(size)}
        return
    process: Record = {}
    for line in lines:
        name, colon, value = (part.strip() for part in line.partition(" :"))
        if colon and name in ("Process ID", "PID") and value.isdigit():
            if process:
                yield process
            process = {"gpu": None, "pid": int(value), "type": None, "name": None, "memory_mib": None}
        elif process and colon and name in _OF_PROCESS:
            process[_OF_PROCESS[name]] = _number(value) if name == "Used GPU Memory" else value
    if process:
        yield process


# pid, process_name, used_gpu_memory [MiB]
_APPS = expression(r"^\s*(?:[a-z_.]+(?: \[\w+\])?, )*pid(?:, [a-z_.]+(?: \[\w+\])?)*\s*$")
_OF_PROCESS = {"Type": "type", "Name": "name", "Used GPU Memory": "memory_mib"}


def _rows(lines: Sequence[str]) -> list[Record]:
    """Read the table: three rows of each GPU."""
    devices: list[Record] = []
    row = 0
    for line in lines:
        cells = line.split("|")[1:]
        if first := _first_row(cells):
            if any(first["index"] == other["index"] for other in devices):
                break
            devices.append(first)
            row = 1
        elif devices and row == 1 and len(cells) > 1:
            devices[-1].update(_second_row(cells))
            row = 2
        elif devices and row == 2 and len(cells) > 2:  # noqa: PLR2004
            if mig := cells[2].strip():
                devices[-1]["mig"] = mig
            row = 0
        elif "Processes:" in line:
            break
    return devices


def _first_row(cells: Sequence[str]) -> Record | None:
    found, pci = _FIRST_ROW.match(cells[0]) if cells else None, _PCI.match(cells[1]) if len(cells) > 1 else None
    if not found or not pci:
        return None
    device: Record = {"index": int(found[1]), "pci": pci_address(pci[1])}
    name, _, mode = found[2].rpartition(" ")
    device["name"] = name.rstrip() if mode in _MODES else found[2]
    if mode in ("On", "Off"):
        device["persistence"] = mode
    if len(cells) > 2 and (ecc := cells[2].strip()):  # noqa: PLR2004
        device["ecc_uncorrected"] = int(ecc) if _COUNT.fullmatch(ecc) else ecc
    return device


_MODES = frozenset({"On", "Off", "WDDM", "TCC", "MCDM", "N/A", "ERR!"})
_COUNT = expression(r"\d{1,18}")


def _second_row(cells: Sequence[str]) -> Record:
    found: Record = {}
    if sensors := _SENSORS.match(cells[0]):
        words = ("fan", "temperature_c", "perf", "power_w", "power_cap_w")
        found.update({key: _number(value) for key, value in zip(words, sensors.groups(), strict=True)})
        found["perf"] = sensors[3]
    if memory := _MEMORY.search(cells[1]):
        found.update(memory_used_mib=int(memory[1]), memory_total_mib=int(memory[2]))
    if len(cells) > 2 and (load := _LOAD.match(cells[2])):  # noqa: PLR2004
        found.update(utilization_percent=_number(load[1]), compute_mode=load[2])
    if broken := [word for word in ("ERR!", "GPU is lost", "Unknown Error") if any(word in cell for cell in cells)]:
        found["broken"] = broken[-1]
    return found


def _number(text: str) -> int | float | str | None:
    """Return the number in "72W", "81559 MiB", "0 %"; ERR! as it is; None for N/A."""
    found = re.match(r"\s*(\d{1,18}(?:\.\d{1,6})?)\s*(?:[A-Za-z%/]{0,8}|GT/s)\s*$", text)
    if found:
        return float(found[1]) if "." in found[1] else int(found[1])
    return text.strip() if "ERR!" in text else None


# GPU 00000000:07:00.0
_BLOCK = expression(r"^\s*GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$")
_WORD: Callable[[str], object] = str

# Each entry of -q that is read: its path's last headings, and how. Drivers move blocks, and pastes lose indentation.
_ENTRIES: Mapping[tuple[str, ...], tuple[str, Callable[[str], object]]] = {
    ("Product Name",): ("name", _WORD),
    ("Persistence Mode",): ("persistence", _WORD),
    ("GPU UUID",): ("uuid", _WORD),
    ("MIG Mode", "Current"): ("mig", _WORD),
    ("Compute Mode",): ("compute_mode", _WORD),
    ("Fan Speed",): ("fan", _number),
    ("Performance State",): ("perf", _WORD),
    ("FB Memory Usage", "Total"): ("memory_total_mib", _number),
    ("FB Memory Usage", "Used"): ("memory_used_mib", _number),
    ("Utilization", "Gpu"): ("utilization_percent", _number),
    ("Utilization", "GPU"): ("utilization_percent", _number),
    ("Temperature", "GPU Current Temp"): ("temperature_c", _number),
    ("Power Draw",): ("power_w", _number),
    ("Average Power Draw",): ("power_w", _number),
    ("Current Power Limit",): ("power_cap_w", _number),
    ("Power Limit",): ("power_cap_w", _number),
    ("PCIe Generation", "Current"): ("pcie_gen", _number),
    ("PCIe Generation", "Max"): ("pcie_gen_max", _number),
    ("Link Width", "Current"): ("pcie_width", _number),
    ("Link Width", "Max"): ("pcie_width_max", _number),
    ("ECC Mode", "Current"): ("ecc_mode", _WORD),
    ("Volatile", "SRAM Uncorrectable"): ("ecc_uncorrected", _number),
    ("Volatile", "SRAM Uncorrectable Parity"): ("ecc_uncorrected", _number),
    ("Volatile", "DRAM Uncorrectable"): ("ecc_uncorrected_dram", _number),
    ("Volatile", "Double Bit", "Total"): ("ecc_uncorrected", _number),
    ("Aggregate", "SRAM Uncorrectable"): ("ecc_uncorrected_aggregate", _number),
    ("Aggregate", "DRAM Uncorrectable"): ("ecc_uncorrected_dram_aggregate", _number),
    ("Aggregate", "Double Bit", "Total"): ("ecc_uncorrected_aggregate", _number),
    ("Remapped Rows", "Pending"): ("remap_pending", _WORD),
    ("Remapped Rows", "Remapping Failure Occurred"): ("remap_failed", _WORD),
    ("Remapped Rows", "Uncorrectable Error"): ("remapped_uncorrectable", _number),
    ("Retired Pages", "Pending Page Blacklist"): ("retire_pending", _WORD),
    ("Retired Pages", "Pending"): ("retire_pending", _WORD),
    ("GPU Reset Status", "Reset Required"): ("reset_required", _WORD),
    ("Fabric", "State"): ("fabric_state", _WORD),
    ("Fabric", "Status"): ("fabric_status", _WORD),
    ("GPU Recovery Action",): ("recovery_action", _WORD),
}

_DEEPEST = max(len(path) for path in _ENTRIES)

# Throttle reasons that mean less speed than the job could have; the others are normal.
_SLOWED = ("HW Slowdown", "HW Thermal Slowdown", "HW Power Brake Slowdown", "SW Thermal Slowdown")


def _blocks(lines: Sequence[str]) -> list[Record]:
    """Read -q: a block per GPU with headings and entries under them."""
    devices: list[Record] = []
    path: list[tuple[int, str]] = []
    for line in lines:
        if block := _BLOCK.match(line):
            devices.append({"index": len(devices), "pci": pci_address(block[1])})
            path = []
            continue
        if not devices or not line.strip():
            continue
        name, colon, value = line.partition(" :")
        indent = len(name) - len(name.lstrip())
        while path and path[-1][0] >= indent and (colon or indent or path[-1][0]):
            if colon and path[-1][0] == indent == 0:
                break  # all indentation is lost: the last heading holds
            path.pop()
        if not colon:
            path.append((indent, name.strip()))
            continue
        _enter(devices[-1], [heading for _, heading in path], name.strip(), value.strip())
    return devices


def _enter(device: Record, headings: Sequence[str], name: str, value: str) -> None:
    if name in _SLOWED and value == "Active":
        slowed = device.setdefault("throttled", [])
        if isinstance(slowed, list):
            slowed.append(name)
    for length in range(_DEEPEST - 1, -1, -1):
        entry = _ENTRIES.get((*headings[max(0, len(headings) - length) :], name))
        if entry and value and value not in _NO_VALUE:
            key, read = entry
            if (known := read(value)) is not None:
                device.setdefault(key, known)
            return


_NO_VALUE = ("N/A", "[N/A]", "Requested functionality has been deprecated", "[Not Supported]", "Not Supported")

# GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5269b708-0000-0000-0000-000000000000)
_LISTED = expression(r"^\s*GPU (\d{1,3}): (.*?\S)(?: \(UUID: ([\w-]+)\)?)?\s*$")
_LINK = expression(r"^\s*Link (\d{1,3}): (<inactive>|[\d.]{1,9} GB/s)")

# Link 3: Replay Errors: 12
_LINK_ERRORS = expression(r"^\s*Link (\d{1,3}): ([A-Z][\w ]*Errors?(?: Count)?): (\d{1,18})\s*$")

# MIG 1g.10gb     Device  0: (UUID: MIG-...)
_MIG = expression(r"^\s*MIG (\d\w*\.\d+gb\S*)\s+Device\s+\d+:")


def _links(lines: Sequence[str]) -> list[Record]:
    """Read -L, and nvlink --status and --errorcounters, which print lines under those of -L."""
    devices: list[Record] = []
    for line in lines:
        if row := _LISTED.match(line):
            devices.append({"index": int(row[1]), "name": row[2], **({"uuid": row[3]} if row[3] else {})})
        elif devices and (link := _LINK.match(line)):
            _append(devices[-1], "links", link[2])
        elif devices and (mig := _MIG.match(line)):
            _append(devices[-1], "mig_devices", mig[1])
        elif devices and (errors := _LINK_ERRORS.match(line)) and errors[3].strip("0"):
            _append(devices[-1], "link_errors", f"link {errors[1]}: {errors[3]} {errors[2]}")
    return devices


def _append(device: Record, key: str, value: str) -> None:
    values = device.setdefault(key, [])
    if isinstance(values, list):
        values.append(value)


# index, name, driver_version, memory.total [MiB]
_HEADING = expression(r"^\s*[a-z][\w.]*(?: \[[\w%]+\])?(?:, [a-z][\w.]*(?: \[[\w%]+\])?)+\s*$")

_COLUMNS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "index": ("index", _number), "name": ("name", _WORD), "gpu_name": ("name", _WORD), "uuid": ("uuid", _WORD),
    "gpu_uuid": ("uuid", _WORD), "pci.bus_id": ("pci", pci_address), "gpu_bus_id": ("pci", pci_address),
    "memory.used": ("memory_used_mib", _number), "memory.total": ("memory_total_mib", _number),
    "utilization.gpu": ("utilization_percent", _number), "temperature.gpu": ("temperature_c", _number),
    "power.draw": ("power_w", _number), "power.limit": ("power_cap_w", _number), "pstate": ("perf", _WORD),
    "persistence_mode": ("persistence", _WORD), "compute_mode": ("compute_mode", _WORD), "fan.speed": ("fan", _number),
    "mig.mode.current": ("mig", _WORD), "ecc.mode.current": ("ecc_mode", _WORD),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected", _number),
    "ecc.errors.uncorrected.aggregate.total": ("ecc_uncorrected_aggregate", _number),
    "pcie.link.gen.current": ("pcie_gen", _number), "pcie.link.gen.max": ("pcie_gen_max", _number),
    "pcie.link.width.current": ("pcie_width", _number), "pcie.link.width.max": ("pcie_width_max", _number),
}  # fmt: skip


def _csv(lines: Sequence[str]) -> list[Record]:
    """Read --query-gpu with its heading, for any columns."""
    start = next((at for at, line in enumerate(lines) if _HEADING.match(line)), None)
    if start is None:
        return []
    titles = [title.partition(" [")[0].strip() for title in lines[start].split(",")]
    if not set(titles) & (_COLUMNS.keys() - {"index", "name"}) and "driver_version" not in titles:
        return []
    rows = (row for row in csv.reader(lines[start + 1 :], skipinitialspace=True) if len(row) == len(titles))
    return [_csv_device(dict(zip(titles, row, strict=True)), at) for at, row in enumerate(rows)]


def _csv_device(row: Mapping[str, str], position: int) -> Record:
    device: Record = {"index": position}
    for title, cell in row.items():
        key, read = _COLUMNS.get(title, ("", _WORD))
        if key and cell.strip() and cell.strip() not in _NO_VALUE and (value := read(cell.strip())) is not None:
            device[key] = value
    return device
