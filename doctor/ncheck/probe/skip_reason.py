"""Why nothing was measured, for the report. Most runs measure nothing, and need not load measurements.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ncheck.facts.login import LoginFacts
from ncheck.hostlist import fold
from ncheck.model.cluster import FactType
from ncheck.model.fact import Absent, Unread
from ncheck.model.report import Probe
from ncheck.probe.facts import ProbeFacts

Facts = Mapping[FactType, object]


def ran_on(facts: Mapping[str, Facts]) -> dict[str, ProbeFacts]:
    """Return the nodes on which something was begun."""
    held = {node: of_node.get(ProbeFacts) for node, of_node in facts.items()}
    return {node: one for node, one in held.items() if isinstance(one, ProbeFacts) and one.results}


def nothing_measured(facts: Mapping[str, Facts]) -> Probe:
    """Return the probe of a run that measured nothing. Why nodes were not reached counts where nothing else does."""
    by_node = reasons(facts)
    of_reached = {node: why for node, why in by_node.items() if _reached(facts[node])}
    return Probe(ran=False, reason=_folded(of_reached or by_node))


def reasons(facts: Mapping[str, Facts]) -> dict[str, str]:
    """Return why nothing was begun, of the nodes that say so."""
    ran = ran_on(facts)
    by_node = {node: _reason(of_node.get(ProbeFacts)) for node, of_node in facts.items() if node not in ran}
    return {node: why for node, why in by_node.items() if why}


def grouped(texts: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Return each text once, with the nodes that have it."""
    groups: dict[str, list[str]] = {}
    for node, text in texts.items():
        groups.setdefault(text, []).append(node)
    return list(groups.items())


def with_nodes(groups: Iterable[tuple[str, list[str]]]) -> str:
    """Return texts in one, each behind its nodes: "node[01-03]: refused; node04: timed out"."""
    return "; ".join(f"{fold(nodes)}: {text}" for text, nodes in groups)


def _reached(facts: Facts) -> bool:
    login = facts.get(LoginFacts)
    return not isinstance(login, LoginFacts) or login.login.reached


def _reason(fact: object) -> str:
    """Return why a node has nothing to tell; "" for one that was never to be asked."""
    if isinstance(fact, ProbeFacts):
        return next((one.why for one in fact.skipped), fact.note or "no step was run")
    return fact.reason if isinstance(fact, (Absent, Unread)) else ""


def _folded(by_node: Mapping[str, str]) -> str:
    """Return the reasons with their nodes, what most nodes say first; a reason of all needs no names."""
    groups = grouped(by_node)
    if len(groups) > 1:
        return with_nodes(sorted(groups, key=lambda group: -len(group[1])))
    return groups[0][0] if groups else "no check that was selected needs it"
