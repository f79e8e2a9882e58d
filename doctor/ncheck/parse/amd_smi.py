"""amd-smi and rocm-smi: versions, the list of GPUs, the table of amd-smi, the concise one of rocm-smi, and the links.

Formats: amd-smi 24 to 26 (`version`, `list`, `topology`, no command), rocm-smi (no option, --showtopo,
--showproductname, --showdriverversion), each as text or as JSON. Only what the text holds is returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ncheck.parse.capture import lines_of, plain_text

# AMDSMI Tool: 24.5.1+c5106a9 | AMDSMI Library version: 24.5.2.0 | ROCm version: 6.1.2 | amdgpu version: 6.10.10
_VERSIONS = re.compile(r"\b(AMDSMI Tool|AMDSMI Library version|ROCm version|amdgpu version|AMD-SMI):? +(\d[\w.+\-]*)")


_KEYS = {"AMDSMI Tool": "tool", "AMD-SMI": "tool", "AMDSMI Library version": "library", "ROCm version": "rocm",
         "amdgpu version": "driver"}  # fmt: skip


# Driver version: 6.7.0      of rocm-smi --showdriverversion
_DRIVER = re.compile(r"^\s*Driver version:\s*(\d\S*)\s*$", re.IGNORECASE)


# GPU: 0
_LISTED = re.compile(r"^\s*GPU: (\d{1,3})\s*$")


#     BDF: 0000:11:00.0
_OF_LISTED = re.compile(r"^\s+(BDF|UUID|MARKET_NAME|NODE_ID|PARTITION_ID): (\S.*?)\s*$")


# | 0000:ff:00.0 AMD Instinct MI300X VF | 0 %      37 °C   0           141/750 W |
_TABLE = re.compile(r"^\s*\|\s*([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\s+(\S.*?)\s*\|(.*)\|\s*$")


# |   0       0       2        SPX/NPS1 | 0 %        N/A           285/196288 MB |
_TABLE_MEMORY = re.compile(r"^\s*\|\s*(\d{1,3})\s.*\|.*?(\d+)/(\d+) MB\s*\|\s*$")


# GPU[0]          : Card Series:          AMD Instinct MI300X
_ROCM_ENTRY = re.compile(
    r"^\s*GPU ?\[?(\d{1,3})\]?\s*: (?:\(\w+\) )?(Card [Ss]eries|Device Name|Numa Node|Unique ID): *\t*(\S.*?)\s*$"
)


# ====== Link Type between two GPUs ======, LINK TYPE TABLE:
_LINKS = re.compile(r"Link Type between two GPUs|^\s*LINK TYPE TABLE", re.IGNORECASE)


_NEXT_TABLE = re.compile(r"^\s*[A-Z][A-Z ]+TABLE\s*:|={6,}")


# GPU0   0            XGMI         XGMI
_LINK_ROW = re.compile(
    r"^\s*(GPU\d{1,3}|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)((?:\s+(?:0|SELF|XGMI|PCIE|N/A|UNKNOWN))+)\s*$"
)


# 0       2     0x74a1,   55354  51.0°C      152.0W    NPS1, SPX, 0        134Mhz  900Mhz  0%   auto  750.0W  0%     0%
_CONCISE = re.compile(
    r"^\s*(\d{1,3})\s+(?:\d{1,3}\s+0x[0-9a-f]+,\s+\d+\s+)?(?:\[.{1,40}?\]\s+)?\d+\.\d°?[cC]\s.*\d+%\s*$"
)


_CONCISE_HEADING = re.compile(r"Concise Info|ROCm System Management Interface")


# (Topology) Link type between DRM devices 0 and 1
_JSON_LINK = re.compile(r"Link type between DRM devices (\d{1,3}) and (\d{1,3})$")


_FAILURE = re.compile(
    r"(?:rocm-smi|amd-smi): (?:command )?not found|ERROR: *GPU\[\d+\].*|Driver not initialized.*"
    r"|Unable to (?:detect|initialize).*"
    r"|amdgpu not found in modules|ROCm SMI returned \S+.*|AMDSMI_STATUS_\w+"
)


@dataclass(frozen=True)
class AmdSmi:
    """One output. `versions` by tool, library, rocm and driver; `links` (GPU0, GPU1) -> XGMI or PCIE.

    `devices` have index, and name, pci, uuid, memory_used_mb, memory_total_mb, ecc_uncorrected, numa where known.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[Mapping[str, object], ...] = ()
    links: Mapping[tuple[str, str], str] = field(default_factory=dict)
    error: str | None = None


def parse_amd(text: str) -> AmdSmi | None:
    """Read any output of amd-smi or rocm-smi; None for other text."""
    if from_json := _from_json(plain_text(text)):
        return from_json
    lines = lines_of(text)
    versions = {_KEYS[name]: version for line in lines for name, version in _VERSIONS.findall(line)}
    if versions.keys() == {"rocm"}:
        versions = {}  # "ROCm version" is also a line of other reports
    drivers = [found[1] for line in lines if (found := _DRIVER.match(line))] if _is_rocm_smi(lines) else []
    if drivers:
        versions.setdefault("driver", drivers[0])
    devices = _devices(lines)
    links = _links(lines)
    if not (versions or devices or links):
        return None
    return AmdSmi(versions, tuple(devices.values()), links, amd_failure(text))


def amd_failure(text: str) -> str | None:
    """Return the tools' own message if one failed."""
    return next((found[0].strip() for line in lines_of(text) if (found := _FAILURE.search(line))), None)


def _is_rocm_smi(lines: Sequence[str]) -> bool:
    return any(_CONCISE_HEADING.search(line) for line in lines)


def _devices(lines: Sequence[str]) -> dict[int, dict[str, object]]:
    devices: dict[int, dict[str, object]] = {}
    current: dict[str, object] = {}
    rocm = _is_rocm_smi(lines)
    for line in lines:
        if listed := _LISTED.match(line):
            current = devices.setdefault(int(listed[1]), {"index": int(listed[1])})
        elif current and (entry := _OF_LISTED.match(line)):
            current.setdefault(_LIST_KEYS[entry[1]], entry[2])
        elif row := _TABLE.match(line):
            current = {"pci": row[1], "name": row[2], **_errors(row[3])}
        elif current and (memory := _TABLE_MEMORY.match(line)):
            used, total = int(memory[2]), int(memory[3])
            own = {"index": int(memory[1]), **current, "memory_used_mb": used, "memory_total_mb": total}
            devices[int(memory[1])] = own
            current = {}
        elif entry := _ROCM_ENTRY.match(line):
            device = devices.setdefault(int(entry[1]), {"index": int(entry[1])})
            device.setdefault(_ROCM_KEYS[entry[2].lower()], entry[3])
        elif rocm and (row := _CONCISE.match(line)):
            devices.setdefault(int(row[1]), {"index": int(row[1])})
    return dict(sorted(devices.items()))


_LIST_KEYS = {"BDF": "pci", "UUID": "uuid", "MARKET_NAME": "name", "NODE_ID": "node", "PARTITION_ID": "partition"}


_ROCM_KEYS = {"card series": "name", "device name": "name", "numa node": "numa", "unique id": "uuid"}


def _errors(cells: str) -> dict[str, object]:
    """Return the uncorrected errors (UEC): the number between temperature and power."""
    found = re.search(r"(?:C|N/A)\s+(\d{1,9})\s+\S+ ?W", cells)
    return {"ecc_uncorrected": int(found[1])} if found else {}


def _links(lines: Sequence[str]) -> dict[tuple[str, str], str]:
    rows: list[list[str]] = []
    inside = False
    for line in lines:
        if _LINKS.search(line):
            inside = True
        elif inside and (row := _LINK_ROW.match(line)):
            rows.append(row[2].split())
        elif inside and rows and (not line.strip() or _NEXT_TABLE.search(line)):
            break
    return {
        (f"GPU{row}", f"GPU{column}"): path
        for row, paths in enumerate(rows)
        for column, path in enumerate(paths)
        if row != column and path not in ("0", "SELF") and column < len(rows)
    }


def _from_json(text: str) -> AmdSmi | None:
    """Read `amd-smi list --json`, `amd-smi version --json`, and rocm-smi's --json."""
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    if start < 0 or not re.search(r'"(?:bdf|card\d+|amdsmi_library_version)"|DRM devices', text):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:])
    except (json.JSONDecodeError, RecursionError):
        return None
    records = value if isinstance(value, list) else [value]
    mappings = [record for record in records if isinstance(record, dict)]
    devices = [device for record in mappings for device in _json_devices(record)]
    versions = {
        key: record[name]
        for record in mappings
        for name, key in _JSON_VERSIONS.items()
        if isinstance(record.get(name), str)
    }
    links: dict[tuple[str, str], str] = {}
    for record in mappings:
        system = record.get("system")
        for name, path in system.items() if isinstance(system, dict) else ():
            if (pair := _JSON_LINK.search(str(name))) and isinstance(path, str):
                one, other = f"GPU{pair[1]}", f"GPU{pair[2]}"
                links.update({(one, other): path, (other, one): path})
    return AmdSmi(versions, tuple(devices), links) if devices or versions or links else None


_JSON_VERSIONS = {
    "version": "tool",
    "amdsmi_library_version": "library",
    "rocm_version": "rocm",
    "amdgpu_version": "driver",
}


def _json_devices(record: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    if isinstance(record.get("gpu"), int) and isinstance(record.get("bdf"), str):
        yield {"index": record["gpu"], "pci": record["bdf"], "uuid": record.get("uuid")}
    for name, card in record.items():
        number = re.fullmatch(r"card(\d{1,3})", name)
        if number and isinstance(card, dict):
            entries = {str(key).lower().removeprefix("(topology) "): value for key, value in card.items()}
            known = {key: entries[title] for title, key in _ROCM_KEYS.items() if isinstance(entries.get(title), str)}
            yield {"index": int(number[1]), **known}
