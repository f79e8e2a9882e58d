"""From verdicts to the report: what is ignored, what the exit code is, and what is said of each node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import cast

from ncheck.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERRUPTED
from ncheck.expression import expression
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.host_settings import HostSettingsFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.facts.lost_peers import greeted_by_peers
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.os_release import OsFacts, command_to_install
from ncheck.model.check import HERE, PLAN, Check, Fix, kind_of
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.finding import DO, Finding, Outcome, Severity, Verdict
from ncheck.model.node import Node
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.model.report import GpuAlone, Measurement, MeshSample, NodeSummary, Probe, Report
from ncheck.model.state import state_of
from ncheck.parity import nodes_by_value
from ncheck.redact import redact_record
from ncheck.settings import Settings
from ncheck.steps.bad_nodes import found_bad, to_drain
from ncheck.steps.blockers import blockers, mended
from ncheck.steps.judge import Judgement, excused_pairs, judge
from ncheck.steps.next_steps import with_next_steps
from ncheck.steps.rerun_line import NODES, with_nodes_of_run
from ncheck.system import addresses_of, boards_of, cpus_only, hardware_of, interpreter_of, lacks_python, systems_of
from ncheck.text import typable
from ncheck.this_machine.origin import Origin
from ncheck.version import __version__


def conclude(  # noqa: PLR0913  each is a part of the report
    cluster: Cluster,
    checks: Sequence[Check],
    settings: Settings,
    plan: LaunchPlan,
    *,
    judgement: Judgement | None = None,
    origin: Origin | None = None,
    seconds: float = 0.0,
    interrupted: bool = False,
    recorded: bool = False,
) -> Report:
    """Judge the cluster, merge what is the same on several nodes, lower what --ignore names, and report it all.

    `judgement`: where the checks have judged it already. Which nodes are bad and what blocks the plan is said of the
    report without its secrets, in the words of the report.
    """
    judgement = judgement or judge(checks, cluster)
    excused = excused_pairs(checks, cluster.names, settings.ignore)
    variables = {check.code: check.mended_by for check in checks}
    typed = [part for one in judgement.findings for part in _with_value(one, variables[one.code], plan, cluster)]
    found = [
        replace(
            one, fix=with_nodes_of_run(one.fix, settings), ask=_for_an_admin(one, cluster),
            evidence=(*one.evidence, *_package_of(one, cluster)),
        )
        for one in typed
    ]  # fmt: skip
    lowered = [part for finding in _merged(found) for part in _lowered(finding, excused)]
    lowered.sort(key=lambda finding: (finding.ignored, finding.severity.rank, finding.code))
    findings = tuple(_with_pages(_with_causes(lowered, checks), checks, settings.docs))
    earlier = settings.run.earlier
    verdicts = tuple(earlier.held(judgement.joined, cluster.names) if earlier else judgement.joined)
    unreached = _unreached(cluster, checks, excused)
    measurements, probe = _measured(cluster)
    if probe.means in _BY_NCCL:
        from ncheck.predict.cluster import choices

        probe = replace(probe, choices=tuple(choices(cluster, measurements, probe, settings.slots)))
    by_peers = greeted_by_peers(cluster)
    report = redact_record(Report(
        exit_code=(
            EXIT_INTERRUPTED if interrupted else exit_code(verdicts, findings, excused, unreached, settings.fail_on)
        ),
        nodes=tuple(
            replace(
                summarise(node, cluster.known[node.name], recorded=recorded), peers_reach=by_peers.get(node.name)
            )
            for node in cluster.nodes
        ),
        verdicts=verdicts,
        findings=findings,
        plan=plan,
        measurements=measurements,
        probe=probe,
        gpus_alone=_gpus_alone(cluster),
        mesh=_mesh(cluster),
        version=__version__,
        seconds=round(seconds, 3),
        fail_on=settings.fail_on,
        interrupted=interrupted,
        recorded=recorded,
        milder=settings.run.milder,
        select=settings.select,
        cpus_only=cpus_only(cluster),
        name_python=_name_python(cluster, settings),
        boards=boards_of(cluster),
        systems=systems_of(cluster.known),
        hardware=hardware_of(cluster.known),
        **(vars(origin) if origin else {}),
    ))  # fmt: skip
    report = replace(report, again=earlier.again(report) if earlier else None)
    bad = () if interrupted else found_bad(report, checks, settings)
    codes = {finding.code for finding in report.findings}
    avoids = tuple(sorted({check.code for check in checks if check.code in codes and mended(check, report)}))
    report = replace(
        report, bad=bad, plan=replace(report.plan, blockers=blockers(report, checks, settings), avoids=avoids)
    )
    report = replace(report, drain=to_drain(report, checks, settings.max_drain), state=state_of(report))
    return replace(report, findings=with_next_steps(report, checks))


def _with_value(finding: Finding, variable: str, plan: LaunchPlan, cluster: Cluster) -> list[Finding]:
    """Return the finding with the commands that make the plan's value last, where its fix would print the plan.

    Where the plan has no value, or a node's settings are not known, the plan is something to look at.
    """
    if finding.fix != PLAN:
        return [finding]
    fixes = {node: _lasting(node, variable, plan, cluster) for node in finding.nodes}
    if not all(fix and typable(fix.line) for fix in fixes.values()):
        return [replace(finding, kind="look")]
    return [
        replace(finding, nodes=nodes, fix=fix.line, where="", kind=kind_of(fix))
        for fix, nodes in nodes_by_value(fixes).items() if fix
    ]  # fmt: skip


_OF_DIAGS = expression(r"\b(?:iblinkinfo|ibnetdiscover|ibportstate|sminfo)\b")


def _package_of(finding: Finding, cluster: Cluster) -> Iterator[str]:
    """Yield how the tool of a command is installed, on a node whose ports no ibstat showed: it comes with that one."""
    node = finding.where if finding.where in cluster.known else finding.nodes[0]
    known, tool = cluster.known.get(node, {}), _OF_DIAGS.search(finding.fix)
    ports = known.get(InfinibandFacts)
    if tool and isinstance(ports, InfinibandFacts) and ports.source == "sysfs":
        names = dict.fromkeys(("apt-get", "dnf", "zypper"), ("infiniband-diags",))
        yield f"{tool[0]} is in a package of its own: {command_to_install(names, known.get(OsFacts))}"


# sudo ip link set eth0 up     echo 1 | sudo tee /etc/nccl.conf
_BY_ROOT = expression(r"(?:^|[|;&] ?)sudo ")


def _for_an_admin(finding: Finding, cluster: Cluster) -> bool:
    """Tell whether a command needs root, which this user is not where it is typed, and can hardly become there."""
    if finding.kind == DO or finding.where == HERE or not _BY_ROOT.search(finding.fix):
        return False
    nodes = (finding.where,) if finding.where in cluster.known else finding.nodes
    settings = [cluster.known.get(node, {}).get(HostSettingsFacts) for node in nodes]
    return all(isinstance(one, HostSettingsFacts) and one.sudo is False for one in settings)


def _lasting(node: str, variable: str, plan: LaunchPlan, cluster: Cluster) -> Fix | None:
    """Return the command that gives a variable of NCCL the plan's value in all jobs of a node; None if not known."""
    from ncheck.nccl.settings import OWN, lasting, releases_of

    common, own = plan.env.get(variable), plan.per_node.get(node, {}).get(variable)
    value = (own or common or Setting(None, "")).value
    environment, nccl = (cluster.known[node].get(fact) for fact in (EnvironmentFacts, LoadedNcclFacts))
    if value is None or not variable.startswith(OWN) or not isinstance(environment, EnvironmentFacts):
        return None
    return lasting(variable, value, environment, releases_of(nccl)[-1], everywhere=own is None)


def _with_causes(findings: Sequence[Finding], checks: Sequence[Check]) -> list[Finding]:
    """Let each consequence refer to its causes among the findings, and to nothing else.

    What an unreachable node is a consequence of must explain every node; a slow group has one cause in it or several.
    A cause that is ignored explains nothing: what follows from it would be hidden with it. Nor does one that is less
    grave than its check usually is: a GPU at 0.9 of the usual is not why its node is at 0.5.
    """
    usual = {check.code: check.severity.rank for check in checks}
    unreached = {check.code for check in checks if check.says_unreached}
    explaining = tuple(check.code for check in checks if check.explains_unreached)

    at: dict[tuple[str, str], list[Finding]] = {}  # by code and node: thousands of nodes may have one each
    for finding in findings:
        for node in finding.nodes if finding.ignored or finding.severity.rank <= usual[finding.code] else ():
            at.setdefault((finding.code, node), []).append(finding)

    def linked(finding: Finding) -> Finding:
        every = finding.code in unreached
        codes = explaining if every else finding.see
        found = [
            {code for code in codes for one in at.get((code, node), ()) if finding.ignored or not one.ignored}
            for node in finding.nodes
        ]
        partly = every and not all(found)
        return replace(finding, see=() if partly else tuple(sorted(set().union(*found))))

    return [linked(finding) for finding in findings]


def _with_pages(findings: Sequence[Finding], checks: Sequence[Check], site: str | None) -> list[Finding]:
    """Give each finding what its check says of all of its findings, and where its page is."""
    by_code = {check.code: check for check in checks}

    def whole(one: Finding) -> Finding:
        check = by_code[one.code]
        nodes = () if check.about_ncheck and not check.blames_node else one.nodes  # it is here, and on no node
        first = (BEFORE_RESET,) if check.resets_gpu and one.kind == "fix" else ()
        return replace(
            one, nodes=nodes, title=check.title, page=_page(one.code, site), hardware=check.hardware,
            evidence=(*one.evidence, *first),
        )  # fmt: skip

    return [whole(one) for one in findings]


def _page(code: str, site: str | None) -> str:
    """Return the address of a check's page in the site that make site writes, or the command that prints it."""
    ours = code.startswith("NC")  # no check of a plug-in or of ncheck.toml
    return f"{site.rstrip('/')}/checks/{code}/index.html" if site and ours else f"ncheck explain {code}"


# A reset clears what the vendor asks for: counters, the state of the GPU, often the kernel log.
BEFORE_RESET = "before the reset, keep what the vendor asks for: sudo nvidia-bug-report.sh"


def _name_python(cluster: Cluster, settings: Settings) -> str:
    """Return the command that names the job's Python, where ncheck found none."""
    if settings.run.ranks or not lacks_python(cluster):
        return ""
    nodes = "local" if all(node.local for node in cluster.nodes) else NODES
    return with_nodes_of_run(f"ncheck {nodes} --python PATH", settings)


def exit_code(
    verdicts: Sequence[Verdict],
    findings: Sequence[Finding],
    excused: Collection[tuple[str, str]],
    unreached: Collection[str],
    fail_on: Collection[str],
) -> int:
    """Return 1 when a finding or a verdict is as bad as --fail-on says. A crashed check counts as an error.

    A node that was not reached counts as unknown, also where no selected check would have said so.
    """
    ranks = [severity.rank for severity in Severity if severity.value in fail_on]
    worst = max(ranks, default=-1)
    counted = [one for one in verdicts if not all((one.code, node) in excused for node in one.nodes)]
    bad = (
        any(not finding.ignored and finding.severity.rank <= worst for finding in findings),
        worst >= 0 and any(verdict.outcome is Outcome.CRASHED for verdict in counted),
        "unknown" in fail_on and any(verdict.outcome is Outcome.UNKNOWN for verdict in counted),
        "unknown" in fail_on and bool(unreached),
    )
    return EXIT_FINDINGS if any(bad) else EXIT_CLEAN


def _unreached(cluster: Cluster, checks: Sequence[Check], excused: Collection[tuple[str, str]]) -> list[str]:
    """Return the nodes that were not reached and need be: --ignore of the check that says so excuses a node."""
    codes = [check.code for check in checks if check.says_unreached]
    lost = [name for name, held in cluster.facts(LoginFacts).items() if not held.login.reached]
    return [name for name in lost if not any((code, name) in excused for code in codes)]


def _measured(cluster: Cluster) -> tuple[tuple[Measurement, ...], Probe]:
    if not cluster.asked("ProbeFacts"):
        return (), Probe(ran=False, reason="no check that was selected needs it")
    from ncheck.probe.skip_reason import nothing_measured, ran_on

    if not ran_on(cluster.known):
        return (), nothing_measured(cluster.known)
    from ncheck.probe.measurements import measured

    return measured(cluster.known)


_BY_NCCL = ("nccl", "nccl-tests")  # of which the report says what NCCL chose


def _mesh(cluster: Cluster) -> MeshSample | None:
    links = cluster.facts_called("LinkFacts")
    if not any(facts.samples for facts in links.values()):
        return None
    tried = sorted(len(facts.tried_to) for facts in links.values())
    return MeshSample(tried[len(tried) // 2], len(links) - 1)


def _gpus_alone(cluster: Cluster) -> tuple[GpuAlone, ...]:
    if not cluster.asked("GpuTestFacts"):
        return ()
    from ncheck.probe.gpus_alone import gpus_alone

    return gpus_alone(cluster)


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Join findings that say the same of different nodes."""
    merged: dict[Finding, list[str]] = {}
    for finding in findings:
        merged.setdefault(replace(finding, nodes=()), []).extend(finding.nodes)
    return [replace(finding, nodes=tuple(nodes)) for finding, nodes in merged.items()]


def _lowered(finding: Finding, excused: frozenset[tuple[str, str]]) -> list[Finding]:
    """Part a finding into what stands and what is ignored; the ignored part is lowered, and still printed."""
    ignored = tuple(node for node in finding.nodes if (finding.code, node) in excused)
    if not ignored:
        return [finding]
    standing = tuple(node for node in finding.nodes if (finding.code, node) not in excused)
    parts = [replace(finding, nodes=standing)] if standing else []
    return [*parts, replace(finding, nodes=ignored, severity=Severity.INFO, ignored=True)]


def summarise(node: Node, facts: Facts, *, recorded: bool) -> NodeSummary:
    """Return the node's summary: what was reached, and by which way."""
    login = cast("LoginFacts", facts[LoginFacts]).login
    identity = facts.get(IdentityFacts)
    interpreter, container = interpreter_of(facts)
    return NodeSummary(
        name=node.name,
        reached=login.reached,
        address=login.address,
        port=login.port,
        user=login.user,
        transport=login.transport,
        host_name=identity.host_name if isinstance(identity, IdentityFacts) else "",
        interpreter=interpreter,
        container=container,
        slots=node.slots,
        seconds=round(login.seconds, 3),
        recorded=recorded,
        cause=login.cause.value if login.cause else "",
        detail=login.detail,
        addresses=addresses_of(facts),
    )
