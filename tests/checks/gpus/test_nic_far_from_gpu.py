"""NC510: a GPU whose rail is missing; silent where the NICs are at one processor, or nobody knows where they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.topology import TopologyFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nic_far_from_gpu import nic_far_from_gpu

from .matrices import node


def rails(*missing: int, far: str = "SYS") -> dict[str, tuple[str, ...]]:
    """Return the NICs of four GPUs, one beside each, but for those that are missing."""
    return {
        f"mlx5_{nic}": tuple("PIX" if gpu == nic else far for gpu in range(4)) for nic in range(4) if nic not in missing
    }


def test_a_gpu_without_its_nic_is_a_warning() -> None:
    assert judge([nic_far_from_gpu], {"n1": node(4, "NV18", nics=rails(2))}).findings == [
        Finding("NC510", "nic-far-from-gpu", Severity.WARNING, ("n1",),
                "no NIC within the host bridge of GPU2 (nearest mlx5_0: SYS), although 3 other GPUs have one",
                ("read from nvidia-smi",), "lspci -tv", kind="look", summary="a GPU has no NIC near it"),
    ]  # fmt: skip


@pytest.mark.parametrize("facts", [
    node(4, "NV18", nics=rails()),
    node(4, "SYS", nics={"mlx5_0": ("PHB", "PHB", "SYS", "SYS")}),  # one NIC at one of two processors
    node(4, "SYS", nics={"mlx5_0": ("PHB", "PHB", "PHB", "SYS")}),
    node(2, "SYS", nics={"mlx5_0": ("PIX", "SYS")}),
    node(3, "SYS", nics={"mlx5_0": ("PHB", "PHB", "SYS")}),
    node(8, "NV12", nics={f"mlx5_{nic}": ("NODE",) * 4 + ("SYS",) * 4 for nic in range(8)}),  # Azure hides the bus
    node(1, "X", nics={"mlx5_0": ("SYS",)}),
    node(8, "NV18", nics={f"mlx5_{nic}": ("PHB",) * 8 for nic in range(8)}),
])  # fmt: skip
def test_it_is_silent_about_healthy_machines(facts: Facts) -> None:
    assert judge([nic_far_from_gpu], {"n1": facts}).findings == []


def test_two_ports_of_one_card_are_at_one_processor() -> None:
    facts = node(5, "SYS", nics={f"mlx5_{port}": ("PIX", "PIX", "PIX", "SYS", "SYS") for port in range(2)})
    topology = facts[TopologyFacts]
    assert isinstance(topology, TopologyFacts)
    beside = {("mlx5_0", "mlx5_1"): "PIX", ("mlx5_1", "mlx5_0"): "PIX"}
    one_card = {**facts, TopologyFacts: replace(topology, pairs={**topology.pairs, **beside})}
    assert judge([nic_far_from_gpu], {"n1": one_card}).findings == []


def test_without_rdma_there_is_nothing_to_judge() -> None:
    assert judge([nic_far_from_gpu], {"n1": node(4, "PHB")}).verdicts[0].outcome is Outcome.SKIPPED
