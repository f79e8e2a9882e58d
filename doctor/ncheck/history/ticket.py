"""A ticket for the vendor: what a recording and the history know of one node, as files to attach.

ticket.md is one page, the summary first; the other files are what it is made of. Secrets are removed from all of them;
host names and addresses remain, because the vendor has to find the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ncheck.facts.kernel_log import HOLDING, kernel_log
from ncheck.fleet.recording import encode
from ncheck.history.entry import Figure
from ncheck.history.past import Incident, NodePast, Past
from ncheck.history.show import as_json as history_as_json
from ncheck.history.show import tables
from ncheck.history.times_in_words import minute
from ncheck.lazy_dataclass import dataclass
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.op import Op
from ncheck.model.plan import LaunchPlan
from ncheck.model.report import Report
from ncheck.model.system import Hardware
from ncheck.redact import redact, redact_record, redact_value
from ncheck.report import measured as say
from ncheck.report import text as words
from ncheck.report.environment import environment
from ncheck.report.json import as_json
from ncheck.report.markdown import code_block
from ncheck.report.tables import as_markdown, escaped

if TYPE_CHECKING:
    from ncheck.history.store import Span
    from ncheck.model.evidence import Evidence

FIRST_LINE = "Host names, addresses and serial numbers are in these files; secrets were removed."
_ON_PAGE = 30  # kernel lines, rows of a table: the other files have all
_IN_FILE = 2000  # kernel lines
_ABOVE = ("Machine", "GPU")  # rows of the environment that the summary has
_RAN_NOT = (Outcome.UNKNOWN, Outcome.CRASHED)

Files = dict[str, str]


@dataclass(frozen=True)
class KnownOfNode:
    """What is known of the node. `report` and `evidence` are None without a recording, `past` is without a history that
    has the node. `recorded`: when the recording was made, in seconds since 1970, None if it does not say.
    """

    node: str
    report: Report | None = None
    evidence: Evidence | None = None
    recorded: float | None = None
    past: Past | None = None
    spans: Sequence[Span] = ()

    @property
    def own_past(self) -> NodePast | None:
        return self.past.of(self.node) if self.past else None


@dataclass(frozen=True)
class HardwareFault:
    """A fault of the hardware, as the summary names it. `since`: in seconds since 1970, None if no history has it."""

    code: str
    check: str
    what: str
    since: float | None


def faults_of(known: KnownOfNode) -> tuple[HardwareFault, ...]:
    """Return the faults of the hardware that the recording shows; without one, those that the last run still found."""
    if known.report is None:
        return tuple(
            HardwareFault(one.seen.code, one.seen.check, one.seen.summary, one.began)
            for one in _incidents(known)
            if one.seen.hardware and one.ended is None
        )
    own = [one for one in known.report.findings if _is_fault(known, one)]
    codes = {one.code for one in own}
    return tuple(
        HardwareFault(one.code, one.check, one.summary or one.message, _since(known, one.code))
        for one in own
        if codes.isdisjoint(one.see)  # else it follows from another fault of these
    )


def _is_fault(known: KnownOfNode, one: Finding) -> bool:
    return known.node in one.nodes and one.hardware and one.severity is not Severity.INFO


def ticket_files(known: KnownOfNode) -> Files:
    """Return the content of each file of the ticket, by its path in it."""
    node = known.node
    files = {"ticket.md": redact("\n\n".join(_page(known)) + "\n")}
    if known.report is not None:
        files["report.json"] = as_json(redact_record(of_node(known.report, node)))
    if known.evidence is not None:
        files["recording/node.json"] = encode(known.evidence, 0, 1)
        lines = _kernel(known.evidence)
        if not isinstance(lines, str):
            files["kernel.txt"] = redact("".join(f"{words.line(line)}\n" for line in lines))
    if known.past is not None and known.own_past:
        text = history_as_json(known.past, {node})
        files["history.json"] = json.dumps(redact_value(json.loads(text)), indent=2) + "\n"
    return files


def of_node(report: Report, node: str) -> Report:
    """Return the report of one node: what names other nodes alone, and the launch plan, is left out."""
    return replace(
        report,
        nodes=tuple(one for one in report.nodes if one.name == node),
        verdicts=tuple(replace(one, nodes=(node,)) for one in report.verdicts if node in one.nodes),
        findings=tuple(one for one in report.findings if node in one.nodes),
        plan=LaunchPlan(),
        measurements=tuple(one for one in report.measurements if node in one.nodes),
        probe=replace(
            report.probe,
            pairs=tuple(one for one in report.probe.pairs if node in one.nodes),
            traffic=tuple(one for one in report.probe.traffic if one.node == node),
        ),
        dropped={name: why for name, why in report.dropped.items() if name == node},
        bad=tuple(one for one in report.bad if one.node == node),
        drain=tuple(name for name in report.drain if name == node),
        gpus_alone=tuple(one for one in report.gpus_alone if one.node == node),
        boards=tuple(replace(one, nodes=(node,)) for one in report.boards if node in one.nodes),
        systems=tuple(replace(one, nodes=(node,)) for one in report.systems if node in one.nodes),
        hardware=tuple(one for one in report.hardware if one.node == node),
        news=(),
    )


def _page(known: KnownOfNode) -> Iterator[str]:
    """Yield the paragraphs of ticket.md."""
    yield FIRST_LINE
    yield f"# {escaped(headline(known))}"
    yield as_markdown(("", ""), _identity(known))
    faults = faults_of(known)
    if faults:
        yield as_markdown(
            ("fault", "since", "what"),
            ((f"{one.code} {one.check}", _when(one.since), one.what) for one in faults),
        )
    yield "## Before a reboot or a reset"
    yield f"Run on {escaped(known.node)}, and attach what these lines write. A reboot clears a part of it."
    yield code_block("\n".join(_before(known)))
    if known.report is not None:
        yield from _found(known.report, known)
    yield from _parts(known)
    if known.report is not None:
        yield from _measured(known.report, known.node)
    yield from _log(known)
    yield from _history(known)
    names = "report.json, recording/, kernel.txt and history.json"
    yield f"Beside this page, as far as they are there: {names}. `ncheck replay recording` judges the answers again."


def headline(known: KnownOfNode) -> str:
    """Say in one line what is claimed. What could not be looked at is never good."""
    if faults := faults_of(known):
        shown = words.joined(list(dict.fromkeys(f"{one.code} {one.check}" for one in faults)), 3)
        return f"{known.node}: {words.count(len(faults), 'hardware fault')}: {shown}"
    return f"{known.node}: no hardware fault found{_limits(known)}"


def _limits(known: KnownOfNode) -> str:
    """Say what keeps "no fault" from being a proof: a node that was not reached, checks that could not run."""
    if known.report is None:
        own = known.own_past
        return f" (by the history alone: {own.state} in the last run)" if own else ""
    if not any(one.examined for one in known.report.nodes if one.name == known.node):
        return ", because it could not be examined"
    count = sum(known.node in one.nodes and one.outcome in _RAN_NOT for one in known.report.verdicts)
    return f"; {words.count(count, 'check')} could not run" if count else ""


def _identity(known: KnownOfNode) -> Iterator[tuple[str, str]]:
    hardware = _hardware(known)
    yield "node", known.node
    if known.report is not None:
        for one in known.report.nodes:
            if one.name == known.node and one.address:
                yield "address", one.address
    yield "host name", hardware.host_name or "unknown"
    yield "serial number of the machine", hardware.serial or "unknown: only root reads it (ncheck --sudo)"
    if known.report is not None:
        when = minute(known.recorded) if known.recorded else "at an unknown time"
        yield "recorded", f"{when}, judged by ncheck {known.report.version}"
        for row in environment(of_node(known.report, known.node)):
            if row.name in _ABOVE:
                yield row.name, "; ".join(value for value, _ in row.values)
    else:
        yield "recorded", "no: only the history is here; ncheck nodes.txt --record DIR, then --from DIR"


def _before(known: KnownOfNode) -> Iterator[str]:
    report = known.report
    system = report.system_of.get(known.node) if report else None
    if not (system and system.gpus and system.gpus.rocm):
        yield "sudo nvidia-bug-report.sh      # writes nvidia-bug-report.log.gz"
    yield "sudo sos report --batch        # older systems: sudo sosreport --batch"


def _found(report: Report, known: KnownOfNode) -> Iterator[str]:
    """Yield the findings that name the node, faults of the hardware first, with the lines that show them."""
    own = [one for one in report.findings if known.node in one.nodes and one.severity is not Severity.INFO]
    own.sort(key=lambda one: (not _is_fault(known, one), one.severity.rank))
    yield "## What was found"
    if not own:
        yield "Nothing."
    for one in own[:_ON_PAGE]:
        kind = "hardware" if one.hardware else "not a fault of the hardware by itself"
        since = _since(known, one.code)
        yield f"### {one.code} {escaped(one.check)}: {one.severity.value}, {kind}" + (
            f", since {_when(since)}" if since else ""
        )
        yield escaped(one.message)
        if one.evidence:
            yield code_block("\n".join(one.evidence[:_ON_PAGE]))
    if len(own) > _ON_PAGE:
        yield f"and {len(own) - _ON_PAGE} more: see report.json"


def _parts(known: KnownOfNode) -> Iterator[str]:
    hardware = _hardware(known)
    yield "## Parts"
    gpus = [(pci, uuid, hardware.gpu_serials.get(pci, "unknown")) for pci, uuid in hardware.gpus.items()]
    if gpus:
        yield as_markdown(("GPU at", "UUID", "serial number"), gpus)
    if hardware.vbios:
        yield f"VBIOS: {escaped(', '.join(hardware.vbios))}"
    if hardware.hcas:
        yield as_markdown(("HCA", "GUID"), hardware.hcas.items())
    if not (gpus or hardware.hcas):
        yield "No GPU and no HCA is known."
    if known.report is None:
        yield "Firmware and driver versions are not in the history: they need a recording (--from DIR)."
    else:
        rows = [row for row in environment(of_node(known.report, known.node)) if row.name not in _ABOVE]
        if rows:
            yield as_markdown(("", ""), ((row.name, "; ".join(value for value, _ in row.values)) for row in rows))
    counters = sorted(hardware.counters.items(), key=lambda one: -one[1])
    if counters:
        yield "Errors since the driver was loaded:"
        yield as_markdown(("counter", "errors"), ((name, str(count)) for name, count in counters[:_ON_PAGE]))


def _hardware(known: KnownOfNode) -> Hardware:
    """Return what identifies the node and its parts: by the recording, else as the last run in the history saw it."""
    for one in known.report.hardware if known.report else ():
        if one.node == known.node:
            return one
    last: dict[str, dict[str, tuple[float, str, str]]] = {}
    for seen in known.spans:
        kept = seen.kept
        if kept.node == known.node and seen.last >= last.get(kept.kind, {}).get(kept.place, (0.0,))[0]:
            last.setdefault(kept.kind, {})[kept.place] = seen.last, kept.value, kept.detail
    values = {kind: {place: value for place, (_, value, _) in places.items()} for kind, places in last.items()}
    serials = {place: serial for place, (_, _, serial) in last.get("gpu", {}).items() if serial}
    return Hardware(
        known.node,
        values.get("host", {}).get("", ""),
        values.get("boot", {}).get("", ""),
        values.get("machine", {}).get("", ""),
        gpus=values.get("gpu", {}),
        gpu_serials=serials,
        hcas=values.get("hca", {}),
        counters={name: int(count) for name, count in values.get("counter", {}).items() if count.isdecimal()},
    )


def _measured(report: Report, node: str) -> Iterator[str]:
    """Yield what was measured with the node, beside what its links, the other GPUs or the other pairs give."""
    rows = [(say.title(one, ""), say.verdict(one)) for one in report.measurements if node in one.nodes]
    for pair in report.probe.pairs:
        if node in pair.nodes:
            value = "failed" if pair.busbw is None else f"{pair.busbw:.4g} GB/s"
            op = "" if pair.op == Op.ALL_REDUCE.value else f"{pair.op} "
            rows.append((f"{op}pair {' - '.join(pair.nodes)}", f"{value} ({pair.standing.value})"))
    for gpu in report.gpus_alone:
        if gpu.node == node:
            rows += [
                (
                    f"GPU {gpu.pci} {one.what}",
                    _figure(Figure((node,), gpu.pci, one.what, one.value, one.unit, one.usual)),
                )
                for one in gpu.figures
            ]
            rows += [(f"GPU {gpu.pci}", f"failed: {gpu.failed}")] if gpu.failed else []
    if rows:
        yield "## Measured"
        yield as_markdown(("what", "result"), rows[:_ON_PAGE])
        if len(rows) > _ON_PAGE:
            yield f"and {len(rows) - _ON_PAGE} more: see report.json"


def _figure(one: Figure) -> str:
    usual = f"; usual {one.usual:.4g} {one.unit}" if one.usual is not None else ""
    return f"{one.value:.4g} {one.unit}{usual}"


def _log(known: KnownOfNode) -> Iterator[str]:
    yield "## Kernel log"
    if known.evidence is None:
        yield "Not here: the history keeps no kernel lines. They need a recording (--from DIR)."
        return
    lines = _kernel(known.evidence)
    if isinstance(lines, str):
        yield f"Not read: {escaped(lines)}"
    elif not lines:
        yield "No line about hardware that fails, since the boot or the oldest line that is kept."
    else:
        yield code_block("\n".join(lines[-_ON_PAGE:]))
        if len(lines) > _ON_PAGE:
            yield f"These are the last {_ON_PAGE} of {len(lines)} lines: see kernel.txt"


def _kernel(evidence: Evidence) -> tuple[str, ...] | str:
    """Return the lines about hardware, GPUs and disks, the newest last; or why there are none."""
    log = kernel_log(evidence)
    if isinstance(log, (Unread, Absent)):
        return log.reason
    signs = HOLDING.split("|")
    return tuple(line for line in log.lines if any(sign in line for sign in signs))[-_IN_FILE:]


def _history(known: KnownOfNode) -> Iterator[str]:
    yield "## History"
    own = known.own_past
    if known.past is None or own is None:
        yield "No history has this node." if known.past else "No history was given (--history FILE)."
        return
    first, last = known.past.runs[0].time, known.past.runs[-1].time
    yield escaped(
        f"Bad in {own.bad} of {own.runs} runs from {minute(first)} to {minute(last)}, unreached in {own.unreached}"
        + ("; it fails more often than the other nodes" if own.stands_out else "")
    )
    incidents, *others = tables(known.past, {known.node})
    for table in (incidents, *(one for one in others if not one.series)):  # what was measured has its own part
        if table is not incidents:
            yield f"### {escaped(table.title)}"
        if table.rows:
            yield as_markdown(table.columns, table.rows[:_ON_PAGE])


def _incidents(known: KnownOfNode) -> tuple[Incident, ...]:
    return known.own_past.incidents if known.own_past else ()


def _since(known: KnownOfNode, code: str) -> float | None:
    """Return when the last incident of this check began, if it had not ended when the recording was made."""
    same = [one for one in _incidents(known) if one.seen.code == code]
    last = same[-1] if same else None
    if last is None or (last.ended is not None and last.ended <= (known.recorded or last.ended)):
        return None
    return last.began


def _when(time: float | None) -> str:
    return minute(time) if time else "unknown"
