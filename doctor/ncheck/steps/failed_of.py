"""--failed-of REPORT: which checks and nodes are needed to check again what failed or was unknown in that report.

A check that compares nodes, or asks them about each other, needs all nodes of that report: alone, a node differs from
nobody. So does a node that was not reached: nothing is known of it. Where nothing failed, all is checked. The run is as
deep as that of the report (--level), if no option says how deep it is.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from ncheck.decode import OPTIONAL, MisfitError, Text, decoded
from ncheck.errors import SettingsError
from ncheck.facts.definition import LOOKING_AGAIN, ON_THIS_MACHINE
from ncheck.facts.learning import definition_of
from ncheck.files import reading
from ncheck.hostlist import fold, is_name, is_v6, quoted, split_list
from ncheck.inventory.read import from_names
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Check
from ncheck.model.earlier import Earlier, by_code
from ncheck.model.finding import Outcome, Severity
from ncheck.settings import Settings
from ncheck.settings.options import LEVELS, OPTIONS
from ncheck.steps.phases import with_needs
from ncheck.steps.registry import Registry, load_checks
from ncheck.text import printable

_LARGEST = 128 * 2**20  # bytes: the report of 20,000 nodes
_MOST_VALUES = 8_000_000  # "[],[],[]" takes thirty times its size in memory
_BAD = (Severity.ERROR.value, Severity.WARNING.value)
_NO_ANSWER = (Outcome.UNKNOWN.value, Outcome.CRASHED.value)


def _node_name(name: str) -> str:
    if not (is_name(name) or is_v6(name)):
        raise ValueError(f"{quoted(name)} is the name of no node")
    return name


def _word(text: str) -> str:
    if not is_name(text) or len(text) > 80:  # noqa: PLR2004  the name of a check
        raise ValueError(f"{quoted(text[:80])} is not the name of a check")
    return text


_Nodes = tuple[Annotated[str, _node_name], ...]


@dataclass(frozen=True)
class _Node:
    name: Annotated[str, _node_name]
    reached: bool
    transport: str
    cause: str
    slots: int | None
    recorded: bool

    @property
    def examined(self) -> bool:
        return self.reached and self.cause not in ("no-python", "not-entered")


@dataclass(frozen=True)
class _Verdict:
    check: Annotated[str, _word]
    code: Annotated[str, _word]
    nodes: _Nodes
    outcome: str


@dataclass(frozen=True)
class _Finding:
    check: Annotated[str, _word]
    code: Annotated[str, _word]
    nodes: _Nodes
    severity: str
    ignored: bool
    see: tuple[str, ...]


@dataclass(frozen=True)
class _Problem:
    check: Annotated[str, _word]
    code: Annotated[str, _word]
    nodes: _Nodes
    failed: _Nodes
    compared_with: _Nodes
    unknown: _Nodes


@dataclass(frozen=True)
class _Again:
    problems: tuple[_Problem, ...]


@dataclass(frozen=True)
class _Report:
    """What is read of an earlier report."""

    schema: Literal["ncheck.report/2"]
    time: Annotated[str, Text(40)]
    nodes: tuple[_Node, ...]
    verdicts: tuple[_Verdict, ...]
    findings: tuple[_Finding, ...]
    again: Annotated[_Again | None, OPTIONAL] = None
    level: Annotated[str, OPTIONAL] = ""
    beside_level: Annotated[tuple[str, ...], OPTIONAL] = ()

    @property
    def lost(self) -> set[str]:
        """The nodes of which nothing is known, but for those that --ignore let pass."""
        let_pass, bad = ({node for one in self.findings if one.ignored is ignored for node in one.nodes}
                         for ignored in (True, False))  # fmt: skip
        return {one.name for one in self.nodes if not one.examined} - (let_pass - bad)


def narrowed(settings: Settings) -> Settings:
    """Return the settings of a run that checks again what failed in the report that they name.

    Its nodes are those of the report where none are named. Raises SettingsError, or InventoryError.
    """
    path = str(settings.failed_of)
    report, registry = _read(path), load_checks(settings.run.own_checks)
    settings = _as_deep(settings, report)
    earlier = _problems(path, report, settings, registry)
    if not earlier.names and _problems(path, report, replace(settings, select=()), registry).names:
        named = settings.named("select", ",".join(settings.select))
        raise SettingsError(f"--failed-of {printable(path)}: of {named} nothing failed there: remove one of the two")
    settings = _with_nodes(settings, path, report)
    if not earlier.names:
        return replace(settings, run=replace(settings.run, earlier=earlier))
    lost = report.lost
    codes = {*earlier.failed, *earlier.unknown}
    if lost:  # nothing is known of them
        codes |= {one.code for one in report.verdicts}
    chosen = [one for one in registry.choose(settings.select) if one.code in codes]
    if not chosen:
        raise SettingsError(f"--failed-of {printable(path)}: no such check now: {', '.join(sorted(codes))}")
    checks = registry.imported(chosen)
    compare = frozenset(check.code for check in checks if check.judge_cluster and not check.alone)
    peers = frozenset(check.code for check in checks if _about_peers(check))
    every = {one.name for one in report.nodes}
    alone = not peers and not any(check.judge_cluster for check in checks)
    bad = lost.union(*earlier.failed.values(), *earlier.unknown.values())
    passed = {code: earlier.passed.get(code, frozenset()) | (every - lost) for code in peers & earlier.names.keys()}
    earlier = replace(
        earlier, compare=compare, about_peers=peers, passed={**earlier.passed, **passed},
        nodes=frozenset(bad if alone else every),
    )  # fmt: skip
    select = tuple(one.code for one in chosen)
    return replace(settings, select=select, run=replace(settings.run, earlier=earlier))


def _about_peers(check: Check) -> bool:
    """Whether what a node is asked, or with which others it is compared, depends on which are there."""
    read = (one for fact in with_needs(check.facts) if (one := definition_of(fact)))
    asked = (one for one in read if not one.for_all_alike and one.phase not in (ON_THIS_MACHINE, LOOKING_AGAIN))
    return check.by_kind or any(asked)


def _read(path: str) -> _Report:
    """Return what is needed of a report. Raises SettingsError."""
    place = f"--failed-of {printable(path)}"
    try:
        with reading(Path(path).expanduser()) as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST or sum(map(content.count, (b",", b"[", b"{"))) > _MOST_VALUES:
            raise SettingsError(f"{place}: larger than any report")
        found = json.loads(content)
    except FileNotFoundError:
        raise SettingsError(f"{place}: no such file; a run writes it: ncheck nodes.txt -o json=FILE") from None
    except OSError as error:
        raise SettingsError(f"{place}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise SettingsError(f"{place}: it is not JSON; a run writes it: ncheck nodes.txt -o json=FILE") from None
    if not isinstance(found, dict) or found.get("schema") != "ncheck.report/2":
        schema = found.get("schema") if isinstance(found, dict) else None
        what = f"{quoted(str(schema)[:40])} is another format" if schema else "it is no report of ncheck"
        raise SettingsError(f"{place}: {what}; this ncheck reads ncheck.report/2")
    try:
        report: _Report = decoded(found, _Report)
    except MisfitError as wrong:
        raise SettingsError(f"{place}: it is no report of ncheck: {printable(str(wrong), 200)}") from None
    if not report.nodes:
        raise SettingsError(f"{place}: it has no node")
    return report


def _problems(path: str, report: _Report, settings: Settings, registry: Registry) -> Earlier:
    """Return what was wrong, as far as --select names the checks."""
    meant = {one.code for one in registry.choose(settings.select)} if settings.select else None
    failed: dict[str, set[str]] = {}
    unknown: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    causes: set[str] = set()
    failing, passed = (by_code(report.verdicts, one) for one in (Outcome.FAILED, Outcome.PASSED))
    for found in report.findings:
        if found.severity in _BAD and not found.ignored and (meant is None or found.code in meant):
            failed.setdefault(found.code, set()).update(found.nodes or failing.get(found.code, ()))
            names[found.code] = found.check
            if not found.see:
                causes.add(found.code)
    silent = {one.name for one in report.nodes if not one.examined}
    named = silent & {node for nodes in failed.values() for node in nodes} | (silent - report.lost)
    for one in report.verdicts:
        nodes = set(one.nodes) - named
        if one.outcome in _NO_ANSWER and nodes and (meant is None or one.code in meant):
            unknown.setdefault(one.code, set()).update(nodes)
            names[one.code] = one.check
    for open_ in report.again.problems if report.again else ():  # what that run could not prove, it took over itself
        if open_.unknown and (meant is None or open_.code in meant):
            failed.setdefault(open_.code, set()).update(open_.failed)
            unknown.setdefault(open_.code, set()).update(set(open_.nodes) - {*open_.failed})
            passed[open_.code] = passed.get(open_.code, frozenset()).union(open_.compared_with)
            names[open_.code] = open_.check
            causes.add(open_.code)
    bad, doubtful = ({code: frozenset(nodes) for code, nodes in part.items()} for part in (failed, unknown))
    follow = frozenset(failed.keys() - causes - unknown.keys())
    as_deep = (settings.level, set(settings.beside_level)) == (report.level or Settings.level, {*report.beside_level})
    return Earlier(path, report.time, bad, doubtful, passed, names, follow, as_deep=as_deep)


def _as_deep(settings: Settings, report: _Report) -> Settings:
    """Return the settings with the depth of the report's run, where they are those of every run."""
    if settings.level != Settings.level or settings.beside_level or report.level not in LEVELS:
        return settings
    values = dict(LEVELS[report.level])
    rows = {OPTIONS[name].key: (name, OPTIONS[name]) for level in LEVELS.values() for name in level}
    for key, _, value in (one.partition(" ") for one in report.beside_level):  # storage-probe true
        if key in rows:
            name, row = rows[key]
            with suppress(ValueError):  # what is no value of the option leaves the depths different
                values[name] = row.read(value)
    return replace(settings, level=report.level, **values)  # type: ignore[arg-type]


def _with_nodes(settings: Settings, path: str, report: _Report) -> Settings:
    """Return the settings with the nodes of the report, where they name none."""
    if settings.local or settings.slurm or settings.via == "srun" or settings.hosts or settings.nodes_file:
        return settings
    if [(one.transport, one.recorded) for one in report.nodes] == [("local", False)]:
        if report.nodes[0].name != socket.gethostname():
            raise SettingsError(
                f"--failed-of {printable(path)}: it is of ncheck local on another machine, {report.nodes[0].name}"
            )
        return replace(settings, local=True)
    hosts = ",".join(_listed(report.nodes))
    from_names(hosts, f"--failed-of {printable(path)}")  # raises with this place
    return replace(settings, hosts=hosts)


def _listed(nodes: Sequence[_Node]) -> Iterator[str]:
    by_slots: dict[int | None, list[str]] = {}
    for one in nodes:
        by_slots.setdefault(one.slots, []).append(one.name)
    for slots, names in by_slots.items():
        for part in split_list(fold(names)):
            yield f"{part}:{slots}" if slots and ":" not in part else part
