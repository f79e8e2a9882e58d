"""Links that work and lose packets: which node or pair of nodes they have in common.

A path counts if it loses packets when it is measured again with nothing else on the node's wire. One that lost none
while others of the same node did is no proof of health: 256 KiB are few packets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.network.link_faults import subnets_tried
from ncheck.network.link_matrix import CONNECT, Fold, Known, Path, PathMatrix, Shape, folded

LEAST = 0.02  # share of the segments that must be lost: TCP slows down to a fraction, and no sound cable does that
ECHO = 0.25  # share of the loss in the other direction: with lost acknowledgements TCP sends some segments needlessly


@dataclass(frozen=True)
class Lossy:
    """Nodes whose links lose packets in a subnet. `everywhere`: no link is better, so no node is at fault."""

    subnet: str
    nodes: tuple[str, ...]
    summary: str
    evidence: tuple[str, ...]
    everywhere: bool


def lossy(known: Known) -> Iterator[Lossy]:
    """Yield the faults of every subnet."""
    for subnet in subnets_tried(known):
        net = PathMatrix(known, subnet, known, CONNECT)
        rates = _rates(net)
        if not rates:  # a thousand nodes have a million good paths
            continue
        alike = _shared_ends(rates)
        sound = frozenset(path for path in net.good if path not in rates and not _suspect(path, alike))
        for found in folded(net.endpoints, frozenset(rates), sound, net.asked):
            yield _lossy_paths(net, found, rates)


def _rates(net: PathMatrix) -> dict[Path, tuple[int, int]]:
    """Return the segments that were lost, and sent, on each path that loses too many.

    It did so when it was measured alone; or only before, and a path that did so alone begins or ends at the same node.
    """
    sure, before = _counts(net, alone=True), _counts(net, alone=False)
    alike = [{path[side] for path in sure} for side in (0, 1)]
    more = {path: counts for path, counts in before.items() if path[0] in alike[0] or path[1] in alike[1]}
    return {**more, **sure}


def _counts(net: PathMatrix, *, alone: bool) -> dict[Path, tuple[int, int]]:
    """Return the segments that were lost, and sent, on each path that lost too many in these measurements."""
    found: dict[Path, tuple[int, int]] = {}
    for node, facts in net.heard.items():
        for loss in facts.losses:
            if (loss.subnet, loss.alone) == (net.subnet, alone) and loss.target in net.heard and loss.target != node:
                there = net.endpoint(node, loss.source), net.endpoint(loss.target, loss.address)
                counts = {there: (loss.lost_there, loss.sent_there), there[::-1]: (loss.lost_back, loss.sent_back)}
                for path, (lost, sent) in counts.items():
                    earlier = found.get(path, (0, 0))
                    found[path] = (earlier[0] + lost, earlier[1] + sent)
    rates = {path: lost / sent for path, (lost, sent) in found.items() if sent}
    known = net.endpoints.keys()  # a node may say anything of addresses that nobody has
    return {
        path: found[path]
        for path, rate in rates.items()
        if known >= set(path) and rate > max(LEAST, ECHO * rates.get(path[::-1], 0.0))
    }


def _shared_ends(paths: dict[Path, tuple[int, int]]) -> frozenset[tuple[int, str]]:
    """Return what several paths have in common: (0, where they begin) or (1, where they end)."""
    ends = Counter((side, path[side]) for path in paths for side in (0, 1))
    return frozenset(end for end, count in ends.items() if count > 1)


def _suspect(path: Path, alike: frozenset[tuple[int, str]]) -> bool:
    return (0, path[0]) in alike or (1, path[1]) in alike


def _lossy_paths(net: PathMatrix, found: Fold, rates: dict[Path, tuple[int, int]]) -> Lossy:
    lost, sent = (sum(rates[path][part] for path in found.paths) for part in (0, 1))
    where = f"on {net.subnet}" if net.subnet else "across the routers"
    left, right = fold(found.left), fold(found.right)
    summary = _SENTENCES[found.shape].format(left=left, right=right, on=where)
    return Lossy(
        net.subnet,
        tuple(dict.fromkeys(net.endpoints[end] for end in found.blamed)),
        f"{summary}: {100 * lost / sent:.2g} % of {sent}",
        tuple(f"{path[0]} to {path[1]}: {rates[path][0]} of {rates[path][1]} lost" for path in sorted(found.paths)),
        everywhere=found.shape is Shape.NOBODY,
    )


_SENTENCES = {
    Shape.NOBODY: "packets are lost {on} between all nodes",
    Shape.CUT_OFF: "packets from and to {left} are lost {on}",
    Shape.UNREACHED: "packets to {left} are lost {on}",
    Shape.MUTE: "packets from {left} are lost {on}",
    Shape.PARTS: "packets between {left} and {right} are lost {on}, in both directions",
    Shape.ONE_WAY: "packets from {left} to {right} are lost {on}, but not from {right} to {left}",
    Shape.FORTH: "packets from {left} to {right} are lost {on}",
}
