"""Nodes of two rails of 400 Gb/s, whose pairs were tried, by hand."""

from __future__ import annotations

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.tools import Tool, ToolFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Login
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Row, Stage, Step, StepFailure

MIB = 2**20
PORTS = tuple(HcaPort(f"mlx5_{number}", 1, "Active", "LinkUp", 400.0, "InfiniBand") for number in range(2))
TOOLS = ToolFacts({"ib_write_bw": Tool("/usr/bin/ib_write_bw")})


def pair(number: int, one: str, other: str, told: float | StepFailure, rail: int = 0) -> dict[str, NodeResult]:
    """Return both nodes' results: Gb/s that the client measured, or how it failed."""
    step = Step(number, Stage.RAIL, Method.RDMA, (one, other), (1, 1), (MIB,))
    planned = (f"mlx5_{rail}:1",)
    if isinstance(told, StepFailure):
        return {node: NodeResult(step, (), planned, failure=told) for node in (one, other)}
    seconds = MIB * 8 / (told * 1e9)
    row = Row(MIB, in_place=False, seconds=seconds, fastest=seconds, slowest=seconds)
    return {
        one: NodeResult(step, (), planned, version="ib_write_bw"),
        other: NodeResult(step, (row,), planned, version="ib_write_bw"),
    }


def cluster(*pairs: dict[str, NodeResult], tools: ToolFacts = TOOLS, nodes: tuple[str, ...] = ()) -> dict[str, Facts]:
    names = dict.fromkeys([*nodes, *(node for one in pairs for node in one)])
    results = {name: tuple(one[name] for one in pairs if name in one) for name in names}
    return {
        name: {
            ProbeFacts: ProbeFacts(results[name]),
            InfinibandFacts: InfinibandFacts(PORTS, "sysfs"),
            ToolFacts: tools,
            LoginFacts: LoginFacts(Login(reached=True, port=2222, user="train")),
        }
        for name in names
    }
