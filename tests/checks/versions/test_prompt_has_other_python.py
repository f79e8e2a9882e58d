"""NC218: the framework is at the prompt and not where a launcher starts the ranks."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.mpi_daemon import EarlyReturn
from ncheck.facts.prompt import PromptFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.prompt_has_other_python import prompt_has_other_python as check

from tests.checks.expected.nodes import said

PLAIN = InterpreterFacts("/usr/bin/python3", "3.10.12", "python3 on PATH", {})
CONDA = PromptFacts(
    "/bin/bash", "/opt/conda/bin/python3", ("torch",), "/opt/nccl/lib", EarlyReturn("~/.bashrc", 8, "return")
)


def node(prompt: PromptFacts | Absent, python: InterpreterFacts = PLAIN) -> dict[str, Facts]:
    return {"n1": {PromptFacts: prompt, InterpreterFacts: python}}


def test_both_pythons_and_the_line_that_returns_are_named() -> None:
    assert judge([check], node(CONDA)).findings == [
        Finding("NC218", "prompt-has-other-python", Severity.WARNING, ("n1",),
                "a prompt finds /opt/conda/bin/python3 with torch, and a launcher /usr/bin/python3 without a framework"
                ": line 8 of ~/.bashrc returns first: return", ("LD_LIBRARY_PATH of the prompt: /opt/nccl/lib",),
                "ncheck --python /opt/conda/bin/python3 nodes.txt", where="here", kind="look",
                summary="a launcher gets another Python"),
    ]  # fmt: skip


def test_it_is_silent_where_the_prompt_has_no_framework_or_the_launcher_has() -> None:
    assert said(judge([check], node(replace(CONDA, frameworks=())))) == ("passed", [""])
    assert said(judge([check], node(CONDA, replace(PLAIN, frameworks={"torch": "2.3.0"})))) == ("passed", [""])
    assert said(judge([check], node(Absent("no GPU")))) == ("skipped", ["no GPU"])
