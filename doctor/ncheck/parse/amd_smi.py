"""amd-smi and rocm-smi: versions, the list of GPUs, the table of amd-smi, the concise one of rocm-smi, and the links.

Formats: amd-smi 23 to 26 (`version`, `list`, `static`, `topology`, no command), rocm-smi (no option, --showtopo,
--showproductname, --showdriverversion, --showmeminfo, --showbus), each as text or as JSON. Only what the text holds is
returned. `static` is a list up to ROCm 6 and {"gpu_data": [...]} from 7 on; the links of `topology` are a list from
6.2 on and were mappings by "gpu_0" before (amdsmi's CHANGELOG); the keys of rocm-smi changed their case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import lines_of, plain_text

# AMDSMI Tool: 24.5.1+c5106a9 | AMDSMI Library version: 24.5.2.0 | ROCm version: 6.1.2 | amdgpu version: 6.10.10
_VERSIONS = expression(r"\b(AMDSMI Tool|AMDSMI Library version|ROCm version|amdgpu version|AMD-SMI):? +(\d[\w.+\-]*)")

_KEYS = {"AMDSMI Tool": "tool", "AMD-SMI": "tool", "AMDSMI Library version": "library", "ROCm version": "rocm",
         "amdgpu version": "driver"}  # fmt: skip

# Driver version: 6.7.0      of rocm-smi --showdriverversion
_DRIVER = expression(r"^\s*Driver version:\s*(\d\S*)\s*$", re.IGNORECASE)

# GPU: 0
_LISTED = expression(r"^\s*GPU: (\d{1,3})\s*$")

#     BDF: 0000:11:00.0
_OF_LISTED = expression(r"^\s+(BDF|UUID|MARKET_NAME|NODE_ID|PARTITION_ID): (\S.*?)\s*$")

# | 0000:ff:00.0 AMD Instinct MI300X VF | 0 %      37 °C   0           141/750 W |
_TABLE = expression(r"^\s*\|\s*([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\s+(\S.*?)\s*\|(.*)\|\s*$")

# |   0       0       2        SPX/NPS1 | 0 %        N/A           285/196288 MB |
_TABLE_MEMORY = expression(r"^\s*\|\s*(\d{1,3})\s.*\|.*?(\d+)/(\d+) MB\s*\|\s*$")

# GPU[0]          : Card Series:          AMD Instinct MI300X
_ROCM_ENTRY = expression(
    r"^\s*GPU ?\[?(\d{1,3})\]?\s*: (?:\(\w+\) )?(Card [Ss]eries|Device Name|Numa Node|Unique ID): *\t*(\S.*?)\s*$"
)

# ====== Link Type between two GPUs ======, LINK TYPE TABLE:
_LINKS = expression(r"Link Type between two GPUs|^\s*LINK TYPE TABLE", re.IGNORECASE)
_NEXT_TABLE = expression(r"^\s*[A-Z][A-Z ]+TABLE\s*:|={6,}")

# GPU0   0            XGMI         XGMI
_LINK_ROW = expression(
    r"^\s*(GPU\d{1,3}|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)((?:\s+(?:0|SELF|XGMI|PCIE|N/A|UNKNOWN))+)\s*$"
)

# 0       2     0x74a1,   55354  51.0°C      152.0W    NPS1, SPX, 0        134Mhz  900Mhz  0%   auto  750.0W  0%     0%
_CONCISE = expression(
    r"^\s*(\d{1,3})\s+(?:\d{1,3}\s+0x[0-9a-f]+,\s+\d+\s+)?(?:\[.{1,40}?\]\s+)?\d+\.\d°?[cC]\s.*\d+%\s*$"
)

#         AMD Instinct MI300X        the second line of rocm-smi 6.0 and 6.1, at most 20 letters of the name
_CONCISE_NAME = expression(r"^\s{2,}(\S.{0,60}?)\s*$")
_NAMED = expression(r"^\s+Name \(\d+ chars\)")

_CONCISE_HEADING = expression(r"Concise Info|ROCm System Management Interface")

# (Topology) Link type between DRM devices 0 and 1
_JSON_LINK = expression(r"Link type between DRM devices (\d{1,3}) and (\d{1,3})$", re.IGNORECASE)

_FAILURE = expression(
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
    rocm, named = _is_rocm_smi(lines), any(_NAMED.match(line) for line in lines)
    for before, line in zip(["", *lines], lines, strict=False):
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
        elif named and (row := _CONCISE.match(before)) and (name := _CONCISE_NAME.match(line)):
            devices.setdefault(int(row[1]), {"index": int(row[1])}).setdefault("name", name[1])
        elif rocm and (row := _CONCISE.match(line)):
            devices.setdefault(int(row[1]), {"index": int(row[1])})
    return dict(sorted(devices.items()))


_LIST_KEYS = {"BDF": "pci", "UUID": "uuid", "MARKET_NAME": "name", "NODE_ID": "node", "PARTITION_ID": "partition"}
_ROCM_KEYS = {"card series": "name", "device name": "name", "numa node": "numa", "unique id": "uuid", "pci bus": "pci"}


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


_MOST_TRIES = 20  # lines with a bracket first: what a tool warns of comes before its JSON


def _from_json(text: str) -> AmdSmi | None:
    """Read `amd-smi list`, `static`, `topology`, `version` and rocm-smi's outputs, all with --json."""
    if not re.search(r'"(?:bdf|card\d+|amdsmi_library_version|link_type|market_name)"|DRM devices', text):
        return None
    records = _records(_first_json(text))
    devices: dict[int, dict[str, object]] = {}
    links: dict[tuple[str, str], str] = {}
    for record in records:
        for device in _json_devices(record):
            devices.setdefault(int(str(device["index"])), {}).update(device)
        links |= _json_links(record)
    versions = {key: version for record in records for key, version in _json_versions(record)}
    ordered = tuple(devices[index] for index in sorted(devices))
    return AmdSmi(versions, ordered, links) if devices or versions or links else None


def _first_json(text: str) -> object:
    starts = islice(re.finditer(r"^\s*([\[{])", text, re.MULTILINE), _MOST_TRIES)
    return next((value for start in starts if (value := _json_at(text, start.start(1))) is not None), None)


def _json_at(text: str, start: int) -> object:
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _records(value: object) -> list[Mapping[str, object]]:
    if isinstance(value, dict) and isinstance(value.get("gpu_data"), list):
        value = value["gpu_data"]
    return [record for record in (value if isinstance(value, list) else [value]) if isinstance(record, dict)]


def _json_versions(record: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for place in (record, _part(record, "driver"), _part(record, "system")):
        for name, version in place.items():
            key = _JSON_VERSIONS.get(name.lower()) if place is record else _DRIVER_KEYS.get(name.lower())
            if key and isinstance(version, str) and version != _UNKNOWN:
                yield key, version


def _part(record: Mapping[str, object], name: str) -> Mapping[str, object]:
    part = record.get(name)
    return part if isinstance(part, dict) else {}


_UNKNOWN = "N/A"

_JSON_VERSIONS = {
    "version": "tool",
    "amdsmi_library_version": "library",
    "rocm_version": "rocm",
    "amdgpu_version": "driver",
}

# Of `static` and of rocm-smi, whose own driver is under "system".
_DRIVER_KEYS = {"version": "driver", "driver_version": "driver", "driver version": "driver"}


def _json_devices(record: Mapping[str, object]) -> Iterator[dict[str, object]]:
    index, bus = _number(record.get("gpu")), _part(record, "bus")
    if index is not None and isinstance(record.get("bdf", bus.get("bdf")), str):
        yield {
            "index": index,
            "pci": record.get("bdf", bus.get("bdf")),
            **_known(uuid=record.get("uuid"), name=_part(record, "asic").get("market_name")),
            **_known(memory_total_mb=_megabytes(_part(record, "vram"))),
        }
    for name, card in record.items():
        number = re.fullmatch(r"card(\d{1,3})", name)
        if number and isinstance(card, dict):
            entries = {str(key).lower().removeprefix("(topology) "): value for key, value in card.items()}
            known = {key: entries[title] for title, key in _ROCM_KEYS.items() if isinstance(entries.get(title), str)}
            sizes = {key: _mebibytes(entries.get(title)) for title, key in _ROCM_MEMORY.items()}
            yield {"index": int(number[1]), **_known(**known), **_known(**sizes)}


def _known(**values: object) -> dict[str, object]:
    return {key: value for key, value in values.items() if value not in (None, "", _UNKNOWN)}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_GPUS else None


_MOST_GPUS = 1024
_MOST_BYTES = 2**60

# amd-smi means 1,048,576 bytes by MB: an MI300X has 196592 of them
_UNITS = {"MB": 1, "GB": 1024, "B": 1 / 1048576}


def _megabytes(vram: Mapping[str, object]) -> int | None:
    """Return the size: {"size": {"value": 196592, "unit": "MB"}}, or before ROCm 6.1 {"vram_size_mb": 196592}."""
    size = vram.get("size")
    if isinstance(size, dict):
        value, unit = size.get("value"), _UNITS.get(str(size.get("unit")))
        return int(_sane(value) * unit) if unit else None
    return _sane(vram.get("vram_size_mb")) or None


def _sane(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < _MOST_BYTES else 0


def _mebibytes(value: object) -> int | None:
    return int(value) >> 20 if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value) else None


_ROCM_MEMORY = {"vram total memory (b)": "memory_total_mb", "vram total used memory (b)": "memory_used_mb"}


def _json_links(record: Mapping[str, object]) -> dict[tuple[str, str], str]:
    """Return the paths between different GPUs, in both directions where rocm-smi prints one."""
    links: dict[tuple[str, str], str] = {}
    index = _number(record.get("gpu"))
    listed, older = record.get("links"), _part(record, "link_type")
    if index is not None:
        pairs = [(_number_in(name), path) for name, path in older.items()]
        rows = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        pairs += [(_number(one.get("gpu")), one.get("link_type")) for one in rows]
        links |= {
            (f"GPU{index}", f"GPU{other}"): path
            for other, path in pairs
            if other is not None and other != index and isinstance(path, str)
        }
    for name, path in _part(record, "system").items():
        if (pair := _JSON_LINK.search(name)) and isinstance(path, str):
            one, other = f"GPU{pair[1]}", f"GPU{pair[2]}"
            links |= {(one, other): path, (other, one): path}
    return links


def _number_in(name: str) -> int | None:
    found = re.fullmatch(r"gpu_(\d{1,3})", name)
    return int(found[1]) if found else None
