"""NC206: frameworks are compared one by one; where none lives, there is nothing to compare."""

from __future__ import annotations

from ncheck import HERE
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.framework_differs import framework_differs


def node(**frameworks: str) -> Facts:
    return {
        InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", frameworks),
        RanksFacts: Absent("no job"),
    }


def test_the_odd_version_is_named_framework_by_framework() -> None:
    nodes = {"n1": node(torch="2.3.1", deepspeed="0.14"), "n2": node(torch="2.3.1", deepspeed="0.14"),
             "n3": node(torch="2.1.0", deepspeed="0.14")}  # fmt: skip
    assert judge([framework_differs], nodes).findings == [
        Finding("NC206", "framework-differs", Severity.ERROR, ("n3",),
                "torch differs: 2.3.1 on n[1-2], 2.1.0 on n3 (2 to 1)", (), "python3 -m pip install torch==2.3.1",
                summary="torch differs"),
    ]  # fmt: skip


def test_a_node_without_any_framework_fails_where_another_has_one() -> None:
    judgement = judge([framework_differs], {"n1": node(torch="2.3.1"), "n2": node(), "n3": node()})
    assert [found.message for found in judgement.findings] == ["torch differs: none on n[2-3], 2.3.1 on n1 (2 to 1)"]
    assert [(found.nodes, found.fix) for found in judgement.findings] == [
        (("n2", "n3"), "python3 -m pip install torch==2.3.1")
    ]


def test_a_node_whose_login_finds_another_python_is_asked_for_that_of_the_others() -> None:
    """It may lie there, behind the line of ~/.bashrc that returns in non-interactive shells."""
    conda = {
        **node(),
        InterpreterFacts: InterpreterFacts("/opt/conda/bin/python3", "3.11.2", "python3 on PATH", {"torch": "2.5.1"}),
    }
    nodes: dict[str, Facts] = {"n1": conda, "n2": node(), "n3": conda}
    (found,) = judge([framework_differs], nodes).findings
    assert (found.nodes, found.kind, found.where) == (("n2",), "look", HERE)
    assert found.fix == "ncheck nodes.txt --python /opt/conda/bin/python3"


def test_the_fix_installs_into_the_interpreter_that_was_judged() -> None:
    def conda(version: str) -> Facts:
        python = InterpreterFacts("/opt/my conda/bin/python3", "3.11.2", "active conda", {"torch": version})
        return {**node(), InterpreterFacts: python}

    nodes = {"n1": conda("2.5.1"), "n2": conda("2.5.1"), "n3": conda("2.3.1")}
    assert [found.fix for found in judge([framework_differs], nodes).findings] == [
        "'/opt/my conda/bin/python3' -m pip install torch==2.5.1"
    ]


def test_no_framework_on_any_node_is_skipped_and_not_passed() -> None:
    judgement = judge([framework_differs], {"n1": node(), "n2": node()})
    reason = "no framework in /usr/bin/python3 (python3 on PATH) (--python selects another Python)"
    assert [(verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [(Outcome.SKIPPED, reason)] * 2


def test_it_is_silent_about_what_one_node_has_beside_the_jobs_framework() -> None:
    nodes = {"n1": node(torch="2.3.1", jax="0.4.30"), "n2": node(torch="2.3.1"), "n3": node(torch="2.3.1")}
    assert judge([framework_differs], nodes).findings == []


def test_two_builds_of_one_version_differ_and_the_fix_names_their_index() -> None:
    nodes = {"n1": node(torch="2.3.0+cu121"), "n2": node(torch="2.3.0+cu121"), "n3": node(torch="2.3.0+cpu")}
    assert [(found.message, found.fix) for found in judge([framework_differs], nodes).findings] == [
        (
            "torch differs: 2.3.0+cu121 on n[1-2], 2.3.0+cpu on n3 (2 to 1)",
            "python3 -m pip install torch==2.3.0+cu121 --index-url https://download.pytorch.org/whl/cu121",
        )
    ]


def test_inside_a_job_a_package_that_it_does_not_use_is_a_warning() -> None:
    one, other = node(torch="2.3.1", accelerate="1.0"), node(torch="2.3.1")
    gpu_build = {"paddlepaddle-gpu": "2.6"}
    paddle: Facts = {
        **node(), InterpreterFacts: InterpreterFacts("/usr/bin/python3", "3.11.2", "python3 on PATH", gpu_build)
    }  # fmt: skip
    for packages, nodes, severity in (
        (("os", "torch"), (one, other), Severity.WARNING),
        (("accelerate", "torch"), (one, other), Severity.ERROR),
        (("torch",), (paddle, node()), Severity.WARNING),
        (("paddle",), (paddle, node()), Severity.ERROR),
    ):
        ranks: Facts = {RanksFacts: RanksFacts(2, (0,), packages=packages)}
        found = judge([framework_differs], {"n1": {**nodes[0], **ranks}, "n2": {**nodes[1], **ranks}}).findings
        assert [finding.severity for finding in found] == [severity], packages
