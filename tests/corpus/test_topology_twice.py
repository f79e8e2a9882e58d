"""Each real matrix once more, from a PCI bus that is laid as the matrix says: both sources are held to one answer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from ncheck.facts.topology import TopologyFacts
from ncheck.model.evidence import Reply, Status
from ncheck.parse.topology_matrix import RANK, Matrix, parse_topology

from tests.boards import GPU, SWITCH, Board, Device, asked, compile_driver, topology_of

_FIRST_UNNUMBERED = 100  # of NUMA nodes
_MOST_LINKS = 18
# Here nvidia-smi says SYS of devices that have one NUMA node: its own idea of a processor is not that of the kernel.
_SYS_WITHIN_A_NODE = {"020", "041", "049", "053", "055"}
FOLDER = Path(os.environ["NCHECK_CORPUS"]) / "topo"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler to make a library with")
    return compile_driver(tmp_path_factory.mktemp("driver"))


def groups(names: Sequence[str], near: Callable[[str, str], bool]) -> dict[str, int]:
    """Return the number of each name's group: those that a chain of near pairs connects."""
    number = {name: place for place, name in enumerate(names)}
    for one in names:
        for other in names:
            if near(one, other):
                joined, kept = number[other], number[one]
                number = {name: kept if group == joined else group for name, group in number.items()}
    return number


def board_of(matrix: Matrix) -> Board:
    """Return a board whose devices lie as near to each other as the matrix says."""
    names = (*matrix.gpus, *matrix.nics)
    numa = matrix.numa_affinity

    def within(level: str) -> dict[str, int]:
        return groups(names, lambda one, other: RANK.get(matrix.pairs.get((one, other), ""), 9) <= RANK[level])

    def joined(one: str, other: str) -> bool:
        same = numa.get(one, "") == numa.get(other, "") and numa.get(one, "").isdigit()
        return same or RANK.get(matrix.pairs.get((one, other), ""), 9) <= RANK["NODE"]

    sockets, roots, trees, switches = groups(names, joined), within("PHB"), within("PXB"), within("PIX")
    of_socket = {sockets[gpu]: number for gpu, number in numa.items() if number.isdigit()}

    def device(place: int, name: str) -> Device:
        root, tree, switch = f"{roots[name] + 16:04x}", trees[name], switches[name]

        def bridge(level: int, number: int) -> str:
            return f"{root}:{level:02x}:{number % 32:02x}.{number // 32}"

        upper, lower = (bridge(1, tree), bridge(2, tree)), (bridge(3, switch), bridge(4, switch), bridge(5, place))
        where = of_socket.get(sockets[name], _FIRST_UNNUMBERED + sockets[name])
        cpus = matrix.cpu_affinity.get(name) or ""
        return Device(f"{root}:{place + 16:02x}:00.0", (f"pci{root}:00", *upper, *lower), int(where), cpus)

    devices = {name: device(place, name) for place, name in enumerate(names)}
    links = {gpu: links_of(matrix, gpu) for gpu in matrix.gpus}
    nics = {f"mlx5_{place}": devices[nic] for place, nic in enumerate(matrix.nics)}
    return Board({gpu: devices[gpu] for gpu in matrix.gpus}, nics, links)


def links_of(matrix: Matrix, gpu: str) -> list[tuple[int, int, str]]:
    """Return the links to each GPU; more than a GPU has lead to switches."""
    bonded = {other: int(matrix.pairs[gpu, other][2:]) for other in matrix.gpus if matrix.pairs[gpu, other][:2] == "NV"}
    if sum(bonded.values()) > _MOST_LINKS:
        return [(1, SWITCH, "-")] * max(bonded.values())
    return [(1, GPU, other) for other, many in bonded.items() for _ in range(many)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_computed_matrix_is_the_printed_one(path: Path, tmp_path: Path, driver: Path) -> None:
    matrix, _ = parse_topology(path.read_text("utf-8", "replace"))
    board = board_of(matrix)
    bus, links = asked(board.lay(tmp_path), driver)
    computed = topology_of(board, bus, links, Reply(Status.MISSING))
    assert isinstance(computed, TopologyFacts)
    names = dict(zip((*board.gpus, *board.nics), (*matrix.gpus, *matrix.nics), strict=True))
    pairs = {(names[one], names[other]): level for (one, other), level in computed.pairs.items()}
    differing = {
        (level, pairs[pair]) for pair, level in matrix.pairs.items() if pairs[pair] != level.replace("SOC", "SYS")
    }
    assert differing == ({("SYS", "NODE")} if path.stem in _SYS_WITHIN_A_NODE else set())
