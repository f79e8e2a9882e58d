"""nvidia-smi: its table, -q, -L, nvlink --status, and --query-gpu as CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import lines_of


@dataclass(frozen=True)
class Gpu:
    """One GPU. `index`: the driver's number of it; `pci`: its address as "0000:0f:00.0". `memory_total` and
    `memory_used`: bytes. `processes` maps the number of each process that computes there to its memory in bytes,
    None where that is not known. `graphics`: the numbers of those that draw there, such as a desktop's.
    """

    index: int
    name: str
    uuid: str = ""
    pci: str = ""
    memory_total: int | None = None
    memory_used: int | None = None
    processes: Mapping[int, int | None] | None = None
    graphics: tuple[int, ...] = ()


QUERY = ("index", "name", "uuid", "pci.bus_id", "memory.total", "memory.used", "driver_version")
_MIB = 1 << 20

# | NVIDIA-SMI 610.43.02              KMD Version: 610.47        CUDA UMD Version: 13.3     |
# NVIDIA-SMI version  : 550.54.15
# DRIVER version      : 550.54.15
_TOOL = expression(r"NVIDIA-SMI\s+(?:version\s*:\s*)?([\d.]+)")
_DRIVER = expression(r"(?<!nvidia )(?:Driver|KMD) Version\s*:\s*([\d.]+)", re.IGNORECASE)

# NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.288.01  Mon ...      (/proc/driver/nvidia/version)
_KERNEL = expression(r"NVRM version: NVIDIA UNIX [^\n]{0,80}?Kernel Module(?: for \w+)?\s+(\d[\d.]*)")

# 0, NVIDIA GeForce RTX 3090, 535.288.01, 24576 MiB: a query without its heading
_NAMED_CELL = expression(r"(?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID) [\w .()/\-]*\w\)?")
_DRIVER_CELL = expression(r"\d{3}\.\d{1,3}(?:\.\d{1,3})?")
_CUDA = expression(r"CUDA (?:UMD )?Version\s*:\s*([\d.]+)")

# |   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |
_MODES = frozenset({"On", "Off", "WDDM", "TCC", "MCDM", "N/A", "ERR!"})
_INDEX = expression(r"\d{1,3}")
_PCI = expression(r"\s*([0-9A-Fa-f]{4,8}:\S+)\s")

# |ERR!   38C    P5    49W / 450W |   2021MiB / 23028MiB |      0%   E. Process |
_FAN = expression(r"\|\s*(ERR!|N/A|\d+\s*%)\s")
_USAGE = expression(r"(?<!\d)(\d+)MiB\s*/\s*(\d+)MiB")

# GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5269b708-0000-0000-0000-000000000000)
_LISTED = expression(r"^\s*GPU (?P<index>\d+): (?P<name>.*\S)\s*$")
_UUID = expression(r"(.+?) \(UUID: ([\w-]+)\)?")

#          Link 11: 25 GB/s
_LINK = expression(r"^\s*Link (\d+):\s*(<inactive>|[\d.]+ GB/s)")

# GPU 00000000:07:00.0
_BLOCK = expression(r"^\s*GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$")

#     Product Name                          : NVIDIA A10
_ENTRY = expression(r"[\w ]+")

# index, name, driver_version, memory.total [MiB]
_HEADING = expression(
    r"^(?=.*(?:\b(?:gpu_)?name\b|\buuid\b|pci\.bus_id|driver_version|memory\.|mig\.mode|\.gpu\b))"
    r"\s*[a-z][\w.]*(?: \[\w+\])?(?:, [a-z][\w.]*(?: \[[\w%]+\])?)*\s*$"
)

# Failed to initialize NVML: Driver/library version mismatch
_FAILURE = expression(
    r"(?:Failed to initialize NVML|NVIDIA-SMI has failed because|Unable to determine the device handle).*"
    r"|No devices were found"
)

# bash: nvidia-smi: command not found
_FAILED_LINE = expression(r"[Cc]ommand not found|couldn't find libnvidia-ml|Insufficient Permissions")


@dataclass(frozen=True)
class Smi:
    """One output. `count` is the number of GPUs that it states or lists; None means that the text lacks the value."""

    driver: str | None = None
    cuda: str | None = None
    tool: str | None = None
    gpus: tuple[Gpu, ...] = ()
    count: int = 0
    persistence: tuple[str | None, ...] = ()
    fans: tuple[str | None, ...] = ()
    links: tuple[tuple[str, ...], ...] = ()  # the speed of each NVLink, per GPU
    error: str | None = None


def parse_smi(text: str) -> Smi:
    """Read any of nvidia-smi's plain outputs; `error` is its own message if it failed."""
    lines = table_lines(text)
    if any(_BLOCK.match(line) for line in lines):
        return _query_blocks(lines)
    if any("<nvidia_smi_log>" in line for line in lines):
        return _xml(lines)
    if listed := [found for line in lines if (found := _LISTED.match(line))]:
        return _listing(lines, listed)
    return _headed_csv(lines) or _bare_csv(lines) or _table(lines)


# "|   0  Tesla T4   On  | 00000000:05:00.0 Off |   0 | | N/A   60C ...": a form that lost the line ends
_ROWS_JOINED = expression(r"\|[ \t]+(?=[|+])|(?<=[-=])\+[ \t]+(?=[|+])")


def table_lines(text: str) -> list[str]:
    """Return the lines; rows of a table that were joined to one line are split, and wrapped rows are joined."""
    joined = any(line.count("|") > _CELLS for line in text.split("\n", _MOST_LINES) if "NVIDIA-SMI" in line)
    lines = lines_of(_ROWS_JOINED.sub(lambda found: found[0][0] + "\n", text) if joined else text)
    whole: list[str] = []
    for line in lines:
        ends = line.rstrip().endswith(("|", "+"))
        starts = line.lstrip().startswith(("|", "+")) and len(line.strip()) > 1
        if whole and ends and not starts and whole[-1].lstrip().startswith(("|", "+")):
            whole[-1] += line
        else:
            whole.append(line)
    return whole


_CELLS, _MOST_LINES = 8, 100


def smi_failure(text: str) -> str | None:
    """Return nvidia-smi's own message if it failed."""
    for line in text.split("\n"):
        if _FAILED_LINE.search(line):
            return line.strip()
        if lost := next((cell for cell in line.split("|") if "GPU is lost" in cell), None):
            return lost.strip()
        if found := _FAILURE.search(line):
            return found[0].strip()
    return None


def parse_query(text: str) -> tuple[tuple[Gpu, ...], str]:
    """Read `nvidia-smi --query-gpu=<QUERY> --format=csv,noheader,nounits`: the GPUs and the driver.

    Raises ValueError, with the row in the message, for a GPU that is lost and for a malformed row.
    """
    rows = [row for row in csv.reader(lines_of(text), skipinitialspace=True) if row]
    for row in rows:
        broken = next((cell for cell in row[:2] if cell.startswith("[") or "ERR!" in cell), None)
        if broken or any("GPU is lost" in cell for cell in row) or len(row) != len(QUERY):
            raise ValueError(f"nvidia-smi says: {', '.join(row)}")
    gpus = tuple(_queried(row) for row in rows)
    return gpus, rows[0][-1] if rows else ""


def pci_address(text: str) -> str:
    """Return a PCI address as sysfs writes it: 00000000:0F:00.0 is 0000:0f:00.0, 00010000:0F:00.0 is 10000:0f:00.0."""
    domain, _, rest = text.strip().lower().partition(":")
    return f"{domain[:-4].lstrip('0')}{domain[-4:]}:{rest}"


def _queried(row: Sequence[str]) -> Gpu:
    index, name, uuid, pci, total, used, _driver = row
    return Gpu(int(index), name, uuid, pci_address(pci), _mib(total), _mib(used))


def _headed_csv(lines: Sequence[str]) -> Smi | None:
    """Read a query with its heading, for any columns: "index, name, driver_version, memory.total [MiB]"."""
    start = next((at for at, line in enumerate(lines) if _HEADING.match(line)), None)
    if start is None:
        return None
    titles = [title.partition(" [")[0].strip() for title in lines[start].split(",")]
    found = (dict(zip(titles, (cell.strip() for cell in line.split(",")), strict=False)) for line in lines[start + 1 :])
    rows = [row for row in found if len(row) == len(titles)]
    gpus = tuple(Gpu(at, row.get("name") or row.get("gpu_name", "")) for at, row in enumerate(rows))
    modes = tuple({"Enabled": "On", "Disabled": "Off"}.get(row.get("persistence_mode", "")) for row in rows)
    return Smi(rows[0].get("driver_version") if rows else None, gpus=gpus, count=len(gpus), persistence=modes)


def _bare_csv(lines: Sequence[str]) -> Smi | None:
    """Read a query without its heading: only cells that show by themselves what they are."""
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if "," in line]
    found = [(row, name) for row in rows if (name := next((cell for cell in row if _NAMED_CELL.fullmatch(cell)), ""))]
    if not found or any("|" in line for line in lines):
        return None
    gpus = tuple(
        Gpu(at, name, next((cell for cell in row if cell.startswith("GPU-")), ""))
        for at, (row, name) in enumerate(found)
    )
    driver = next((cell for cell in found[0][0] if _DRIVER_CELL.fullmatch(cell)), None)
    return Smi(driver, gpus=gpus, count=len(gpus))


def _mib(cell: str | None) -> int | None:
    return int(cell) * _MIB if cell and cell.isdigit() else None


def _table(lines: Sequence[str]) -> Smi:
    text = "\n".join(lines)
    gpus: list[Gpu] = []
    modes: list[str | None] = []
    fans: list[str | None] = []
    for number, line in enumerate(lines):
        if not (row := _table_row(line)):
            continue
        gpu, mode = row
        if any(gpu.index == other.index for other in gpus):
            break  # another node's table, or the same again
        below = next((lines[at] for at in range(number + 1, len(lines)) if lines[at].strip()), "")
        fan = _FAN.search(below)
        usage = _USAGE.search(below) if fan else None
        used, total = usage.groups() if usage else (None, None)
        gpus.append(replace(gpu, memory_total=_mib(total), memory_used=_mib(used)))
        modes.append(mode if mode in ("On", "Off") else None)
        fans.append(fan[1] if fan else None)
    tool, driver = _first(_TOOL, text), _first(_DRIVER, text)
    error = smi_failure(text)
    return Smi(
        driver or _first(_KERNEL, text) or tool,
        _first(_CUDA, text),
        tool,
        tuple(gpus),
        len(gpus),
        tuple(modes),
        tuple(fans),
        (),
        error,
    )


def _table_row(line: str) -> tuple[Gpu, str] | None:
    """Return the GPU of a row of the table, and its persistence or driver mode."""
    cells = line.split("|")
    for left, right in pairwise(cells[1:]):
        words, pci = left.split(), _PCI.match(right)
        if pci and len(words) > 1 and _INDEX.fullmatch(words[0]):
            mode = words.pop() if words[-1] in _MODES and len(words) > 2 else ""  # noqa: PLR2004  before 319: none
            return Gpu(int(words[0]), " ".join(words[1:]), "", pci_address(pci[1])), mode
    return None


def _query_blocks(lines: Sequence[str]) -> Smi:
    """Read `nvidia-smi -q`: a block per GPU, with its PCI address and indented entries."""
    starts = [number for number, line in enumerate(lines) if _BLOCK.match(line)]
    gpus: list[Gpu] = []
    modes: list[str | None] = []
    for index, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True)):
        entries = _entries(lines[start + 1 : end])
        pci = pci_address(lines[start].split()[1])
        gpus.append(Gpu(index, entries.get("Product Name", ""), entries.get("GPU UUID", ""), pci))
        modes.append(entries.get("Persistence Mode"))
    head = _entries(lines[: starts[0]])
    attached = head.get("Attached GPUs", "")
    count = int(attached) if attached.isdigit() else len(gpus)
    return Smi(head.get("Driver Version"), head.get("CUDA Version"), None, tuple(gpus), count, tuple(modes))


# <gpu id="00000000:01:00.0">, <product_name>NVIDIA A100-SXM4-80GB</product_name>
_XML_GPU = expression(r'<gpu id="([0-9A-Fa-f:.]{7,20})">')

_XML_ENTRY = expression(
    r"<(driver_version|cuda_version|attached_gpus|product_name|uuid|persistence_mode)>([^<]{1,200})</"
)


def _xml(lines: Sequence[str]) -> Smi:
    """Read `nvidia-smi -q -x`: the name, UUID and address of each GPU, and the versions."""
    head: dict[str, str] = {}
    gpus: list[dict[str, str]] = []
    for line in lines:
        if found := _XML_GPU.search(line):
            gpus.append({"pci": pci_address(found[1])})
        for name, value in _XML_ENTRY.findall(line):
            (gpus[-1] if gpus else head).setdefault(name, value.strip())
    listed = tuple(
        Gpu(index, gpu.get("product_name", ""), gpu.get("uuid", ""), gpu["pci"]) for index, gpu in enumerate(gpus)
    )
    attached = head.get("attached_gpus", "")
    count = int(attached) if _INDEX.fullmatch(attached) else len(listed)
    modes = tuple(gpu.get("persistence_mode") for gpu in gpus)
    return Smi(head.get("driver_version"), head.get("cuda_version"), None, listed, count, modes)


def _entries(lines: Sequence[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(" :")
        if colon and value[:1].isspace() and _ENTRY.fullmatch(name.strip()):
            entries.setdefault(name.strip(), value.strip())
    return entries


def _listing(lines: Sequence[str], listed: Sequence[re.Match[str]]) -> Smi:
    """Read `nvidia-smi -L`, and `nvlink --status`, which adds a line per link under each GPU."""
    links: list[list[str]] = []
    for line in lines:
        if _LISTED.match(line):
            links.append([])
        elif links and (link := _LINK.match(line)):
            links[-1].append(link[2])
    gpus = tuple(_listed_gpu(row) for row in listed)
    return Smi(gpus=gpus, count=len(gpus), links=tuple(tuple(each) for each in links if each))


def _listed_gpu(row: re.Match[str]) -> Gpu:
    found = _UUID.fullmatch(row["name"])
    name, uuid = found.groups() if found else (row["name"], "")
    return Gpu(int(row["index"]), name, uuid)


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
