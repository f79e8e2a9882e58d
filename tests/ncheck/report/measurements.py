"""Reports of what was measured, by hand: a healthy cluster, one with a slow node, one that failed, and CPUs alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from ncheck.model.report import Measurement, NcclChoice, Pair, Point, Probe, Protocol, Report, Standing, Traffic
from ncheck.probe.node_result import Method
from ncheck.probe.standing import of_share, with_shares

MIB = 2**20
NODES = tuple(f"gpu{number:02d}" for number in range(1, 5))
BY = "NCCL 2.21.5"
RAMP = {1: 4.1, 4: 16.2, 16: 61.0, 64: 148.0, 256: 268.0, 512: 331.0, 1024: 381.4}
LIMIT = "the 8 x 400 Gb/s NICs"
CALM = Protocol("median", 5, 2, 20, wanted=5, spread=0.012)
HURRIED = Protocol("median", 3, 2, wanted=5, spread=0.31)


def curve(ramp: dict[int, float], world: int = 32, wrong: int = 0) -> tuple[Point, ...]:
    """Return the points of a curve, out of place and in place, from MiB and GB/s."""
    factor = 2 * (world - 1) / world
    return tuple(
        Point(size * MIB, in_place, size * MIB * factor / busbw / 1e9, busbw / factor, busbw, wrong)
        for size, busbw in ramp.items()
        for in_place in (False, True)
    )


def judged(one: Measurement) -> Measurement:
    """Return a measurement with the standing that its share of the expectation gives it."""
    return replace(one, standing=Standing.FAILED if one.failed else of_share(one.ratio, Method.NCCL))


def pair(nodes: tuple[str, str], busbw: float | None, usual: float = 48.0) -> Pair:
    """Return a pair with the standing that its share of the usual bandwidth gives it."""
    return Pair(nodes, busbw, Standing.FAILED if busbw is None else of_share(busbw / usual, Method.NCCL))


def everywhere(busbw: float = 381.4, **others: object) -> Measurement:
    ramp = {size: value * busbw / 381.4 for size, value in RAMP.items()}
    made = Measurement(
        "all-reduce on 4 nodes", busbw, 400.0, "GB/s", LIMIT, NODES, BY, "all", 32, curve=curve(ramp), efficiency=0.98,
        protocol=CALM,
    )  # fmt: skip
    return judged(replace(made, **others))  # type: ignore[arg-type]


def inside() -> Measurement:
    made = Measurement(
        "all-reduce inside the node", 471.0, 490.0, "GB/s", "NVLink SHARP of 18 links", NODES, BY, "inside", 8
    )
    return judged(replace(made, protocol=replace(CALM, spread=0.04)))


def between(name: str, busbw: float, *nodes: str) -> Measurement:
    what = "all-reduce between two nodes, one rank each" + (f": {name}" if name else "")
    return judged(Measurement(what, busbw, 50.0, "GB/s", "one 400 Gb/s NIC", nodes, BY, "pair", 2))


def scaling(busbw: float = 468.0) -> Measurement:
    return judged(Measurement("all-reduce on 2 nodes", busbw, 490.0, "GB/s", LIMIT, NODES[:2], BY, "scaling", 16))


def traffic(nodes: tuple[str, ...] = NODES) -> tuple[Traffic, ...]:
    hcas = [
        Traffic(node, f"mlx5_{n}:1", 61_200_000_000, 61_200_000_000, planned=True) for node in nodes for n in range(8)
    ]
    return (*hcas, *(Traffic(node, "eno1", 4_100_000, 5_000_000, planned=False) for node in nodes))


def probe(pairs: tuple[Pair, ...], carried: tuple[Traffic, ...], means: str = "nccl", by: str = BY) -> Probe:
    reason = f"all-reduce by {by}, started by ncheck"
    return Probe(
        ran=True,
        reason=reason,
        means=means,
        launcher="agents",
        version=by.split()[1],
        rounds=5,
        pairs=pairs,
        traffic=with_shares(carried, together=True),
    )


CHOICES = (
    NcclChoice("all-reduce", 2**20, "Tree", "LL128", 1, 8), NcclChoice("all-reduce", 2**28, "Ring", "Simple", 16, 8),
    NcclChoice("all-reduce", 2**30, "Ring", "Simple", 16, 8),
)  # fmt: skip


def healthy(report: Report) -> Report:
    pairs = tuple(pair(two, 47.6 + place / 5) for place, two in enumerate(combinations(NODES, 2)))
    told = (inside(), between("6 pairs of nodes with about the same result", 48.1, *NODES), scaling(), everywhere())
    return replace(report, measurements=told, probe=replace(probe(pairs, traffic()), choices=CHOICES))


def slow_node(report: Report) -> Report:
    """Return a report in which gpu03 is slow with everybody, and one of its rails carried nothing."""
    pairs = tuple(pair(two, 21.4 if "gpu03" in two else 48.0) for two in combinations(NODES, 2))
    lowered = ("7 of 8 rails on gpu03",)
    told = (
        inside(), between("the best of 6 pairs of nodes", 48.0, *NODES[:2]),
        between("the middle of 6 pairs of nodes", 48.0, "gpu01", "gpu04"),
        between("the worst of 6 pairs of nodes", 21.4, *NODES[2:]), scaling(),
        everywhere(212.0, expected=350.0, lowered_by=lowered, efficiency=0.62, protocol=HURRIED),
    )  # fmt: skip
    carried = tuple(
        replace(one, sent=0, received=0) if (one.node, one.device) == ("gpu03", "mlx5_5:1") else one
        for one in traffic()
    )
    return replace(report, measurements=told, probe=probe(pairs, carried))


def broken(report: Report) -> Report:
    """Return a report in which the nodes are well by themselves, one pair fails, and all of them never start."""
    why = "gpu[01-02,04]: its time was over in init; gpu03: NET/IB : Unable to open device mlx5_3 in init"
    failed = everywhere(measured=None, curve=(), failed=why, protocol=None)
    pairs = (pair(("gpu01", "gpu02"), 48.0), pair(("gpu03", "gpu04"), None))
    lost = judged(replace(between("", 1.0, "gpu03", "gpu04"), measured=None, failed=why))
    return replace(report, measurements=(inside(), between("", 48.0, *NODES[:2]), lost, failed), probe=probe(pairs, ()))


def cpus(report: Report) -> Report:
    """Return a report of nodes without GPUs: gloo, nothing to expect, and some results wrong."""
    by = "torch 2.13.0 gloo on CPUs"
    one = everywhere(
        1.1, expected=None, efficiency=None, limited_by="", by=by, ranks=4, protocol=None,
        unknown=("what gloo gives on CPUs",),
        curve=curve({1: 0.4, 16: 0.9, 64: 1.1}, 4, wrong=12),
    )  # fmt: skip
    sent = tuple(Traffic(node, "eno1", 1_900_000_000, 1_900_000_000, planned=True) for node in NODES)
    return replace(report, measurements=(one,), probe=probe((), sent, "gloo", by))


def many(report: Report) -> Report:
    """Return a report of 64 nodes and a few of their pairs, of which one node is slow."""
    nodes = tuple(f"node{number:02d}" for number in range(1, 65))
    met = [(a, nodes[(place + step) % 64]) for step in (1, 2, 5) for place, a in enumerate(nodes)]
    pairs = tuple(pair(two, 12.0 if "node07" in two else 48.0) for two in met)
    return replace(
        report,
        measurements=(everywhere(what="all-reduce on 64 nodes", efficiency=None, nodes=nodes, ranks=512),),
        probe=probe(pairs, traffic(nodes)),
    )


def two_operations(report: Report) -> Report:
    """Return the healthy report with an all-to-all, in which one pair is slow and more nodes keep too little."""
    well = healthy(report)
    swapped = tuple(
        replace(pair(two, 30.0 if two == ("gpu02", "gpu03") else 48.0), op="all-to-all")
        for two in combinations(NODES, 2)
    )
    told = tuple(
        replace(one, op="all-to-all", what=one.what.replace("all-reduce", "all-to-all"))
        for one in (
            between("the best of 6 pairs of nodes", 48.0, *NODES[:2]),
            between("the worst of 6 pairs of nodes", 30.0, *NODES[1:3]),
            replace(scaling(), expected=65.0, measured=64.0), everywhere(40.0, expected=54.9, efficiency=0.74),
        )
    )  # fmt: skip
    pairs = (*well.probe.pairs, *swapped)
    gathered = NcclChoice("all-gather", 2**30, "Ring", "Simple", 16)
    reason = f"all-reduce and all-to-all by {BY}, started by ncheck"
    how = replace(well.probe, pairs=pairs, choices=(*CHOICES, gathered), reason=reason)
    return replace(well, measurements=(*well.measurements, *told), probe=how)


MEASURED = {made.__name__: made for made in (healthy, slow_node, broken, cpus, many, two_operations)}
