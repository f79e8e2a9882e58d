"""What blocks a launch plan, and starting a job or a measurement by it: one rule, for plan, launch and probe.

An error blocks a plan when its check reads a fact that the plan is made of, or when the check says so (`blocks_plan`).
So does an unknown verdict of such a check, where --fail-on counts it. Ignored findings do not, nor what is bad in
another way (a clock, an Xid of last week), nor what the plan itself mends. Ranks that ncheck starts itself need less
than a job: no MPI, and no ssh from node to node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ncheck.hostlist import fold
from ncheck.launchers import LAUNCHER_TABLE
from ncheck.model.check import Check, Listed
from ncheck.model.finding import Outcome, Severity
from ncheck.model.plan import Blocker
from ncheck.model.report import Report
from ncheck.settings import Settings
from ncheck.steps.judge import excused_pairs

# Facts by name: which checks a run needs is decided before any of them is imported. A test holds them to the facts.
MEASURED = frozenset(("ProbeFacts", "GpuTestFacts", "LaterErrorCountersFacts"))
OF_PLAN = frozenset((
    "LoginFacts", "IdentityFacts", "NicFacts", "InfinibandFacts", "EnvironmentFacts", "LoadedNcclFacts",
    "InterpreterFacts", "GpuFacts", "MpiFacts", "MpiDaemonFacts", "MpiSettingsFacts", "LinkFacts", "NcclPickFacts",
    "NetPluginFacts",
))  # fmt: skip
OF_SSH = frozenset(("PeerSshFacts", "SshFromHereFacts"))
OF_MPI = frozenset(("MpiFacts", "MpiDaemonFacts", "MpiSettingsFacts"))
# What a launch relies on although no value in its line is made of it: the port where ranks meet, that NCCL follows the
# plan, and ssh, this machine's and the nodes' own.
RELIED_ON = OF_PLAN | OF_SSH | {"ListenFacts", "PlannedPickFacts"}
BY_MPI = (None, *(name for name, launcher in LAUNCHER_TABLE.items() if launcher.by_mpi))  # None: mpirun is assumed
BY_AGENTS = "agents"  # no launcher: ncheck starts the ranks over the connections that it has


def blockers(report: Report, checks: Sequence[Check], settings: Settings) -> tuple[Blocker, ...]:
    """Return all that blocks the report's plan, errors first."""
    relied = relied_on(settings.launcher)
    blocking = {check.code: check for check in checks if blocks(check.listed, relied) and not mended(check, report)}
    codes = frozenset(blocking)
    return (*_errors(report, checks, codes), *_unknown(report, codes, checks, settings))


def blocks(check: Listed, relied: frozenset[str]) -> bool:
    """Whether an error of this check blocks a plan that relies on these facts."""
    if measures(check):  # measured under the plan, after it was made
        return False
    return check.blocks_plan or not relied.isdisjoint(check.facts)


def measures(check: Listed) -> bool:
    """Whether the check judges what the probe measured, or what was counted while it did."""
    return not MEASURED.isdisjoint(check.reads)


def launcher_of_probe(settings: Settings) -> str:
    """Return what starts the probe's ranks."""
    return "mpirun" if settings.probe_launcher == "mpirun" or settings.probe == "nccl-tests" else BY_AGENTS


def for_the_probe(check: Listed, settings: Settings) -> bool:
    """Whether `ncheck probe` runs the check: it judges what was measured, or may block the plan of that."""
    return measures(check) or blocks(check, relied_on(launcher_of_probe(settings)))


def no_use_for(check: Listed, launcher: str | None) -> bool:
    """Whether the check is about an MPI that this launcher does without."""
    return launcher not in BY_MPI and not OF_MPI.isdisjoint(check.facts)


def has_use(check: Listed, settings: Settings) -> bool:
    """Whether a run judges this check. Without --expect none of expectations. Outside a job none of its ranks; inside a
    job none of programs that have done their work by then, such as mpirun and its daemons, and none of a library that
    its launcher does without.
    """
    if "ExpectedFacts" in check.facts and not settings.run.expected:
        return False
    if not settings.run.ranks:
        return "RanksFacts" not in check.reads
    if "HorovodFacts" in check.facts:
        return settings.launcher == "horovodrun"
    if "MpiSettingsFacts" in check.facts:
        return settings.launcher == "mpirun"
    return OF_MPI.isdisjoint(check.reads) and (settings.launcher == "mpirun" or OF_MPI.isdisjoint(check.facts))


def relied_on(launcher: str | None) -> frozenset[str]:
    """Return the facts that a launch by this launcher relies on."""
    if launcher == BY_AGENTS:
        return RELIED_ON - OF_MPI - OF_SSH
    own = frozenset(("HorovodFacts",) if launcher == "horovodrun" else ())
    return (RELIED_ON if launcher in BY_MPI else RELIED_ON - OF_MPI) | own


def mended(check: Check, report: Report) -> bool:
    """Whether the plan keeps the job from what this check finds. On one node NCCL needs no network between nodes."""
    plan = report.plan
    if check.mended_by == "--prefix":
        return plan.command is not None and bool(plan.command.prefix)
    if not check.mended_by:
        return False
    if plan.command is not None and check.mended_by in plan.command.argv:
        return True
    if len(report.nodes) == 1 and not check.matters_alone:
        return True
    settings = [values.get(check.mended_by) for values in (plan.env, *plan.per_node.values())]
    return any(setting is not None and setting.value is not None for setting in settings)


def _errors(report: Report, checks: Sequence[Check], blocking: Collection[str]) -> Iterator[Blocker]:
    """Yield the errors. Consequences are left to their causes that block the plan, too, and that a node was not reached
    is left to the finding that says why.
    """
    errors = [one for one in report.findings if one.severity is Severity.ERROR and not one.ignored]
    explaining = {check.code for check in checks if check.explains_unreached}
    unreached = {check.code for check in checks if check.says_unreached}
    explained = {node for one in errors if one.code in explaining for node in one.nodes}
    causes = {(one.code, node) for one in errors if one.code in blocking and not one.see for node in one.nodes}
    for finding in errors:
        has_reason = finding.code in unreached and explained.issuperset(finding.nodes)
        follows = finding.see and all(any((code, node) in causes for code in finding.see) for node in finding.nodes)
        if finding.code in blocking and not has_reason and not follows:
            message = f"{finding.code} {finding.check} on {fold(finding.nodes) or 'this machine'}: {finding.message}"
            yield Blocker(message, finding.nodes, finding.fix, finding.code, finding.where, finding.kind, finding.ask)


def _unknown(
    report: Report, blocking: Collection[str], checks: Sequence[Check], settings: Settings
) -> Iterator[Blocker]:
    """Yield the unknown verdicts, each reason once: many checks give the same reason on a node that was not reached."""
    if "unknown" not in settings.fail_on:
        return
    excused = excused_pairs(checks, tuple(node.name for node in report.nodes), settings.ignore)
    reasons: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for verdict in report.verdicts:
        if verdict.outcome is Outcome.UNKNOWN and verdict.code in blocking:
            counted = [node for node in verdict.nodes if (verdict.code, node) not in excused]
            if counted:
                names, nodes = reasons.setdefault(verdict.reason, ({}, {}))
                names[verdict.check] = None
                nodes.update(dict.fromkeys(counted))
    for reason, (names, nodes) in reasons.items():
        what = next(iter(names)) if len(names) == 1 else f"{len(names)} checks"
        yield Blocker(f"{what} unknown on {fold(nodes)}: {reason}", tuple(nodes))
