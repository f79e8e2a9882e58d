"""How many channels NCCL finds on a node, and how fast it takes each to be.

NCCL searches for paths (source: src/graph/search.cc, ncclTopoCompute). Here the speeds are tried in its order, and how
many channels fit is counted from what they share: a NIC, the PCIe link of a GPU, its NVLinks. That is exact where all
GPUs of a node are connected alike; where they are not, the search may find more or fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck.lazy_dataclass import dataclass
from ncheck.predict.cost import NEAR_TO_FAR, Graph, within
from ncheck.predict.releases import NVLS, NVLS_TREE, PAT, RING, TREE, Algorithm, Rules


@dataclass(frozen=True)
class Nic:
    """One HCA port as NCCL sees it: `rate` in GB/s, its PCIe link included; `near`: the path to it from each GPU in
    use, as in NEAR_TO_FAR; `back`: the path from it to each, which is never by another GPU, where that differs.
    """

    rate: float
    near: tuple[str, ...]
    back: tuple[str, ...] = ()


@dataclass(frozen=True)
class Machine:
    """One node as NCCL's search sees it.

    `gpus` in use; `capability` of the oldest (90: 9.0). GB/s: `nvlink` of all NVLinks of a GPU, 0 where they do not
    join all; `switched`: they lead to NVSwitches; `pcie` of a GPU's PCIe link; `across`: what the slowest hop of a ring
    carries where there is no NVLink, which is then by `path`; `processors`: between two of them, 0 if it is unknown.
    `intel`: the host bridges are those of Intel's processors, of which NCCL counts less.
    """

    gpus: int
    capability: int
    nvlink: float
    switched: bool
    pcie: float
    across: float
    path: str
    nics: tuple[Nic, ...]
    processors: float = 0.0
    intel: bool = True


Size = tuple[int, int]  # channels: the fewest and the most


@dataclass(frozen=True)
class _Try:
    """One attempt of the search: a speed inside and between nodes, the farthest path to a NIC, whether a channel may
    leave by another NIC than it came by, and whether one GPU does all that a tree sends over the network.
    """

    inside: float
    between: float
    far: str = "PIX"
    crossing: bool = False
    chain: bool = False


def graphs_of(machine: Machine, rules: Rules, *, nvls: bool) -> Mapping[Algorithm, Graph]:
    """Return what the search finds for each algorithm; `nvls`: NVLS is not turned off."""
    most = rules.most_channels // 2
    ring = _found(machine, rules, RING, (1, most))
    tree = _found(machine, rules, TREE, (ring.channels, ring.channels))
    found = {RING: ring, TREE: tree, PAT: tree}
    if nvls and machine.switched and machine.capability >= 90:  # noqa: PLR2004  Hopper has the first such switches
        count = min(machine.gpus, _MOST_HEADS)
        heads = _found(machine, rules, NVLS, (1 if machine.nics else count, count))
        found |= {NVLS: heads, NVLS_TREE: heads}
    return found


# NCCL found no path, and falls back to one slow channel in the order of the GPUs.
NOTHING = Graph(1, 0.1, 0.1, "SYS", "SYS")

_MOST_HEADS = 32  # GPUs that pull data from the switches, each by a channel


def _found(machine: Machine, rules: Rules, algorithm: Algorithm, size: Size) -> Graph:
    graph = _first_pass(machine, rules, algorithm, size)
    if not graph.channels:
        if algorithm is NVLS:
            return graph
        return NOTHING
    doubled_first = rules.since >= (2, 19)
    if doubled_first:
        graph = _doubled(machine, graph, algorithm, size[1])
    graph = _second_pass(machine, rules, algorithm, graph)
    return graph if doubled_first else _doubled(machine, graph, algorithm, size[1])


def _speeds(machine: Machine, rules: Rules) -> tuple[float, ...]:
    table = rules.between if machine.nics else rules.inside
    row = 2 if machine.capability >= 100 else 1 if machine.capability >= 90 else 0  # noqa: PLR2004
    return table[min(row, len(table) - 1)]


def _fastest(machine: Machine) -> float:
    """Return the most that one channel can have, in GB/s."""
    if machine.nics:
        return max(min(nic.rate, machine.pcie) for nic in machine.nics)
    return machine.nvlink or machine.across


def _first_pass(machine: Machine, rules: Rules, algorithm: Algorithm, size: Size) -> Graph:
    """Try lower and lower speeds, until half of the first one that worked."""
    speeds, best = _speeds(machine, rules), Graph(0, 0, 0)
    total = max(machine.nvlink, machine.pcie)
    room = total * machine.gpus / (machine.gpus - 1) if machine.gpus > 1 and algorithm is not RING else total
    start = next(
        (
            place for place, speed in enumerate(speeds)
            if speed <= _fastest(machine) and speed * size[0] <= room
        ),
        len(speeds) - 1,
    )  # fmt: skip
    for speed in speeds[start:]:
        if best.channels and speed / best.between <= 0.49:  # noqa: PLR2004
            break
        for attempt in _attempts(machine, rules, algorithm, speed):
            graph = _graph(machine, algorithm, attempt, size)
            if graph.channels >= size[0] and _better(algorithm, graph, best):
                best = graph
            if best.channels == size[1] or best.channels * best.between >= total:
                return best
    return best


def _attempts(machine: Machine, rules: Rules, algorithm: Algorithm, speed: float) -> Iterator[_Try]:
    if not machine.nics:
        yield _Try(speed, speed)
        return
    levels = {path for nic in machine.nics for path in nic.near} | {"PIX"}
    if rules.since < (2, 25):  # since then NCCL ends its search at the farthest path that a GPU has to a NIC
        levels |= {path for nic in machine.nics for path in nic.back}
    ordered = sorted(levels, key=NEAR_TO_FAR.index)
    for crossing in (False, True) if algorithm in (RING, TREE) and len(machine.nics) > 1 else (False,):
        for far in ordered:
            yield _Try(speed, speed, far, crossing)
            if algorithm is TREE and machine.capability >= 90:  # noqa: PLR2004
                yield _Try(speed, speed, far, crossing, chain=True)


def _better(algorithm: Algorithm, graph: Graph, best: Graph) -> bool:
    if algorithm is NVLS and graph.channels > best.channels:
        return True
    if algorithm is NVLS:
        return graph.channels * graph.between > best.channels * best.between
    return graph.channels * graph.inside > best.channels * best.inside


def _graph(machine: Machine, algorithm: Algorithm, attempt: _Try, size: Size) -> Graph:
    near = "NVL" if machine.nvlink else "LOC" if machine.gpus == 1 else machine.path
    chain = machine.gpus == 1 or attempt.chain
    count = min(size[1], _over_nics(machine, algorithm, attempt), _inside(machine, algorithm, attempt, size[1]))
    if attempt.crossing and count > 1:
        count -= count % 2  # such channels come in pairs
    return Graph(count, attempt.inside, attempt.between, near, attempt.far if machine.nics else "PIX", chain=chain)


def _over_nics(machine: Machine, algorithm: Algorithm, attempt: _Try) -> int:
    """Return how many channels the NICs carry."""
    if not machine.nics:
        return 2**30
    total, heads = 0, set[int]()
    for nic in machine.nics:
        near = [place for place in range(machine.gpus) if _reaches(machine, nic, place, attempt)]
        both = [place for place in near if not nic.back or within(nic.back[place], attempt.far)]
        carried = int(nic.rate / attempt.between + 1e-6)
        if algorithm is NVLS:
            head = next((place for place in near if place not in heads), None)
            if head is not None and carried:
                heads.add(head)
                total += 1
        elif len(both if algorithm is TREE else near) >= (ends := _ends(machine, algorithm, attempt)):
            buses = [_bus(machine, nic.near[place]) for place in near if nic.near[place] != "PXN"]
            if sum(nic.near[place] != "SYS" for place in near) < ends:
                carried = min(carried, int(machine.processors / attempt.between + 1e-6))
            total += min(carried, sum(int(bus / attempt.between + 1e-6) for bus in buses))
    return total


def _reaches(machine: Machine, nic: Nic, place: int, attempt: _Try) -> bool:
    path = nic.near[place]
    most = machine.processors if path == "SYS" else _bus(machine, path)
    return within(path, attempt.far) and attempt.between <= most + 1e-6


def _ends(machine: Machine, algorithm: Algorithm, attempt: _Try) -> int:
    """Return how many GPUs must reach a NIC: a channel begins at one and ends at another, and so does a tree."""
    if machine.gpus == 1 or attempt.chain or (attempt.crossing and algorithm is RING):
        return 1
    return 2


def _bus(machine: Machine, path: str) -> float:
    """Return what NCCL counts of a GPU's PCIe link to a NIC by this path.

    Intel's host bridges make smaller packets; to a GPU before Ampere an eighth of the data goes back.
    """
    alone = machine.gpus == 1 or 2 * len(machine.nics) > machine.gpus
    return (
        machine.pcie * (5 / 6 if path == "PHB" and machine.intel else 1)
        * (8 / 9 if machine.capability < 80 and alone else 1)  # noqa: PLR2004
    )  # fmt: skip


def _inside(machine: Machine, algorithm: Algorithm, attempt: _Try, most: int) -> int:
    """Return how many channels the links between the GPUs carry."""
    if machine.gpus == 1:
        return 2**30
    if algorithm is NVLS:  # a GPU gives its data to each head, and twice to itself
        return max(0, int(machine.nvlink / attempt.inside + 1e-6) - 1)
    if not machine.nvlink:
        return int(machine.across / attempt.inside + 1e-6)
    relayed = any("PXN" in nic.near for nic in machine.nics) and within("PXN", attempt.far)
    by_others = relayed and not attempt.crossing and not attempt.chain
    for count in range(min(most, int(2 * machine.nvlink / attempt.inside) + 1), 0, -1):
        pair = algorithm is TREE and machine.gpus == 2  # noqa: PLR2004  of two GPUs every other chain goes back
        ends = count // machine.gpus if machine.nics or pair else 0
        load = (count - ends) * attempt.inside
        if by_others:
            load += ends * attempt.between * (0.5 if algorithm is TREE else 1)
        if load <= machine.nvlink + 1e-6:
            return count
    return 0


def _doubled(machine: Machine, graph: Graph, algorithm: Algorithm, most: int) -> Graph:
    """Return twice as many channels of half the speed, where few are fast: one multiprocessor drives one channel."""
    few = machine.capability <= 80 or graph.inside >= 50 or graph.channels <= 4  # noqa: PLR2004
    if algorithm is NVLS or graph.inside < 25 or not few:  # noqa: PLR2004
        return graph
    count = min(2 * graph.channels, most)
    part = -(-count // graph.channels)
    return Graph(
        count, graph.inside / part, graph.between / part, graph.near, graph.far, graph.same, graph.chain
    )  # fmt: skip


def _second_pass(machine: Machine, rules: Rules, algorithm: Algorithm, graph: Graph) -> Graph:
    """Try whether as many channels can be faster: rings in all, trees inside the node, NVLS between nodes."""
    higher = [speed for speed in _speeds(machine, rules) if speed > graph.between]
    size = graph.channels, graph.channels
    for speed in reversed(higher):
        if algorithm is RING:
            attempts = list(_attempts(machine, rules, algorithm, speed)) if rules.since >= (2, 19) else []
        elif algorithm is NVLS:
            if rules.since < (2, 19) or graph.between >= 2 * graph.inside:
                break
            attempts = [_Try(graph.inside, speed, graph.far)]
        elif graph.inside >= 2 * graph.between:
            break
        else:
            attempts = [_Try(speed, graph.between, graph.far, crossing, graph.chain) for crossing in (False, True)]
        found = [one for attempt in attempts if (one := _graph(machine, algorithm, attempt, size)).channels == size[0]]
        if found:
            graph = found[0]
        elif algorithm is not RING:
            break
    return graph


def channels_of(machine: Machine, rules: Rules, graphs: Mapping[Algorithm, Graph], nodes: int) -> tuple[int, int]:
    """Return how many channels a communicator has, and how many of them NVLS uses (source: src/graph/connect.cc)."""
    count = min(rules.most_channels, 2 * min(graphs[RING].channels, graphs[TREE].channels))
    hopper = machine.capability >= 90 if rules.since >= (2, 27) else machine.capability == 90  # noqa: PLR2004
    if hopper and nodes > 1 and graphs[RING].inside > 45 and count < 16:  # noqa: PLR2004
        count *= 2
    if NVLS not in graphs or not graphs[NVLS].channels:
        return count, 0
    of_nvls = 16
    if machine.capability >= 100 and rules.since >= (2, 25):  # noqa: PLR2004
        of_nvls = 24 if nodes == 1 and rules.since >= (2, 27) else 32
    return max(count, of_nvls), of_nvls
