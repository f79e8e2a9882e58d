"""A node drawn from its matrix: NUMA nodes, what shares a PCIe switch or host bridge, NVLinks and rails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ncheck.model.board import Board, Domain
from ncheck.parse.topology_matrix import RANK, Matrix, closest_nics
from ncheck.topology.judgement import in_words, worst_hop


def drawing(matrix: Matrix) -> tuple[str, ...]:
    """Return the drawing as lines of text."""
    return tuple(_lines(board(matrix)))


def _lines(one: Board) -> Iterator[str]:
    if one.unplaced:
        yield f"place on the PCIe bus not shown: {', '.join(one.unplaced)}"
    for domain in one.domains:
        yield domain.title
        for bridge in domain.bridges:
            yield "  host bridge"
            for switch in bridge:
                yield f"    {'PCIe switch' if len(switch) > 1 else 'directly'}: {', '.join(switch)}"
        if domain.alone:
            yield f"  no device near: {', '.join(domain.alone)}"
    yield from one.nvlinks
    yield from (f"rail: {rail}" for rail in one.rails)


def board(matrix: Matrix) -> Board:
    """Return how the devices lie."""
    devices = (*matrix.gpus, *matrix.nics)
    sockets = _groups(devices, lambda one, other: _same_socket(matrix, one, other))
    unplaced = [group[0] for group in sockets if len(group) == 1 and not matrix.cpu_affinity.get(group[0])]
    return Board(
        domains=tuple(_domain(matrix, group) for group in sockets if group[0] not in unplaced),
        unplaced=_named(matrix, unplaced),
        nvlinks=tuple(_nvlinks(matrix)),
        rails=tuple(_rails(matrix)),
        worst_hop=in_words(level) if (level := worst_hop(matrix)) else "",
        matrix=tuple(_table(matrix)),
    )


def _table(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    """Yield the matrix with the names of devices in it, so that it needs no legend."""
    devices = (*matrix.gpus, *matrix.nics)
    places = {"CPU Affinity": matrix.cpu_affinity, "NUMA Affinity": matrix.numa_affinity}
    names = [matrix.legend.get(device, device) for device in devices]
    yield ("", *names, *places)
    for name, device in zip(names, devices, strict=True):
        paths = ["X" if device == other else matrix.pairs.get((device, other), "") for other in devices]
        yield (name, *paths, *(place.get(device, "") for place in places.values()))


def _domain(matrix: Matrix, devices: Sequence[str]) -> Domain:
    bridges = _groups(devices, lambda one, other: _rank(matrix, one, other) <= RANK["PHB"])
    return Domain(
        _title(matrix, devices),
        tuple(_switches(matrix, bridge) for bridge in bridges if len(bridge) > 1),
        _named(matrix, [bridge[0] for bridge in bridges if len(bridge) == 1]),
    )


def _switches(matrix: Matrix, devices: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    groups = _groups(devices, lambda one, other: _rank(matrix, one, other) <= RANK["PXB"])
    return tuple(_named(matrix, group) for group in groups)


def _same_socket(matrix: Matrix, one: str, other: str) -> bool:
    """Return whether a path within a NUMA node, or one CPU affinity, joins two devices: NVLink hides the PCIe path."""
    places = [matrix.cpu_affinity.get(device, "") for device in (one, other)]
    return _rank(matrix, one, other) <= RANK["NODE"] or (places[0] == places[1] and places[0] not in ("", "N/A"))


def _title(matrix: Matrix, devices: Sequence[str]) -> str:
    numas = sorted({matrix.numa_affinity.get(gpu, "") for gpu in devices} - {"", "N/A"})
    cpus = sorted({matrix.cpu_affinity.get(gpu, "") for gpu in devices} - {"", "N/A"})
    title = f"NUMA node {', '.join(numas)}" if numas else "NUMA node not shown"
    return f"{title}: CPUs {' and '.join(cpus)}" if cpus else title


def _groups(devices: Sequence[str], near: Callable[[str, str], bool]) -> list[list[str]]:
    """Return the devices in groups: those that a chain of near pairs connects."""
    groups: list[list[str]] = []
    for device in devices:
        joined = [group for group in groups if any(near(device, other) for other in group)]
        merged = [other for group in joined for other in group] + [device]
        groups = [group for group in groups if group not in joined] + [merged]
    return sorted((sorted(group, key=devices.index) for group in groups), key=lambda group: devices.index(group[0]))


def _rank(matrix: Matrix, one: str, other: str) -> int:
    return RANK.get(matrix.pairs.get((one, other), ""), _UNKNOWN)


_UNKNOWN = 9


def _named(matrix: Matrix, devices: Sequence[str]) -> tuple[str, ...]:
    """Return the names as people know them: "GPU0", "NIC0 (mlx5_0)"."""
    return tuple(f"{one} ({name})" if (name := matrix.legend.get(one)) else one for one in devices)


def _nvlinks(matrix: Matrix) -> Iterator[str]:
    links: dict[str, list[str]] = {}
    for number, gpu in enumerate(matrix.gpus):
        for other in matrix.gpus[number + 1 :]:
            level = matrix.pairs.get((gpu, other), "")
            if level.startswith("NV"):
                links.setdefault(level, []).append(f"{gpu}-{other}")
    pairs = len(matrix.gpus) * (len(matrix.gpus) - 1) // 2
    for level, found in sorted(links.items(), key=lambda item: -int(item[0][2:])):
        shown = f"every two of {len(matrix.gpus)} GPUs" if len(found) == pairs else ", ".join(found)
        yield f"NVLink {level}: {shown}"


def _rails(matrix: Matrix) -> Iterator[str]:
    for gpu in matrix.gpus:
        nics, level = closest_nics(matrix, gpu)
        if nics:
            more = f" and {len(nics) - _SHOWN} more" if len(nics) > _SHOWN else ""
            yield f"{gpu} -> {', '.join(_named(matrix, nics[:_SHOWN]))}{more} ({level})"


_SHOWN = 4
