"""What NCCL chose on machines of others (chosen.toml), beside what is predicted of them.

What a source does not name is assumed: eight NICs of 400 Gb/s, of which each is next to one GPU; Intel's processors;
two interfaces of 10 Gb/s where data goes by sockets (the table that NCCL printed there is that of two). EFA's plug-in
names a latency of 75 us (aws-ofi-nccl, its platforms p5 and p5e). Left out: rows without a known kind of GPU or number
of nodes, several NVLink domains, and one that ran on part of its machine (nccl#1595: its times are those of four GPUs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from ncheck.model.op import Op
from ncheck.predict.cost import Graph, Job, allowed, costs, seconds
from ncheck.predict.graphs import Machine, Nic, channels_of, graphs_of
from ncheck.predict.releases import NVLS, RING, TREE, Algorithm, Rules, rules_of

from tests.ncheck.predict.test_chosen_table import ROWS, sizes

GPUS = {"H100": (90, 370.8), "H200": (90, 370.8), "A100": (80, 240.0), "B200": (100, 721.8), "RTX 5090": (120, 0.0)}
RELEASES = {"2.20 to 2.22": "2.21.5", "2.26 or 2.27.3": "2.26.2", "": "2.27.7"}
OF_A_RANK = {  # these name the bytes of one rank
    "https://github.com/NVIDIA/nccl/issues/1906",
    "a SGLang kernel report (TP4 DP AllGather profiler analysis, 2026-07-22)",
}
OTHER_RANKS = "https://github.com/NVIDIA/nccl/issues/1595"
EVERY = [one.value.lower() for one in Algorithm]


def nics(count: int, gpus: int, rate: float) -> tuple[Nic, ...]:
    """Return NICs that are next to one GPU each; the others reach them by that GPU."""
    near = (number * gpus // count for number in range(count))
    return tuple(Nic(rate, tuple("PIX" if gpu == own else "PXN" for gpu in range(gpus))) for own in near)


def machine(row: Mapping[str, Any]) -> tuple[Machine, Rules] | None:
    """Return a row's machine, None if too little is known of it."""
    gpu = row.get("gpu", "H100" if row.get("gpus") == 8 else "")
    if gpu not in GPUS or "nodes" not in row or row["source"] == OTHER_RANKS:
        return None
    capability, nvlink = GPUS[gpu]
    name = row.get("nccl", "")
    rules = rules_of(tuple(map(int, RELEASES.get(name, name).split("."))))
    cards = nics(8, row["gpus"], 48.0) if row["nodes"] > 1 else ()
    if "sockets" in row.get("network", ""):
        cards = (Nic(1.25, ("PHB",)), Nic(1.25, ("PHB",)))
    switched = row.get("fabric", "nvswitch") == "nvswitch"
    return Machine(row["gpus"], capability, nvlink, switched, 48.0, 0.0, "PHB", cards), rules


def pairs() -> Iterator[tuple[str, str, str]]:
    """Yield the source, what NCCL chose and what is predicted, size by size."""
    for row in ROWS:
        if not row.get("chosen") or (known := machine(row)) is None:
            continue
        own, rules = known
        settings = row.get("environment", {})
        graphs = graphs_of(own, rules, nvls=settings.get("NCCL_NVLS_ENABLE") != "0")
        if "EFA" in row.get("network", ""):
            graphs = {name: replace(graph, latency=75.0) for name, graph in graphs.items()}
        count, _ = channels_of(own, rules, graphs, row["nodes"])
        job = Job(own.gpus * row["nodes"], row["nodes"], own.capability, own.capability, frozenset({"GenuineIntel"}))
        algorithms = [settings["NCCL_ALGO"].lower()] if "NCCL_ALGO" in settings else EVERY
        protocols = [settings["NCCL_PROTO"].lower()] if "NCCL_PROTO" in settings else None
        for one in row["chosen"]:
            found = costs(rules, job, Op(one["op"]), graphs)
            possible = list(allowed(rules, job, graphs, found, algorithms, protocols))
            for size in (size * (own.gpus if row["source"] in OF_A_RANK else 1) for size in sizes(one)):
                times = {which: seconds(rules, job, Op(one["op"]), which, found[which], size, count, 1)
                         for which in possible}  # fmt: skip
                algorithm, protocol = min(times, key=times.__getitem__)
                theirs = f"{one['algo']}/{one.get('proto', protocol.value.lower())}"
                yield row["source"], theirs, f"{algorithm.value}/{protocol.value}".lower()


def test_nine_of_ten_choices_are_predicted() -> None:
    found = list(pairs())
    right = sum(theirs == ours for _, theirs, ours in found)
    assert len(found) >= 200
    assert len({source for source, _, _ in found}) >= 10
    assert right >= 0.9 * len(found), (right, len(found), sorted({one for one in found if one[1] != one[2]}))


def test_the_tables_that_nccl_printed() -> None:
    """Latency and bandwidth of each algorithm and protocol, as NCCL rounds them."""
    checked = 0
    for row in ROWS:
        if not row.get("table") or not row.get("chosen") or (known := machine(row)) is None:
            continue
        own, rules = known
        graphs = graphs_of(own, rules, nvls=True)
        job = Job(own.gpus * row["nodes"], row["nodes"], own.capability, own.capability, frozenset({"GenuineIntel"}))
        for op, algorithms in row["table"].items():
            found = {} if op == "reduce" else costs(rules, job, Op(op), graphs)
            for (algorithm, protocol), cost in found.items():
                if protocol.value.lower() in algorithms.get(algorithm.value.lower(), {}):
                    printed = algorithms[algorithm.value.lower()][protocol.value.lower()]
                    assert [cost.latency, cost.bandwidth] == pytest.approx(printed, abs=0.051), (row["source"], op)
                    checked += 1
    assert checked == 72


def test_the_channels_that_nccl_printed_are_found() -> None:
    """Eight H100s of one node: https://github.com/NVIDIA/nccl/issues/1197, NCCL 2.19.4."""
    printed = next(row["graph"] for row in ROWS if row["source"].endswith("/nccl/issues/1197"))
    theirs = {one["pattern"]: (one["channels"], one["bw_intra"], one["bw_inter"]) for one in printed}
    own = Machine(8, 90, 18 * 20.0, switched=True, pcie=48.0, across=0.0, path="SYS", nics=())
    found = graphs_of(own, rules_of((2, 19, 4)), nvls=True)
    named = {"ring": RING, "tree": TREE, "nvls": NVLS}
    assert {name: shown(found[one]) for name, one in named.items()} == theirs


def test_two_gpus_with_a_nic_each_cross_over() -> None:
    """Two H20s, NCCL_PXN_DISABLE: https://github.com/NVIDIA/nccl/issues/1189."""
    (printed,) = next(row["graph"] for row in ROWS if row["source"].endswith("/nccl/issues/1189"))
    cards = (Nic(50.0, ("PIX", "SYS")), Nic(50.0, ("SYS", "PIX")))
    own = Machine(2, 90, 370.8, switched=True, pcie=48.0, across=0.0, path="SYS", nics=cards)
    found = graphs_of(own, rules_of((2, 20, 5)), nvls=True)[RING]
    assert shown(found) == (printed["channels"], printed["bw_intra"], printed["bw_inter"])
    assert (found.near, found.far) == (printed["intra"], printed["inter"])


def shown(graph: Graph) -> tuple[int, float, float]:
    return graph.channels, graph.inside, graph.between
