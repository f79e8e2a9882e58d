"""What was looked at, one line per topic: a mark, then what is wrong there, or what the nodes have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Outcome, Severity, Verdict
from ncheck.model.report import Report
from ncheck.model.system import System
from ncheck.report import measured as say
from ncheck.report import text as words
from ncheck.report.language import tr
from ncheck.report.listing import MEASURED, OWN, VERSIONS, short_topic
from ncheck.report.measured import BAD, WARNED, WELL
from ncheck.report.summary import DOUBTFUL, python_not_judged
from ncheck.report.text import FoldedFinding, counted

MOST = 12  # lines
_NAMED = 3  # codes in a line, and frameworks

SKIPPED = "skipped"  # a mark beside those of a measurement and DOUBTFUL: there was nothing to check


@dataclass(frozen=True)
class TopicLine:
    """One line. `checks` is the number of checks that have a verdict on a node that was examined."""

    mark: str
    topic: str
    text: str
    checks: int


def topic_lines(report: Report, findings: Sequence[FoldedFinding]) -> tuple[TopicLine, ...]:
    """Return a line for each topic that was looked at, in the order of the codes."""
    examined = [node.name for node in report.nodes if node.examined]
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in sorted(report.verdicts, key=lambda verdict: verdict.code):
        if verdict.outcome is Outcome.FAILED or not set(examined).isdisjoint(verdict.nodes):
            verdicts.setdefault(short_topic(verdict.code), []).append(verdict)
    if report.probe.ran:
        verdicts.setdefault(MEASURED, [])  # also where no check that was selected judges it
    causes: dict[str, list[FoldedFinding]] = {}
    for finding in findings:
        if finding.counts and finding.severity is not Severity.INFO:
            causes.setdefault(short_topic(finding.code), []).append(finding)
    systems = [system for system in report.systems if not set(examined).isdisjoint(system.nodes)]
    lines = []
    for topic, same in verdicts.items():
        mark, text = _answer(report, topic, same, causes.get(topic, ()), systems)
        if topic == OWN and mark in (WELL, SKIPPED):
            continue  # that ncheck itself worked is no news
        lines.append(TopicLine(mark, tr(topic), words.line(text), len({verdict.code for verdict in same})))
    return tuple(lines[:MOST])


def _answer(
    report: Report, topic: str, verdicts: Sequence[Verdict], causes: Sequence[FoldedFinding], systems: Sequence[System]
) -> tuple[str, str]:
    """Return the mark of a topic and its text: what is wrong, else what is unknown, else what the nodes have."""
    unknown = [one for one in verdicts if one.outcome in (Outcome.UNKNOWN, Outcome.CRASHED)]
    mark = BAD if any(one.severity is Severity.ERROR for one in causes) else WARNED
    if topic == MEASURED and report.probe.ran and (first := say.foremost(report.measurements)):
        text = tr("{title}: {verdict}", title=say.title(first, ""), verdict=say.verdict(first))
        return mark if causes else DOUBTFUL if unknown else say.tone_of(first), text
    if causes:
        codes = words.joined(sorted({one.code for one in causes}), _NAMED)
        nodes = words.node_set(tuple(dict.fromkeys(node for one in causes for node in one.nodes)))
        problems = tr(", ").join(counted(causes).problems)
        return mark, tr("{problems}: {codes} on {nodes}", problems=problems, codes=codes, nodes=nodes)
    if unknown:
        nodes = words.node_set(tuple(dict.fromkeys(node for one in unknown for node in one.nodes)))
        checks = words.count(len({one.code for one in unknown}), "check")
        return DOUBTFUL, tr("{checks} unknown on {nodes}", checks=checks, nodes=nodes)
    return _what_there_is(report, topic, verdicts, systems)


def _what_there_is(
    report: Report, topic: str, verdicts: Sequence[Verdict], systems: Sequence[System]
) -> tuple[str, str]:
    """Return the mark and the text of a topic without a problem."""
    if topic == MEASURED:
        return SKIPPED, tr("nothing: {reason}", reason=words.why(report.probe.reason, report.plan.blockers))
    if systems and all(_PART.get(topic) in system.absent for system in systems):
        return SKIPPED, tr("none on any node")
    if passed := {one.code for one in verdicts if one.outcome is Outcome.PASSED}:
        summary = tr(", ").join(_TELLING[topic](report, systems)) if topic in _TELLING else ""
        text = summary or tr("{checks} passed", checks=words.count(len(passed), "check"))
        if topic == VERSIONS and (missing := python_not_judged(report)):
            return DOUBTFUL, tr("; ").join((text, missing[0]))
        return WELL, text
    reasons = Counter(one.reason for one in verdicts if one.outcome is Outcome.SKIPPED)
    return SKIPPED, reasons.most_common(1)[0][0] if reasons else tr("nothing to check")


def _ssh(report: Report, _systems: Sequence[System]) -> Iterator[str]:
    """Yield "4 nodes reached", "port 10001", "as root"."""
    nodes = [node for node in report.nodes if node.reached]
    yield tr("{nodes} reached", nodes=words.count(len(nodes), "node"))
    if ports := {node.port for node in nodes if node.port}:
        yield tr("port {port}", port=ports.pop()) if len(ports) == 1 else words.count(len(ports), "port")
    if users := {node.user for node in nodes if node.user}:
        yield tr("as {user}", user=users.pop()) if len(users) == 1 else tr("as {number} users", number=len(users))


def _versions(_report: Report, systems: Sequence[System]) -> Iterator[str]:
    """Yield "the same on 4 nodes: NCCL 2.21.5", "Open MPI 4.1.5", "torch 2.4.0"."""
    values: dict[str, list[str | None]] = {
        "NCCL": [system.nccl for system in systems],
        tr("network plug-in"): [system.net_plugin for system in systems],
        **{name: [system.mpi_version if system.mpi == name else None for system in systems]
           for name in dict.fromkeys(system.mpi for system in systems) if name},
        "Horovod": [system.horovod for system in systems],
    }  # fmt: skip
    names = sorted({name for system in systems for name in system.frameworks or ()} - {"horovod"})
    for name in names[:_NAMED]:
        values[name] = [(system.frameworks or {}).get(name) for system in systems]
    found = {name: set(those) for name, those in values.items() if any(those)}
    parts = [
        f"{name} {min(map(str, those))}"
        if len(those) == 1
        else tr("{name} in {number} versions", name=name, number=len(those))
        for name, those in found.items()
    ]
    yield from _everywhere(systems, parts) if len(found) == sum(map(len, found.values())) else parts
    if not found:
        yield tr("no NCCL, MPI or framework found")


def _network(report: Report, systems: Sequence[System]) -> Iterator[str]:
    """Yield "16 links", "2 networks", "NCCL takes ib0"; of many nodes, which share of the links was tried."""
    networks, links = set[str](), 0
    for system in systems:
        usable = [wire for wire in system.interfaces or () if wire.running and wire.network]
        links += len(usable) * len(system.nodes)
        networks.update(wire.network for wire in usable)
    if links:
        yield words.count(links, "link")
        yield words.count(len(networks), "network")
    if report.mesh:
        yield report.mesh.sentence
    setting = report.plan.env.get("NCCL_SOCKET_IFNAME")
    if setting and setting.value:
        yield tr("NCCL takes {interface}", interface=setting.value.lstrip("="))
    elif setting and setting.decided and any(system.nccl for system in systems):
        yield tr("NCCL picks the right one by itself")


def _infiniband(_report: Report, systems: Sequence[System]) -> Iterator[str]:
    """Yield "32 ports Active at 400 Gb/s", and of AWS's network "32 EFA ports"."""
    ports = Counter[tuple[str, str]]()
    for system in systems:
        for port in system.ports or ():
            at = tr("{state} at {rate}", state=port.state, rate=f"{port.rate:g} Gb/s") if port.rate else port.state
            ports["EFA port" if port.link_layer == "EFA" else "port", at] += len(system.nodes)
    yield from (
        tr("{ports} {state}", ports=words.count(number, noun), state=state) for (noun, state), number in ports.items()
    )


def _gpus(_report: Report, systems: Sequence[System]) -> Iterator[str]:
    """Yield "the same on 4 nodes: 8 x NVIDIA H100 80GB HBM3", "driver 550.127.08"."""
    alike = {str(system.gpus) for system in systems}
    models, drivers = Counter[str](), set[str]()
    for system in systems:
        if system.gpus:
            drivers.add(system.gpus.driver)
            for name, number in system.gpus.models.items():
                models[name] = number if len(alike) == 1 else models[name] + number * len(system.nodes)
    parts = [f"{number} x {name}" for name, number in models.items()]
    one = len(drivers) == 1
    driver = tr("driver {version}", version=min(drivers)) if one else words.count(len(drivers), "driver")
    parts += [driver] if drivers else []
    yield from _everywhere(systems, parts) if len(alike) == 1 else parts


def _host(_report: Report, systems: Sequence[System]) -> Iterator[str]:
    """Yield what is the same everywhere: "Ubuntu 22.04.4 LTS", "kernel 5.15.0-105-generic", "1.97 TiB of memory"."""
    machines = [system.machine for system in systems if system.machine]
    values: tuple[tuple[str, Iterable[str | None]], ...] = (
        ("{}", (system.os for system in systems)),
        (tr("kernel {}"), (machine.kernel for machine in machines)),
        (tr("{} of memory"), (words.size(machine.memory) if machine.memory else None for machine in machines)),
    )
    parts = [form.format(*same) for form, those in values if len(same := set(those)) == 1 and all(same)]
    yield from _everywhere(systems, parts)


def _everywhere(systems: Sequence[System], parts: Sequence[str]) -> Iterator[str]:
    """Yield what was said, with the number of nodes of which it is true."""
    number = sum(len(system.nodes) for system in systems)
    first = tr("the same on {number} nodes: ", number=number) if number > 1 else ""
    yield from (f"{'' if place else first}{one}" for place, one in enumerate(parts))


_PART = {"GPUs": "gpus", "InfiniBand": "ports"}  # the member of System that says that there is none

_TELLING: dict[str, Callable[[Report, Sequence[System]], Iterable[str]]] = {
    "ssh": _ssh,
    VERSIONS: _versions,
    "network": _network,
    "InfiniBand": _infiniband,
    "GPUs": _gpus,
    "host": _host,
}
