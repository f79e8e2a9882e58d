"""The report as metrics for the textfile collector of node_exporter, or anything else that reads OpenMetrics.

Write it to a file of the collector's folder: -o openmetrics=/var/lib/node_exporter/ncheck.prom. All metrics are gauges
without time stamps, because the collector reads Prometheus' older text format and takes no others. The heartbeat
ncheck_run_timestamp_seconds is when the run began: an alert on its age shows a writer that died, whose last file stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TextIO

from ncheck.model.op import Op
from ncheck.model.report import Measurement, Report, Standing
from ncheck.report import text as words
from ncheck.report.state import of_cluster
from ncheck.report.summary import BAD, DOUBTFUL, OUTCOMES, WARNED, WELL, by_outcome
from ncheck.report.text import counted, fold_findings

_STATES = {WELL: "clean", WARNED: "warnings", DOUBTFUL: "not_verified", BAD: "not_ready"}
_GIGA = 1e9
_MOST_COUNTERS, _MOST_FIGURES = 64, 16  # of a node, the largest first; of a GPU

Sample = tuple[Mapping[str, str], float]


def print_report(report: Report, stream: TextIO, environ: Mapping[str, str], *, color: bool | None = None) -> None:  # noqa: ARG001  metrics have no colours
    """Write the metrics."""
    for name, description, samples in _families(report):
        stream.write(f"# HELP {name} {description}\n# TYPE {name} gauge\n")
        stream.writelines(f"{name}{_labels(labels)} {_number(value)}\n" for labels, value in samples)
    stream.write("# EOF\n")


def _families(report: Report) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    """Yield the metrics: name, description, samples. A name, once there, keeps its meaning."""
    state = of_cluster(report).kind
    began = datetime.fromisoformat(report.time).timestamp() if report.time else 0.0
    yield "ncheck_run_timestamp_seconds", "When the run began, in Unix time: the heartbeat.", [({}, began)]
    yield "ncheck_run_duration_seconds", "How long the run took.", [({}, report.seconds)]
    origin = {name: getattr(report, name) for name in ("version", "host", "user", "command")}
    yield "ncheck_run_info", "Version, host, user and command line of the run.", [(origin, 1)]
    yield "ncheck_run_interrupted", "1 if the run was interrupted.", [({}, report.interrupted)]
    yield "ncheck_run_partial", "1 if only some checks ran (--select, --failed-of).", [({}, bool(report.select))]
    yield "ncheck_run_recorded", "1 if a recording was judged: nothing in it is live.", [({}, report.recorded)]
    yield "ncheck_exit_code", "Exit code of the run.", [({}, report.exit_code)]
    states = [({"state": word}, kind == state) for kind, word in _STATES.items()]
    yield "ncheck_state", "1 for the state of the cluster; what could not be checked is not_verified.", states
    reached = [({"node": node.name}, node.reached) for node in report.nodes]
    yield "ncheck_node_reached", "1 if the login to the node succeeded.", reached
    good = "1 if a job can use the node; 0 if not, or if a check could not run; absent if only some ran, and it passed."
    yield "ncheck_node_good", good, _good(report)
    outcomes = Counter((node, word) for word, verdict in by_outcome(report) for node in verdict.nodes)
    verdicts = [
        ({"node": node.name, "outcome": word.replace(" ", "_")}, outcomes[node.name, word])
        for node in report.nodes
        for word in OUTCOMES
    ]
    yield "ncheck_node_verdicts", "Number of checks of the node by outcome.", verdicts
    findings = [finding for finding in fold_findings(report.findings) if not finding.ignored]
    counts = counted(findings)
    severities = {
        "error": counts.errors, "warning": counts.warnings, "info": counts.infos, "consequence": counts.consequences,
    }  # fmt: skip
    yield (
        "ncheck_findings",
        "Number of findings by severity; what follows from another finding is a consequence.",
        [({"severity": word}, number) for word, number in severities.items()],
    )
    named = dict.fromkeys((one.code, one.check, one.label, node) for one in findings for node in one.nodes)
    keys = ("code", "check", "severity", "node")
    yield "ncheck_finding", "1 for each finding and node.", [(dict(zip(keys, one, strict=True)), 1) for one in named]
    yield from _measured(report)
    yield (
        "ncheck_node_errors",
        f"Errors of ports and cards since the driver was loaded; those above 0, {_MOST_COUNTERS} of a node at most.",
        _once(("node", "counter"), (
            ((one.node, name), count)
            for one in report.hardware
            for name, count in sorted(one.counters.items(), key=lambda counter: -counter[1])[:_MOST_COUNTERS]
        )),
    )  # fmt: skip
    yield (
        "ncheck_gpu_figure",
        "What --gpu-test measured of each GPU, in the unit.",
        _once(("node", "pci", "uuid", "what", "unit"), (
            ((gpu.node, gpu.pci, gpu.uuid, one.what, one.unit), one.value)
            for gpu in report.gpus_alone
            for one in gpu.figures[:_MOST_FIGURES]
        )),
    )  # fmt: skip


def _once(keys: tuple[str, ...], samples: Iterable[tuple[tuple[str, ...], float]]) -> list[Sample]:
    """Return each sample once: names that look alike when they are cleaned would make the whole file invalid."""
    values = {tuple(map(words.line, labels)): value for labels, value in samples}
    return [(dict(zip(keys, labels, strict=True)), value) for labels, value in values.items()]


def _good(report: Report) -> list[Sample]:
    bad = {bad.node for bad in report.bad} | set(report.dropped)
    names = dict.fromkeys((*(node.name for node in report.nodes), *report.dropped))
    samples = [({"node": name}, name not in bad and not report.interrupted) for name in names]
    return [sample for sample in samples if not (sample[1] and report.select)]


def _measured(report: Report) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    worst: dict[tuple[str, ...], Measurement] = {}
    for one in report.measurements:
        op = "" if one.op == Op.ALL_REDUCE.value else words.line(one.op)
        key = (one.stage, words.line(one.what), words.node_set(one.nodes), words.line(one.by), op)
        if key not in worst or (one.measured or 0.0) < (worst[key].measured or 0.0):
            worst[key] = one
    keys = ("stage", "what", "nodes", "by", "op")  # without an `op` it is an all-reduce
    rows = [
        ({name: value for name, value in zip(keys, key, strict=True) if value or name != "op"}, one)
        for key, one in worst.items()
    ]
    yield (
        "ncheck_bandwidth_bytes_per_second",
        "Bus bandwidth that was measured; absent if the test failed.",
        [(labels, one.measured * _GIGA) for labels, one in rows if one.measured is not None],
    )
    yield (
        "ncheck_bandwidth_expected_bytes_per_second",
        "Bus bandwidth that the links should give.",
        [(labels, one.expected * _GIGA) for labels, one in rows if one.expected is not None],
    )
    yield (
        "ncheck_bandwidth_spread_ratio",
        "From the fastest repeat to the slowest, as a share of the median; absent if unknown.",
        [
            (labels, one.protocol.spread)
            for labels, one in rows
            if one.protocol is not None and one.protocol.spread is not None
        ],
    )
    yield (
        "ncheck_bandwidth_standing",
        "1 for how each measured bandwidth compares with what it should be.",
        [
            ({**labels, "standing": standing.value}, one.standing is standing)
            for labels, one in rows
            for standing in Standing
        ],
    )


def _labels(labels: Mapping[str, str]) -> str:
    """Return {node="gpu01"}; the value without what would end it."""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(value: str) -> str:
    return words.line(value).replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
