"""What stands against giving out a plan, and against starting a job by it: one rule, for plan, launch and probe.

An error touches the plan when its check looks at a fact that the plan is made of, or tells of ncheck itself or of
the way to a node (NC0, NC1). So does what such a check could not tell, where --fail-on counts the unknown. Neither does
what was ignored, nor what is bad in another way (a clock, an Xid of last week), nor what the plan itself mends. Ranks
that ncheck starts itself need less than a job: no MPI, and no ssh from node to node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ncheck.conclude import excused_pairs
from ncheck.facts.horovod import HorovodFacts
from ncheck.facts.links import ListenFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.nccl_pick import PlannedPickFacts
from ncheck.facts.probe import ProbeFacts
from ncheck.facts.ssh_peers import PeerSshFacts
from ncheck.hostlist import fold
from ncheck.model.check import Check
from ncheck.model.cluster import FactType
from ncheck.model.finding import Outcome, Severity
from ncheck.model.report import Report
from ncheck.plan import PLAN_FACTS
from ncheck.settings import Settings

_ALWAYS = ("NC0", "NC1")


NOT_REACHED = "NC001"


# What a line relies on although no value in it is made of it: the port of the meeting, that NCCL follows it, and the
# nodes' own ssh.
RELIED_ON = frozenset((*PLAN_FACTS, ListenFacts, PlannedPickFacts, PeerSshFacts))


OF_MPI = frozenset((MpiFacts, MpiDaemonFacts))


BY_MPI = (None, "mpirun", "horovodrun")  # the launchers that need one


BY_AGENTS = "agents"  # no launcher: ncheck starts the ranks by the connections that it has


# What NCCL would do as it is set now, and does not where the plan sets the variable.
PICKED_ASTRAY = ("NC304", "NC307", "NC320", "NC321", "NC322", "NC323", "NC325")


NO_PICK = "NC321"  # nothing is picked at all: that ends the ranks of one node, too


# What mpirun would not find on a node, or find of another release, without --prefix.
DAEMON_ASTRAY = ("NC209", "NC210")


@dataclass(frozen=True)
class Objection:
    """One thing that is against it, on which nodes, and something to type ("" where another one has that)."""

    told: str
    nodes: tuple[str, ...]
    fix: str = ""
    code: str = ""  # of its finding

    @property
    def message(self) -> str:
        return self.told


def objections(report: Report, checks: Sequence[Check], settings: Settings) -> tuple[Objection, ...]:
    """Return all that stands against the report's plan, errors first."""
    relied = relied_on(settings.launcher)
    touching = {check.code for check in checks if touches(check, relied) and not mended(check.code, report)}
    return (*_errors(report, touching), *_unknown(report, touching, checks, settings))


def touches(check: Check, relied: frozenset[FactType]) -> bool:
    """Tell whether the check looks at what the plan is made of."""
    if measures(check):  # measured under the plan, when it had been given out
        return False
    always = check.code.startswith(_ALWAYS) and PeerSshFacts not in check.reads
    return always or not relied.isdisjoint((*check.reads, *check.also))


def measures(check: Check) -> bool:
    """Tell whether the check judges what the probe measured."""
    return ProbeFacts in check.reads


def launcher_of_probe(settings: Settings) -> str:
    """Return what the probe relies on to start its ranks."""
    return "mpirun" if settings.probe_launcher == "mpirun" or settings.probe == "nccl-tests" else BY_AGENTS


def for_the_probe(check: Check, settings: Settings) -> bool:
    """Tell whether ncheck probe runs the check: it judges what was measured, or touches the plan of that."""
    return measures(check) or touches(check, relied_on(launcher_of_probe(settings)))


def no_use_for(check: Check, launcher: str | None) -> bool:
    """Tell whether the check is about an MPI that a line of this launcher does without."""
    return launcher not in BY_MPI and not OF_MPI.isdisjoint((*check.reads, *check.also))


def relied_on(launcher: str | None) -> frozenset[FactType]:
    """Return the facts that a line of this launcher relies on."""
    if launcher == BY_AGENTS:
        return RELIED_ON - OF_MPI - {PeerSshFacts}
    own: frozenset[FactType] = frozenset((HorovodFacts,) if launcher == "horovodrun" else ())
    return (RELIED_ON if launcher in BY_MPI else RELIED_ON - OF_MPI) | own


def mended(code: str, report: Report) -> bool:
    """Tell whether the plan keeps the job from what this check tells of; one node alone is led nowhere by NCCL."""
    plan = report.plan
    if code in PICKED_ASTRAY:
        if len(report.nodes) == 1 and code != NO_PICK:
            return True
        settings = [values.get("NCCL_SOCKET_IFNAME") for values in (plan.env, *plan.per_node.values())]
        return any(setting is not None and setting.value is not None for setting in settings)
    return code in DAEMON_ASTRAY and any(" --prefix " in line.partition(" -np ")[0] for line in plan.lines.values())


def _errors(report: Report, touching: set[str]) -> Iterator[Objection]:
    """Yield the errors; that a node was not reached is left to the finding that says why."""
    errors = [one for one in report.findings if one.severity is Severity.ERROR and not one.ignored]
    explained = {node for one in errors if one.code.startswith("NC1") for node in one.nodes}
    for finding in errors:
        told_already = finding.code == NOT_REACHED and explained.issuperset(finding.nodes)
        if finding.code in touching and not told_already:
            told = f"{finding.code} {finding.check} on {fold(finding.nodes)}: {finding.message}"
            yield Objection(told, finding.nodes, finding.fix, finding.code)


def _unknown(report: Report, touching: set[str], checks: Sequence[Check], settings: Settings) -> Iterator[Objection]:
    """Yield what could not be told, each reason once: many checks say the same of a node that was not reached."""
    if "unknown" not in settings.fail_on:
        return
    excused = excused_pairs(checks, tuple(node.name for node in report.nodes), settings)
    reasons: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for verdict in report.verdicts:
        counts = verdict.code in touching and (verdict.code, verdict.node) not in excused
        if verdict.outcome is Outcome.UNKNOWN and counts:
            named, nodes = reasons.setdefault(verdict.reason, ({}, {}))
            named[verdict.check] = nodes[verdict.node] = None
    for reason, (named, nodes) in reasons.items():
        what = next(iter(named)) if len(named) == 1 else f"{len(named)} checks"
        yield Objection(f"{what} could not tell on {fold(nodes)}: {reason}", tuple(nodes))


def bad_nodes(report: Report, checks: Sequence[Check], settings: Settings) -> dict[str, str]:
    """Return the bad nodes with why, in the order of the list. With --force, what could not be told does no harm."""
    why = _lost(report)
    harmless = {one.code for one in checks if mended(one.code, report) or no_use_for(one, settings.launcher)}
    for finding in report.findings:
        if finding.severity is Severity.ERROR and not finding.ignored and finding.code not in harmless:
            for node in finding.nodes:
                why.setdefault(node, f"{finding.code} {finding.check}: {finding.message}")
    unmeasured = {one.code for one in checks if measures(one)}  # why nothing was measured is no fault of a node's
    for node, told in _untold(report, checks, settings, harmless | unmeasured).items():
        why.setdefault(node, told)
    return {node.name: why[node.name] for node in report.nodes if node.name in why}


def _lost(report: Report) -> dict[str, str]:
    return {
        node.name: f"not reached: {node.cause}{': ' if node.detail else ''}{node.detail}"
        for node in report.nodes
        if not node.reached
    }


def _untold(report: Report, checks: Sequence[Check], settings: Settings, harmless: Collection[str]) -> dict[str, str]:
    """Return the nodes of which not all could be told, with the first reason."""
    excused = excused_pairs(checks, tuple(node.name for node in report.nodes), settings)
    counted = {Outcome.CRASHED} if settings.force else {Outcome.CRASHED, Outcome.UNKNOWN}
    found: dict[str, str] = {}
    for verdict in report.verdicts:
        passed_over = verdict.code in harmless or (verdict.code, verdict.node) in excused
        if verdict.outcome in counted and not passed_over:
            how = "crashed" if verdict.outcome is Outcome.CRASHED else "could not tell"
            found.setdefault(verdict.node, f"{verdict.code} {verdict.check} {how}: {verdict.reason}")
    return found
