"""What others published, beside the model: a healthy system is ok, and what its source calls bad is low."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.model.op import Op
from ncheck.model.report import Standing
from ncheck.probe.expected import expected
from ncheck.probe.links.hardware import NodeHardware
from ncheck.probe.node_result import Stage
from ncheck.probe.results import Collective
from ncheck.probe.standing import of_share

from tests.ncheck.probe.machines import (
    A100,
    A100_PCIE,
    AMD,
    B200,
    CUBE,
    GIB,
    H100,
    H200,
    SAPPHIRE_RAPIDS,
    V100,
    at_half,
    board,
    bus,
    in_domain,
    places,
    rails,
    ran,
    wired,
    with_rails,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROWS = tomllib.loads((Path(__file__).parent / "published.toml").read_text())["row"]
BRIDGES = {(0, 1): "NV12", (2, 3): "NV12", (4, 5): "NV12", (6, 7): "NV12"}
NEAR = {(one, other): "NODE" for half in (0, 4) for one in range(half, half + 4) for other in range(one + 1, half + 4)}
RTX = "NVIDIA GeForce RTX 5090"
BOARDS = {
    "4 V100": board(V100, 4, "NV2"),
    "8 V100": board(V100, 8, "SYS", {pair: f"NV{links}" for pair, links in CUBE.items()}),
    "8 A100": board(A100, 8, "NV12"),
    "8 H100": board(H100, 8),
    "4 H100": board(H100, 4, "NV6"),
    "8 H200": board(H200, 8),
    "8 H20": board("NVIDIA H20", 8),
    "8 H800": board("NVIDIA H800", 8, "NV8"),
    "8 B200": board(B200, 8),
    "4 GB200": board("NVIDIA GB200", 4),
    "4 GB300": board("NVIDIA GB300", 4),
    "4 GH200": board("NVIDIA GH200 120GB", 4, "NV6"),
    "4 RTX 5090": board(RTX, 4, "NODE", pcie=bus(4, 5, SAPPHIRE_RAPIDS)),
    "8 RTX 5090": board(RTX, 8, "SYS", NEAR, bus(8, 5, SAPPHIRE_RAPIDS)),
    "2 A100 PCIe": board(A100_PCIE, 2, "NV12"),
    "8 A100 PCIe": board(A100_PCIE, 8, "SYS", {**NEAR, **BRIDGES}, bus(8, 4, AMD)),
    "8 MI300X": board("AMD Instinct MI300X", 8, "XGMI"),
    "8 MI355X": board("AMD Instinct MI355X", 8, "XGMI"),
}
VERDICTS = {"healthy": {"ok", "unknown"}, "bad": {"low", "far too low", "unknown"}, "asked": {"ok", "unknown"}}


def measured(row: dict[str, object]) -> tuple[Collective, dict[str, NodeHardware]]:
    """Return what a row measured, and its nodes."""
    plain = BOARDS[str(row["board"])]
    assert plain.gpus
    held = replace(plain, environment=EnvironmentFacts(row.get("environment", {}), {}))  # type: ignore[arg-type]
    count, _, rate = str(row.get("nics", "0 x 0")).partition(" x ")
    names = [f"n{number}" for number in range(int(str(row.get("nodes", 1))))]
    tcp = row.get("tcp")
    held = replace(held, nics=wired(int(str(tcp)) * 1000).nics) if tcp else with_rails(
        held, *rails(int(count), float(rate))
    )  # fmt: skip
    per = int(str(row.get("domain", 0)))
    nodes = {name: in_domain(held, number // per) if per else held for number, name in enumerate(names)}
    ranks = int(str(row.get("ranks", len(plain.gpus.gpus))))
    run = ran(
        Stage.ALL if len(names) > 1 else Stage.INSIDE, names, ranks, float(str(row["busbw"])),
        planned=("eth0",) if tcp else places(int(count)), size=int(str(row.get("size", 1))) * GIB,
        version=str(row.get("version", "2.23.4")), op=Op(row.get("op", "all-reduce")),
        used=(f"NCCL INFO NET/{row['plugin']} : Using it",) if "plugin" in row else (),
    )  # fmt: skip
    return at_half(run, float(str(row["before"]))) if "before" in row else run, nodes


@pytest.mark.parametrize("row", ROWS, ids=[row["system"] for row in ROWS])
def test_what_was_published_is_judged_as_its_source_does(row: dict[str, object]) -> None:
    run, nodes = measured(row)
    found = expected(run, nodes)
    share = (run.busbw or 0.0) / found.busbw if found.busbw else None
    said = of_share(share, run.step.method)
    assert (found.busbw and round(found.busbw, 1), said) == (row.get("expected"), Standing(row["verdict"]))
    assert str(row["source"]).startswith("https://")
    assert row["verdict"] in VERDICTS[str(row["told"])]


def test_every_system_is_there_once() -> None:
    assert len({row["system"] for row in ROWS}) == len(ROWS) > 24 + 12 + 24
