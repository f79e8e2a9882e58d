"""The channels that NCCL finds, beside those of NCCL's own search: src/graph of 2.27.7, compiled and called.

nccl_channels.csv has its machines, with NVSwitches, two processors and each NIC (`rate` in Gb/s) beneath the PCIe
switch of the GPUs that it serves; and what it found: channels, and GB/s of each inside a node and between nodes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from ncheck.predict.graphs import Machine, Nic, graphs_of
from ncheck.predict.releases import NVLS, RING, TREE, rules_of

ROWS = tuple(csv.DictReader((Path(__file__).parent / "nccl_channels.csv").read_text().splitlines()))
LINKS = {70: 20.0, 80: 20.0, 90: 20.6, 100: 40.1}
PCIE = {3: 12.0, 4: 24.0, 5: 48.0}
RULES = rules_of((2, 27, 7))

# Where its search finds faster ones, or an eighth of the data that goes back weighs more than is counted here:
# (capability, NVLinks, GPUs, NICs).
OTHERS = {("70", "6", "2", "1"), ("90", "6", "4", "0"), ("90", "8", "4", "0"), ("100", "18", "4", "0")}


def machine(row: Mapping[str, str]) -> Machine:
    capability, links, gpus, nics = (int(row[name]) for name in ("capability", "links", "gpus", "nics"))
    pcie = PCIE[int(row["pcie"])]
    cards = tuple(card(number, gpus, nics, min(int(row["rate"]) / 8, pcie)) for number in range(nics))
    nvlink = links * LINKS[capability] if gpus > 1 else 0.0
    return Machine(gpus, capability, nvlink, gpus > 1, pcie, 0.0, "PHB", cards, 22.0)


def card(number: int, gpus: int, nics: int, rate: float) -> Nic:
    """Return a NIC: the GPUs of its switch are near, the others reach it by one of them."""
    first, each, half = number * gpus // nics, gpus // nics, max(1, gpus // 2)
    near = {place for place in range(first, first + each) if place // half == first // half}
    far = ("PHB" if place // half == first // half else "SYS" for place in range(gpus))
    back = tuple("PIX" if place in near else path for place, path in enumerate(far))
    return Nic(rate, tuple("PIX" if place in near else "PXN" for place in range(gpus)), back)


def test_what_nccl_itself_finds() -> None:
    others = set()
    for row in ROWS:
        found = graphs_of(machine(row), RULES, nvls=True)
        for name, algorithm in {"ring": RING, "tree": TREE, "nvls": NVLS}.items():
            graph = found.get(algorithm)
            ours = (graph.channels, graph.inside, graph.between) if graph and graph.channels else (0, 0.0, 0.0)
            theirs = (int(row[name]), float(row[f"{name}_inside"]), float(row[f"{name}_between"]))
            if ours != theirs and int(row[name]):
                others.add((row["capability"], row["links"], row["gpus"], row["nics"]))
    assert others == OTHERS
    assert len(ROWS) == 264
