"""One run as the history keeps it: who was examined and how each node was, in a form without secrets or raw answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING

from ncheck.differences import OF_INTERFACES, THERE, Topic, facts_about, unread_in, values_of
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.fact import Absent, Unread, name_of
from ncheck.model.finding import Outcome, Severity
from ncheck.redact import redact
from ncheck.text import printable, size

if TYPE_CHECKING:
    from ncheck.model.cluster import Facts
    from ncheck.model.report import Report
    from ncheck.model.system import Hardware


STATES = ("good", "bad", "unknown", "unreached")
EXAMINED = STATES[:3]
TRIAGE = "triage"  # a kind of run
PART = "part"  # the same: a run of some checks, which says nothing of the others
JOB = "job"  # the same: a job that ended, whose nodes another entry of that time has
SETUP = "setup"  # a kind of what is kept
COUNTER, COUNTED = "counter", "counted"  # kinds of what is kept
LINKS, ERRORS = "links", "errors"  # what the figures of a job are of: all its links, and what one of them counted
_RAN = (Outcome.PASSED, Outcome.FAILED)


@dataclass(frozen=True)
class Seen:
    """One finding that is no consequence of another. `hardware`: it is a fault of the nodes' own parts."""

    code: str
    check: str
    severity: str
    nodes: tuple[str, ...]
    summary: str
    hardware: bool = False


@dataclass(frozen=True)
class Kept:
    """What stays the same from run to run until something changes. `kind`: host, boot, machine, gpu, hca, counter,
    counted, or setup.

    `place`: of a GPU its PCI address, of an HCA or a counter its name. `value`: of a GPU its UUID, of an HCA its GUID.
    `detail`: the serial number of a GPU, where it says it; of a counter, of what it is: ports or gpus. Counted says of
    how many of these (`place`) the counters were read: one that is not kept was 0. A setup is of all nodes of a run
    together (`node` is their folded list): a version or a setting, with the fact that says it (`detail`); without
    `place`: all of them could read that fact.
    """

    node: str
    kind: str
    place: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Figure:
    """A bandwidth or another figure that was measured, in the unit. `place`: the PCI address of one GPU, "" for the
    nodes together. `what` ends with what else must be the same to compare it: ranks, size and method. `usual`: what was
    expected, None if nothing was.
    """

    nodes: tuple[str, ...]
    place: str
    what: str
    value: float
    unit: str
    usual: float | None = None


@dataclass(frozen=True)
class Entry:
    """One run. `time`: seconds since 1970. `kind`: check, part (of the checks, by --select or --failed-of), replay,
    triage or job.

    `nodes`: their names by their state, one of STATES, as the report has it. `checks`: the codes of those that ran. A
    triage examined no node, so it has neither: its findings are the diagnoses, on the nodes that they name. A job has
    its exit code, and figures alone.
    """

    time: float
    kind: str
    host: str = ""
    version: str = ""
    exit_code: int = 0
    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    findings: tuple[Seen, ...] = ()
    kept: tuple[Kept, ...] = ()
    figures: tuple[Figure, ...] = ()

    def of(self, state: str) -> tuple[str, ...]:
        """Return the nodes in this state."""
        return self.nodes.get(state, ())


def entry_of(
    report: Report, kind: str = "check", time: float | None = None, known: Mapping[str, Facts] | None = None
) -> Entry:
    """Return what the history keeps of a report. `time`: when the nodes answered, in place of the report's time.
    `known`: the facts of the nodes.
    """
    states: dict[str, list[str]] = {}
    for name, state in _states(report).items():
        states.setdefault(state, []).append(name)
    findings = tuple(
        Seen(one.code, one.check, one.severity.value, one.nodes, one.summary or one.title, one.hardware)
        for one in report.findings
        if not (one.see or one.ignored or one.severity is Severity.INFO)
    )
    return Entry(
        datetime.fromisoformat(report.time).timestamp() if time is None else time,
        PART if report.select else kind, report.host, report.version, report.exit_code,
        nodes={state: tuple(names) for state, names in states.items()},
        checks=tuple(sorted({one.code for one in report.verdicts if one.outcome in _RAN})),
        findings=findings,
        kept=(*_kept(report), *counters_of(report.hardware, known or {}), *_setups(list(states.values()), known or {})),
        figures=tuple(_figures(report)),
    )  # fmt: skip


def _states(report: Report) -> dict[str, str]:
    """Return how each node was. After ^C a node that was reached is unknown, since not everything was asked, and of
    one that was not reached yet nothing is said.
    """
    unknown = {bad.node for bad in report.bad if bad.unknown}
    bad = {bad.node for bad in report.bad if not bad.unknown}
    states: dict[str, str] = {}
    for node in report.nodes:
        doubtful = report.interrupted or node.name in unknown
        if node.reached:
            states[node.name] = "bad" if node.name in bad else "unknown" if doubtful else "good"
        elif not report.interrupted:
            states[node.name] = "unreached"
    return states


def _kept(report: Report) -> Iterator[Kept]:
    for one in report.hardware:
        named = (("host", one.host_name), ("boot", one.boot_id), ("machine", one.serial))
        yield from (Kept(one.node, kind, "", value) for kind, value in named if value)
        yield from (Kept(one.node, "gpu", pci, uuid, one.gpu_serials.get(pci, "")) for pci, uuid in one.gpus.items())
        yield from (Kept(one.node, "hca", name, guid) for name, guid in one.hcas.items())


_PORTS, _GPUS = "ports", "gpus"  # the members of the facts that count errors, by which they are kept
_COUNTING = {"ErrorCountersFacts": _PORTS, "GpuHealthFacts": _GPUS}


def counters_of(hardware: Sequence[Hardware], known: Mapping[str, Facts]) -> Iterator[Kept]:
    """Yield what ports have counted, and GPUs of memory, NVLink and PCIe errors; and of how many that was read."""
    for one in hardware:
        yield from (Kept(one.node, COUNTER, name, str(count), _PORTS) for name, count in one.counters.items())
    for node, facts in known.items():
        for kind, fact in facts.items():
            place = _COUNTING.get(name_of(kind), "")
            if place and not isinstance(fact, (Absent, Unread)):
                yield Kept(node, COUNTED, place, str(len(getattr(fact, place))))
        for value, text in values_of({kind: fact for kind, fact in facts.items() if kind.__name__ == _OF_GPUS}).items():
            if value.explained[0] is Topic.COUNTER and text.isdecimal() and text != "0":
                name = value.member.removeprefix("gpus.").replace("_", " ")
                yield Kept(node, COUNTER, " ".join((*value.part[:1], name, *value.part[1:])), text, _GPUS)


_OF_GPUS = "GpuHealthFacts"
_SETUPS = (Topic.VERSION, Topic.JOB, Topic.CODE, Topic.SYSTEM, Topic.NETWORK, Topic.GPU)
_IDENTITIES = (
    "uuid",
    "serial",
    "node_guid",
    "mac",
    "address",
    "gids",
    "ip",
    "pci",
    "hca",
    "name",
    "port",
    "netdev",
    "port_guid",
    *OF_INTERFACES,
)
_LONGEST, _MOST_SETUPS = 200, 400  # characters of a value; values


def _setups(lists: Sequence[Sequence[str]], known: Mapping[str, Facts]) -> Iterator[Kept]:
    """Yield versions and settings of all nodes of the run together, of each fact that none of them could not read."""
    names = sorted(name for names in lists for name in names)
    unread = {fact for name in names for fact in unread_in(known.get(name, {}))}
    texts: dict[tuple[str, str], dict[str, list[str]]] = {}
    wanted = facts_about(_SETUPS)
    cache: dict[int, Mapping[tuple[str, str], str]] = {}  # nodes that are alike share facts
    for name in names:
        for kind, fact in known.get(name, {}).items():
            if name_of(kind) not in wanted:
                continue
            if id(fact) not in cache:
                cache[id(fact)] = _of_fact({kind: fact})
            for key, text in cache[id(fact)].items():
                texts.setdefault(key, {}).setdefault(text, []).append(name)
    kept = [(what, fact, by_text) for (what, fact), by_text in texts.items() if fact not in unread][:_MOST_SETUPS]
    nodes = fold(names)
    for fact in {fact: None for _, fact, _ in kept}:
        yield Kept(nodes, SETUP, "", fact, fact)
    for what, fact, by_text in kept:
        alike = len(by_text) == 1
        text = "; ".join(text if alike else f"{text} on {fold(of)}" for text, of in by_text.items())
        yield Kept(nodes, SETUP, what, printable(redact(text), _LONGEST), fact)


def _of_fact(facts: Facts) -> dict[tuple[str, str], str]:
    """Return its versions and settings by their name and the fact's: "8 x 400", where its parts are alike."""
    parts: dict[tuple[str, str], Counter[str]] = {}
    values = values_of(facts)
    records = {value.part for value, text in values.items() if text == THERE}
    for value, text in values.items():
        topic, what = value.explained
        if topic in _SETUPS and value.member.rpartition(".")[2] not in _IDENTITIES and text != THERE:
            of = " ".join(value.part) if value.part not in records else ""  # not of one of several alike
            parts.setdefault((f"{what} {of}".strip(), value.fact), Counter())[text] += 1
    return {
        key: ", ".join(text if number == 1 else f"{number} x {text}" for text, number in sorted(counts.items()))
        for key, counts in parts.items()
    }


def _figures(report: Report) -> Iterator[Figure]:
    for one in report.measurements:
        if one.measured is not None and isfinite(one.measured):
            alike = [f"{one.ranks} ranks"] if one.ranks else []
            alike += [size(max(point.size for point in one.curve))] if one.curve else []
            what = ", ".join([f"{one.stage} {one.what}".strip(), *alike, *filter(None, (report.probe.means,))])
            yield Figure(one.nodes, "", what, one.measured, one.unit, one.expected)
    for gpu in report.gpus_alone:
        yield from (Figure((gpu.node,), gpu.pci, one.what, one.value, one.unit, one.usual) for one in gpu.figures)
