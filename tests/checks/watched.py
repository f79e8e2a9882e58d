"""Runs the tests of the checks again and keeps their findings: the material for tests about all checks."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType

from ncheck.facts.login import LoginFacts
from ncheck.judge import Judgement, judge
from ncheck.model.check import Check
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome

HERE = Path(__file__).parent
HOSTILE = "; touch /tmp/owned $(reboot)"


@dataclass
class Watched:
    """What one check said in all cases of its own test file."""

    findings: list[Finding] = field(default_factory=list)
    hostile: list[Finding] = field(default_factory=list)  # the same cases on nodes whose names would run commands
    healthy: int = 0  # cases without a finding, in which some node passed or was rightly skipped


def file_of_tests(check: Check) -> Path:
    """Return where the tests of a check belong."""
    topic, name = check.module.split(".")[-2:]
    return HERE / topic / f"test_{name}.py"


@cache
def watched(check: Check) -> Watched:
    """Run every case of the check's test file that needs nothing, and watch what the check says in it."""
    seen = Watched()
    module = _loaded(file_of_tests(check))
    module.judge = _watching(check, seen)  # type: ignore[attr-defined]
    for name, case in list(vars(module).items()):
        if name.startswith("test_") and inspect.isfunction(case) and not inspect.signature(case).parameters:
            case()
    return seen


def _loaded(path: Path) -> ModuleType:
    name = f"watched_{path.parent.name}_{path.stem}"
    # As if it were a package: what lies beside it is found by the module's own relative imports.
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[str(path.parent)])
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a check that a test defines looks up its page here
    spec.loader.exec_module(module)
    return module


def _watching(check: Check, seen: Watched):  # type: ignore[no-untyped-def]  # noqa: ANN202  the signature of judge
    def judge_and_keep(checks: Sequence[Check], nodes: Mapping[str, Facts]) -> Judgement:
        judgement = judge(checks, nodes)
        own = [finding for finding in judgement.findings if finding.code == check.code]
        outcomes = {verdict.outcome for verdict in judgement.verdicts if verdict.code == check.code}
        seen.findings += own
        seen.healthy += not own and bool(outcomes & {Outcome.PASSED, Outcome.SKIPPED})
        renamed = judge(checks, {f"{name}{HOSTILE}": _without_a_line(facts) for name, facts in nodes.items()})
        seen.hostile += [finding for finding in renamed.findings if finding.code == check.code]
        return judgement

    return judge_and_keep


def _without_a_line(facts: Facts) -> Facts:
    """Take from a login the line that the transport knew, so that the check must make its own."""
    login = facts.get(LoginFacts)
    if not isinstance(login, LoginFacts):
        return facts
    return {**facts, LoginFacts: replace(login, login=replace(login.login, fix=""))}
