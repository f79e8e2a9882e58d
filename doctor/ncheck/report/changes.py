"""`ncheck diff OLD NEW`: what changed between two recordings, by node, worst first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields

from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.model.report import NodeSummary, Report
from ncheck.model.system import System, SystemInterface
from ncheck.report.json import without_delete
from ncheck.text import printable

_SERIOUS = {severity.value: at for at, severity in enumerate(Severity)}
WORSE, OTHER, BETTER = "worse", "other", "better"


@dataclass(frozen=True)
class Change:
    """One thing that differs. `how`: worse, better, or other (a version, a count: neither by itself)."""

    how: str
    nodes: tuple[str, ...]
    what: str
    severity: str = ""  # of the finding that came or went


def changes(old: Report, new: Report) -> tuple[Change, ...]:
    """Return what changed, worst first; the same change on several nodes is one."""
    found = [*_reached(old, new), *_findings(old, new), *_systems(old, new)]
    merged: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        merged.setdefault((one.how, one.severity, one.what), []).extend(one.nodes)
    folded = [
        Change(how, tuple(dict.fromkeys(nodes)), what, severity) for (how, severity, what), nodes in merged.items()
    ]
    order = (WORSE, OTHER, BETTER)
    return tuple(sorted(folded, key=lambda one: (order.index(one.how), _SERIOUS.get(one.severity, -1))))


def _reached(old: Report, new: Report) -> Iterator[Change]:
    before, after = ({node.name: node for node in report.nodes} for report in (old, new))
    for name in dict.fromkeys((*before, *after)):
        was, is_ = before.get(name), after.get(name)
        if was is None:
            yield Change(OTHER, (name,), "is new")
        elif is_ is None:
            yield Change(OTHER, (name,), "is no longer listed")
        elif was.reached and not is_.reached:
            yield Change(WORSE, (name,), f"is not reached: {is_.cause}")
        elif is_.reached and not was.reached:
            yield Change(BETTER, (name,), f"is reached again; it was not: {was.cause}")


def _findings(old: Report, new: Report) -> Iterator[Change]:
    """Yield the findings that came or went, node by node. What is not read any longer has not got better."""
    before, after = _by_node(old), _by_node(new)
    known = {(one.code, node): one.outcome for one in new.verdicts for node in one.nodes}
    for key, finding in after.items():
        if key not in before:
            yield Change(WORSE, (key[1],), _shown(finding), finding.severity.value)
    for key, finding in before.items():
        if key not in after:
            went = known.get(key) is Outcome.PASSED
            how, word = (BETTER, "no longer") if went else (OTHER, "cannot be seen any longer")
            yield Change(how, (key[1],), f"{word}: {_shown(finding)}", finding.severity.value)


def _by_node(report: Report) -> dict[tuple[str, str], Finding]:
    return {(finding.code, node): finding for finding in report.findings for node in finding.nodes}


def _shown(finding: Finding) -> str:
    return f"{finding.code} {finding.check}: {finding.summary or finding.message}"


def _systems(old: Report, new: Report) -> Iterator[Change]:
    """Yield the values of a node that are others now; one that could not be read once is not compared."""
    after, were, are = {node.name: node for node in new.nodes if node.reached}, old.system_of, new.system_of
    for node in old.nodes:
        if not node.reached or node.name not in after:
            continue
        was, is_ = were[node.name], are[node.name]
        before, now = _flat(was, node), _flat(is_, after[node.name])
        for name in dict.fromkeys((*before, *now)):
            if name.partition(" ")[0] in {**was.unknown, **is_.unknown} or before.get(name) == now.get(name):
                continue
            yield Change(OTHER, (node.name,), f"{name}: {before.get(name, 'none')} -> {now.get(name, 'none')}")


def _flat(system: System, node: NodeSummary) -> dict[str, str]:
    """Return the values of a node by name, one a line: "ports mlx5_0:1 rate"."""
    flat: dict[str, str] = {}
    for field in fields(System):
        value = getattr(system, field.name)
        if field.name in ("nodes", "absent", "unknown") or value is None:
            continue
        if field.name == "system_cudnn":
            flat[field.name] = ", ".join(value)
        elif isinstance(value, tuple):
            for one in value:
                held = {key: held for key, held in vars(one).items() if key not in ("name", "network")}
                if isinstance(one, SystemInterface):
                    held["addresses"] = node.addresses.get(one.name, ())
                flat |= {f"{field.name} {one.name} {key}": str(inner) for key, inner in held.items()}
        elif isinstance(value, Mapping):
            flat |= {f"{field.name} {key}": str(held) for key, held in value.items()}
        elif isinstance(value, str):
            flat[field.name] = value
        else:
            flat |= {f"{field.name} {key}": str(held) for key, held in asdict(value).items()}
    return flat


def changes_json(found: tuple[Change, ...]) -> str:
    return without_delete(json.dumps({"changes": [asdict(one) for one in found]}, indent=2)) + "\n"


def changes_text(found: tuple[Change, ...]) -> str:
    """Return one line per change, for people."""
    if not found:
        return "Nothing changed.\n"
    signs = {WORSE: "✗", OTHER: "·", BETTER: "✓"}
    lines = [f"{signs[one.how]} {fold(one.nodes)}: {printable(one.what, 400)}" for one in found]
    worse = sum(one.how == WORSE for one in found)
    last = f"{len(found)} changes, {worse} for the worse" if len(found) > 1 else "1 change"
    return "\n".join([*lines, "", last]) + "\n"
