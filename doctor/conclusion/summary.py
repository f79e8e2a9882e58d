"""One node in a few words, for the head of the report."""

from __future__ import annotations

from collections import Counter

from doctor.engine import Facts
from doctor.model.evidence import Evidence
from doctor.model.fact import Absent, Unread
from doctor.model.facts import (
    GpuFacts,
    HorovodFacts,
    InfinibandFacts,
    InterpreterFacts,
    LoadedNcclFacts,
    MpiFacts,
    NicFacts,
)
from doctor.model.report import NodeSummary


def summarise(evidence: Evidence, facts: Facts) -> NodeSummary:
    """Return the node's summary: what was reached, by which way, and a line a topic."""
    login, greeting = evidence.login, evidence.greeting
    interpreter = facts.get(InterpreterFacts)
    return NodeSummary(
        name=evidence.node,
        reached=login.reached,
        address=login.address,
        port=login.port,
        user=login.user,
        transport=login.transport,
        host_name=greeting.host_name if greeting else "",
        interpreter=_interpreter(interpreter),
        container=interpreter.container if isinstance(interpreter, InterpreterFacts) else "",
        slots=evidence.slots,
        seconds=round(login.seconds, 3),
        recorded=evidence.recorded,
        cause=login.cause.value if login.cause else "",
        detail=login.detail,
        facts=_lines(facts),
    )


def _interpreter(fact: object) -> str:
    if isinstance(fact, InterpreterFacts):
        return f"{fact.path} {fact.version} ({fact.how})"
    return f"unknown: {fact.reason}" if isinstance(fact, Unread) else ""


def _lines(facts: Facts) -> dict[str, str]:
    """Say each topic that was asked for; what is absent or unread says so."""
    told: dict[str, str] = {}
    for topic, fact in _TOPICS.items():
        value = facts.get(fact)
        if isinstance(value, Absent):
            told[topic] = "none"
        elif isinstance(value, Unread):
            told[topic] = f"unknown: {value.reason}"
        elif value is not None:
            told[topic] = _told(value)
    return told


def _told(fact: object) -> str:  # noqa: PLR0911  one line a kind of fact
    match fact:
        case GpuFacts():
            return _counted(gpu.name for gpu in fact.gpus) + f", driver {fact.driver}"
        case LoadedNcclFacts():
            return f"{fact.version} from {fact.path}"
        case MpiFacts():
            return f"{fact.implementation} {fact.version}"
        case HorovodFacts():
            return fact.version
        case InfinibandFacts():
            return _counted(f"{port.rate:g} Gb/s {port.state}" if port.rate else port.state for port in fact.ports)
        case NicFacts():
            usable = [nic for nic in fact.interfaces if nic.usable or nic.uplink]
            wires = (f"{nic.name} {nic.addresses[0].network}" for nic in usable if nic.addresses)
            return ", ".join(wires) or "none usable"
    return ""


def _counted(names: object) -> str:
    counts = Counter(names)  # type: ignore[call-overload]
    return " + ".join(f"{count} x {name}" for name, count in counts.items())


_TOPICS: dict[str, type[object]] = {
    "GPUs": GpuFacts,
    "NCCL": LoadedNcclFacts,
    "MPI": MpiFacts,
    "Horovod": HorovodFacts,
    "InfiniBand": InfinibandFacts,
    "network": NicFacts,
}
