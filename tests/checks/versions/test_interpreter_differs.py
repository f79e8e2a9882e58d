"""NC207: the job's Python is compared by path and by the first two numbers."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.interpreter_differs import interpreter_differs


def node(version: str, path: str = "/opt/conda/bin/python") -> Facts:
    return {InterpreterFacts: InterpreterFacts(path, version, "active conda", {}), GpuFacts: Absent("no NVIDIA GPU")}


def test_another_path_or_release_is_named() -> None:
    nodes = {"n1": node("3.11.7"), "n2": node("3.11.7"), "n3": node("3.9.2", "/usr/bin/python3")}
    assert judge([interpreter_differs], nodes).findings == [
        Finding("NC207", "interpreter-differs", Severity.WARNING, ("n3",),
                "the job's Python differs: /opt/conda/bin/python 3.11 on n[1-2], /usr/bin/python3 3.9 on n3 (2 to 1)",
                ("/opt/conda/bin/python 3.11.7 (active conda) on n[1-2]",
                 "/usr/bin/python3 3.9.2 (active conda) on n3"),
                "which -a python3", kind="look", summary="the job's Python differs"),
    ]  # fmt: skip


def test_it_is_silent_about_the_last_number() -> None:
    assert judge([interpreter_differs], {"n1": node("3.11.7"), "n2": node("3.11.9")}).findings == []


def test_a_node_without_an_interpreter_is_named_where_others_have_one() -> None:
    none = Absent("no Python interpreter for a job on this node")
    lacking: Facts = {InterpreterFacts: none, GpuFacts: Absent("no NVIDIA GPU")}
    findings = judge([interpreter_differs], {"n1": node("3.11.7"), "n2": node("3.11.7"), "n3": lacking}).findings
    assert [(finding.nodes, finding.message) for finding in findings] == [
        (("n3",), "no Python interpreter for a job on this node, and n[1-2] has it")
    ]
