"""A log names nodes as they name themselves, by an address, or by a rank: the job knows them as the list does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.model.report import NodeSummary, no_report
from ncheck.retry.names import known_as, nodes_meant

NODES = tuple(
    NodeSummary(
        f"n{at}", reached=True, host_name=f"gpu0{at}.cluster",
        addresses={"lo": ("127.0.0.1/8",), "eth0": (f"10.0.0.{at}/24", f"fe80::{at}/64")},
    )
    for at in (1, 2, 3)
)  # fmt: skip
REPORT = replace(no_report(""), nodes=NODES, dropped={"n3": "NC501"})
SLOTS = {"n1": 2, "n2": 4}


def test_a_name_or_an_address_is_that_of_one_node_alone() -> None:
    assert known_as(REPORT)["n1"] == ("10.0.0.1", "fe80::1", "gpu01", "gpu01.cluster", "n1")


@pytest.mark.parametrize(("named", "ranks", "nodes"), [
    (("gpu02",), (), ("n2",)),
    (("10.0.0.1", "n2", "gpu01.cluster"), (5,), ("n1", "n2")),
    (("n9", "127.0.0.1"), (0,), ()),  # a name that is none of the job's is no reason to guess by the rank
    (("n3",), (), ()),  # --drop-bad left it out
    ((), (1, 2, 3), ("n1", "n2")),
    ((), (6,), ()),
    ((), (), ()),
])  # fmt: skip
def test_the_nodes_are_those_that_the_log_names_else_those_of_its_ranks(
    named: tuple[str, ...], ranks: tuple[int, ...], nodes: tuple[str, ...]
) -> None:
    assert nodes_meant(named, ranks, REPORT, SLOTS) == nodes
