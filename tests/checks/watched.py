"""Runs the tests of the checks again and keeps their findings: the material for tests about all checks."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ncheck.facts.login import LoginFacts
from ncheck.model.check import Check
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome
from ncheck.steps.judge import Judgement, judge

from tests.turns import TURN

Nodes = Mapping[str, Facts]
HERE = Path(__file__).parent
HOSTILE = "; touch /tmp/owned $(reboot)"
# Text in which a shell or a terminal would find what to do; the word PWNED is to stand in quotes, or not at all.
TEXTS = (
    ";PWNED $(PWNED) `PWNED` &PWNED |PWNED >PWNED\"'PWNED",
    "$(PWNED);`PWNED`",
    "\n\x1b]0;PWNED\x07\u202e\u2028\0PWNED",
)
OPTION = "--PWNED"  # a program would take it for an option
# What no node can name like an option, since its reader refuses it: tests/ncheck/facts
AT_THE_DOOR = frozenset({
    "Interface.name", "HcaPort.hca", "HcaPort.netdev", "NodeResult.carried key", "InterpreterFacts.frameworks key",
    "EnvironmentFacts.files key", "Folder.path", "Folder.target", "MountFacts.shared key", "MpiSetting.file",
    "MpiSetting.variable", "InputChain.name", "InputChain.table", "XidEvent.pci", "JobFolder.path", "FileSystem.point",
    "DataRates.path",
    "Trouble.of", "ErrorCountersFacts.ports key", "LaterErrorCountersFacts.ports key", "PciDevice.above",
    "AcsFacts.controls key", "GpuHealth.pci", "Gid.netdev", "HcaPortDetails.hca", "LibraryFacts.uverbs key",
    "CodeFacts.folder", "InterpreterFacts.path", "InterpreterFacts.libraries key", "PromptFacts.python",
    "ProgramFacts.paths key", "Requirement.name", "CudaToolkitFacts.path", "CudnnFacts.path", "NetPlugin.path",
    "NetPluginFacts.elsewhere",
})  # fmt: skip
OWN = frozenset({"fix", "module", "user"})  # fields that ncheck fills itself
MOST_NODES, TRIES, WORTH = 8, 30, 10  # a try that led to a finding counts as so many
TURNS = 8  # each day, one try in so many; the next day the next ones


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

    def keep(checks: Sequence[Check], nodes: Nodes, judgement: Judgement) -> None:
        own = _own(check, judgement)
        outcomes = {verdict.outcome for verdict in judgement.verdicts if verdict.code == check.code}
        seen.findings += own
        seen.healthy += not own and bool(outcomes & {Outcome.PASSED, Outcome.SKIPPED})
        renamed = {f"{name}{HOSTILE}": _without_a_line(facts) for name, facts in nodes.items()}
        seen.hostile += _own(check, judge(checks, renamed))

    _run_cases(check, keep)
    return seen


@cache
def fuzzed(check: Check) -> tuple[Finding, ...]:
    """Run the cases again with one text of a fact at a time made hostile, and return what the check says.

    These are the texts of this day's turn.
    """
    seen: list[Finding] = []
    tries: Counter[str] = Counter()

    def keep(_checks: Sequence[Check], nodes: Nodes, _judgement: Judgement) -> None:
        for place, sick in _sickened(nodes, tries):
            found = _own(check, judge([check], sick))
            tries[place] += WORTH if found else 1
            seen.extend(found)

    _run_cases(check, keep)
    return tuple(seen)


def _own(check: Check, judgement: Judgement) -> list[Finding]:
    return [finding for finding in judgement.findings if finding.code == check.code]


def _run_cases(check: Check, keep: Callable[[Sequence[Check], Nodes, Judgement], None]) -> None:
    """Run the cases, and show whoever keeps something what was judged and how."""

    def judge_and_keep(checks: Sequence[Check], nodes: Nodes) -> Judgement:
        judgement = judge(checks, nodes)
        keep(checks, nodes, judgement)
        return judgement

    module = _loaded(file_of_tests(check))
    module.judge = judge_and_keep  # type: ignore[attr-defined]
    for name, case in list(vars(module).items()):
        if name.startswith("test_") and inspect.isfunction(case) and not inspect.signature(case).parameters:
            case()


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


def _sickened(nodes: Nodes, tries: Mapping[str, int]) -> Iterator[tuple[str, Nodes]]:
    """Yield the facts with one text at a time made hostile, wherever it stands, and the field that it is from.

    A field that was tried often enough is passed over, and so are clusters that take long to judge.
    """
    if len(nodes) > MOST_NODES:
        return
    held_by = {id(fact): list(_texts(fact)) for facts in nodes.values() for fact in facts.values()}
    words = {fact: {text for _, text in held} for fact, held in held_by.items()}
    places: dict[str, list[str]] = {}
    for place, text in (pair for held in held_by.values() for pair in held):
        places.setdefault(text, []).append(place)
    changes = [(text, new) for text in places for new in (*(text + added for added in TEXTS), TEXTS[0], OPTION)]
    for text, new in changes[TURN % TURNS :: TURNS]:
        place = places[text][-1]
        refused = new == OPTION and AT_THE_DOOR.intersection(places[text])
        if text not in nodes and not refused and tries.get(place, 0) < TRIES:
            yield (
                place,
                {
                    name: {
                        kind: _replaced(fact, text, new) if text in words[id(fact)] else fact
                        for kind, fact in facts.items()
                    }
                    for name, facts in nodes.items()
                },
            )


def _texts(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in a fact with its field, but those of ncheck's own."""
    if type(value) is str:
        yield place, value
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            if one.name not in OWN:
                yield from _texts(getattr(value, one.name), f"{type(value).__name__}.{one.name}")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (*_texts(key, f"{place} key"), *_texts(inner, place))
    elif isinstance(value, tuple | frozenset):
        for inner in value:
            yield from _texts(inner, place)


def _replaced(value: Any, old: str, new: str) -> Any:
    if type(value) is str:
        return new if value == old else value
    if is_dataclass(value) and not isinstance(value, type):
        held = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        return replace(
            value, **{name: part if name in OWN else _replaced(part, old, new) for name, part in held.items()}
        )
    if isinstance(value, Mapping):
        return {_replaced(key, old, new): _replaced(inner, old, new) for key, inner in value.items()}
    if isinstance(value, tuple | frozenset):
        return type(value)(_replaced(inner, old, new) for inner in value)
    return value


def _without_a_line(facts: Facts) -> Facts:
    """Take from a login the line that the transport knew, so that the check must make its own."""
    login = facts.get(LoginFacts)
    if not isinstance(login, LoginFacts):
        return facts
    return {**facts, LoginFacts: replace(login, login=replace(login.login, fix=""))}
