"""The matrix of `nvidia-smi topo -m`: the paths between GPUs and NICs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.capture import lines_of

RANK = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4, "SOC": 4}
_LEVEL = r"(?:NV\d{1,2}|PIX|PXB|PHB|NODE|SYS|SOC|X)"
_TITLES = ("CPU Affinity", "GPU NUMA ID", "NUMA Affinity")

#         GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
#         GPU0  GPU1  CPU Affinity  NUMA
_TITLE = expression(r"(CPU\s+Affinity)|(GPU\s+NUMA\s+ID)|(NUMA(?:\s+Affinity)?)")

# NIC6NIC7, mlx5_0mlx5_1: headings that were pasted without spaces
_NAME = expression(r"(?:GPU|NIC|mlx)?(?:(?!GPU\d|NIC\d|mlx\d)\S)+")

# GPU0     X      NV18    NODENODE    SYS0-35,72-107      0               N/A
_ROW = expression(rf"(?:^|(?<=\s))((?:GPU|NIC)\d+(?=\s|{_LEVEL})|\S+(?=\s))\s*((?:{_LEVEL}\s*)+)(?![A-Za-z=_:])(.*)$")
_CELL = re.compile(_LEVEL)

# 0-55,112-167    0N/A
_PLACE = expression(r"N/A|[0-9]+(?:[,\-][0-9]+)*")

# "S     SYS     0-31,64-95      0               N/A": a terminal may wrap within a word
_REST_OF_ROW = expression(r"^[NVPIXBHODESYCA0-9,/\s\-]+$")

# "  NIC0: mlx5_0" under "NIC Legend:"
_LEGEND = expression(r"^\s*((?:NIC|HCA)\d+):\s*(.*\S|)\s*$")
_TWO = 2  # a single name may be part of a sentence
_DEVICE = expression(r"(?!(?:GPU|NIC|NV)\d+$)(?=\D*\d)[A-Za-z][\w.\-]*")


@dataclass(frozen=True)
class Matrix:
    """`pairs` maps (row, column) to X, NV12, PIX, PXB, PHB, NODE or SYS, in both directions.

    Of AMD's GPUs it is XGMI or PCIE, and there are no NICs.

    `nics` are the names of the columns or rows as printed (NIC0 or mlx5_0), `legend` maps NIC0 to mlx5_0.
    `cpu_affinity` and `numa_affinity` map GPU0 to "0-31,64-95" and "0", or "N/A".
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    pairs: Mapping[tuple[str, str], str]
    legend: Mapping[str, str]
    cpu_affinity: Mapping[str, str]
    numa_affinity: Mapping[str, str]
    gpu_numa_id: Mapping[str, str] | None = None  # None: the driver prints no such column


@dataclass(frozen=True)
class _Row:
    name: str
    cells: tuple[str, ...]
    tail: str
    indent: int  # position of the last cell, relative to the start of the tail: negative


def parse_topology(text: str) -> tuple[Matrix, tuple[str, ...]]:
    """Return the matrix, and the NICs whose line in the legend names no device.

    Raises ValueError for any other text, and for other matrices (`topo -p2p`).
    """
    lines = [line.replace("|", " ") for line in lines_of(text)]
    head, first = _heading(lines)
    rows = _rows(lines[first:], _names(head))
    names = _column_names(head, rows)
    if not rows:
        raise ValueError("not the output of `nvidia-smi topo -m`: no row of X, NV#, PIX, PXB, PHB, NODE or SYS")
    if unknown := next((word for row in rows if (word := _unknown_cell(row, names))), None):
        raise ValueError(f"not the output of `nvidia-smi topo -m`: {unknown} is not a path between two devices")
    legend, unreadable = _legends(lines)
    gpus = tuple(name for name in names if _is_gpu(name))
    if not gpus:
        raise ValueError("not the output of `nvidia-smi topo -m`: no GPU among its rows and columns")
    places = _places(head, names, rows)
    matrix = Matrix(
        gpus=gpus,
        nics=tuple(name for name in names if not _is_gpu(name)),
        pairs=_pairs(names, rows),
        legend=legend,
        cpu_affinity=_of_gpus(places, "CPU Affinity"),
        numa_affinity=_of_gpus(places, "NUMA Affinity"),
        gpu_numa_id=_of_gpus(places, "GPU NUMA ID") if "GPU NUMA ID" in _titles(head) else None,
    )
    return matrix, unreadable


def closest_nics(facts: Matrix, gpu: str) -> tuple[tuple[str, ...], str]:
    """Return the NICs on the shortest path to this GPU, and the level of that path ("" if there is no NIC)."""
    paths = {nic: facts.pairs[gpu, nic] for nic in facts.nics if (gpu, nic) in facts.pairs}
    near = min((RANK.get(level, len(RANK)) for level in paths.values()), default=None)
    nics = tuple(nic for nic, level in paths.items() if RANK.get(level, len(RANK)) == near)
    return nics, paths[nics[0]] if nics else ""


def _is_gpu(name: str) -> bool:
    return bool(re.fullmatch(r"GPU\d+", name))


def _heading(lines: Sequence[str]) -> tuple[str, int]:
    """Return the line of column names, joined if it was wrapped, and the number of the line after it."""
    for start, line in enumerate(lines):
        found = re.search(r"(?<![\w-])GPU\d+(?![\w:.]|\s*:)", line)
        if not found or _row(line, ()) or (len(_names(line[found.start() :])) < _TWO and not _titles(line)):
            continue
        end = start + 1
        while end < len(lines) and lines[end].strip() and not _row(lines[end], ()):
            end += 1
        wrapped = lines[start:end]
        return _joined(wrapped, max(map(len, wrapped)))[found.start() :], end
    return "", 0


def _titles(head: str) -> tuple[str, ...]:
    return tuple(_title(found) for found in _TITLE.finditer(head))


def _title(found: re.Match[str]) -> str:
    return _TITLES[(found.lastindex or 1) - 1]


def _names(head: str) -> tuple[str, ...]:
    """Return the columns that are devices: these have a number in their name, a truncated title has none."""
    words = _NAME.findall(_TITLE.sub(" ", head))
    return tuple(dict.fromkeys(word for word in words if re.search(r"\d", word)))


def _row(line: str, names: Sequence[str]) -> _Row | None:
    found = _ROW.search(line.expandtabs())
    if not found or not _may_name_a_row(found[1], names):
        return None
    cells = list(_CELL.finditer(found[2]))
    return _Row(found[1], tuple(cell[0] for cell in cells), found[3], cells[-1].start() - len(found[2]))


def _may_name_a_row(word: str, names: Sequence[str]) -> bool:
    if names:
        return word in names
    return bool(re.search(r"\d", word)) and not _CELL.fullmatch(word)


def _rows(lines: Sequence[str], names: Sequence[str]) -> list[_Row]:
    """Return the rows of the first matrix; a line with only cells continues the row above it."""
    pieces: list[list[str]] = []
    seen: set[str] = set()
    for line in lines:
        row = _row(line, names)
        if row and row.name in seen:
            break  # another matrix begins
        if row:
            seen.add(row.name)
            pieces.append([line])
        elif pieces and line.strip() and _REST_OF_ROW.match(line):
            pieces[-1].append(line)
    widest = max((len(piece) for group in pieces if len(group) > 1 for piece in group[:-1]), default=0)
    rows = (_row(_joined(group, widest), names) for group in pieces)
    return [row for row in rows if row]


def _unknown_cell(row: _Row, names: Sequence[str]) -> str | None:
    """Return the first word in place of a cell that is no path, such as OK of `topo -p2p`; a truncated SY is none."""
    words = row.tail.split()
    if len(row.cells) >= len(names) or not words or not re.match("[A-Z?]", words[0]):
        return None
    return None if any(level.startswith(words[0]) for level in ("NV", *RANK)) else words[0]


def _joined(pieces: Sequence[str], width: int) -> str:
    """Join a wrapped line: a line of full width was cut anywhere, a shorter one lost the spaces at its end."""
    return "".join(piece if len(piece) >= width else piece + " " for piece in pieces[:-1]) + pieces[-1]


def _column_names(head: str, rows: Sequence[_Row]) -> tuple[str, ...]:
    """Return the names in order: those of the columns, unless the heading is missing or truncated."""
    columns, labels = _names(head), tuple(row.name for row in rows)
    return columns if len(columns) >= len(labels) else labels


def _pairs(names: Sequence[str], rows: Iterable[_Row]) -> Mapping[tuple[str, str], str]:
    """Return both directions of each pair; a missing direction is taken from the other one."""
    pairs: dict[tuple[str, str], str] = {}
    for row in rows:
        pairs.update({(row.name, column): cell for column, cell in zip(names, row.cells, strict=False)})
    for (row_name, column), level in tuple(pairs.items()):
        pairs.setdefault((column, row_name), level)
    return pairs


def _places(head: str, names: Sequence[str], rows: Iterable[_Row]) -> Mapping[str, Mapping[str, str]]:
    """Map each row to its affinity columns, by title."""
    titles = _title_columns(head, names)
    return {row.name: _placed(row, titles) for row in rows if len(row.cells) >= len(names)}


def _title_columns(head: str, names: Sequence[str]) -> Mapping[str, int]:
    """Map each title to its distance from the last device's column."""
    flat = head.expandtabs()
    last = flat.rfind(names[-1]) if names else 0
    return {_title(title): title.start() - last for title in _TITLE.finditer(flat)}


def _placed(row: _Row, titles: Mapping[str, int]) -> dict[str, str]:
    """Map titles to values: in order if no cell is blank, else by position.

    A blank cell is narrower than its title, so the values after it are too far left: the later title wins a tie.
    """
    values = list(_PLACE.finditer(row.tail))
    if len(values) >= len(titles):
        return dict(zip(titles, (value[0] for value in values), strict=False))
    placed = dict.fromkeys(titles, "")
    for value in values:
        position = value.start() - row.indent
        placed[min(titles, key=lambda title: (abs(titles[title] - position), -titles[title]))] = value[0]
    return placed


def _of_gpus(places: Mapping[str, Mapping[str, str]], title: str) -> dict[str, str]:
    return {name: place[title] for name, place in places.items() if _is_gpu(name) and title in place}


def _legends(lines: Iterable[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the NIC legend, and the names whose line holds no device: drivers print garbage for more than 32 NICs."""
    found = [entry.groups() for line in lines if (entry := _LEGEND.match(line))]
    readable = {name: device for name, device in found if _DEVICE.fullmatch(device)}
    return readable, tuple(name for name, _ in found if name not in readable)
