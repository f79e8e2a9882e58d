"""`--dry-run`: what would be run and read on each node, as lines that can be typed. Nothing is connected."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module

from ncheck.agent.answers import module_of
from ncheck.fleet.bootstrap import Bootstrap, bootstrap
from ncheck.fleet.engine import REMOTE_COMMAND
from ncheck.hostlist import fold
from ncheck.model.cluster import Cluster, FactType
from ncheck.model.evidence import Answer, Command, File, Source, Tree
from ncheck.model.node import Node
from ncheck.model.op import Op
from ncheck.settings import JobEnvironment, Settings

_NONCE = "0123456789abcdef"  # a real run uses a random one


def dry_run(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Return the text. Raises NcheckError for an invalid list of nodes, as the run itself would."""
    from ncheck.inventory.read import read_inventory

    nodes = read_inventory(settings, stdin=sys.stdin.buffer, environ=environ)
    return "\n".join(_lines(nodes, _sources(nodes, settings), settings))


def _sources(nodes: tuple[Node, ...], settings: Settings) -> tuple[Source, ...]:
    """Return all that may be asked, without what the settings rule out in the first phase, such as the job's code."""
    from ncheck.facts.definition import COLLECTING
    from ncheck.facts.learning import definition_of, sources_for
    from ncheck.steps.phases import wanted_facts
    from ncheck.steps.registry import load_checks

    cluster = Cluster(nodes, {})

    def asked(fact: FactType) -> bool:
        one = definition_of(fact)
        exempt = one.exempt(cluster, settings) if one and one.exempt and one.phase is COLLECTING else {}
        return len(exempt) < len(nodes)

    registry = load_checks(settings.run.own_checks)
    return sources_for(filter(asked, wanted_facts(registry.facts(registry.choose(settings.select)), settings)))


def _lines(nodes: tuple[Node, ...], sources: tuple[Source, ...], settings: Settings) -> Iterator[str]:
    from ncheck.facts.error_counters import LATER
    from ncheck.facts.links import CONNECT, LISTEN
    from ncheck.facts.maintenance import RESERVATIONS
    from ncheck.facts.ssh_peers import FROM_HERE, PEERS
    from ncheck.facts.storage_probe import STORAGE_PROBE, read_paths
    from ncheck.plan.planned_pick import PLANNED
    from ncheck.probe.facts import GIVEN, MEETING, TASK, TOPOLOGY
    from ncheck.probe.gpu_test import GPU_TEST

    mesh = tuple(source for source in (LISTEN, CONNECT) if source in sources)
    later = {
        PEERS, FROM_HERE, RESERVATIONS, PLANNED, MEETING, TASK, GIVEN, TOPOLOGY, GPU_TEST, STORAGE_PROBE, LATER, *mesh,
    }  # fmt: skip
    first = tuple(source for source in sources if source not in later)
    edges = _edges(nodes, settings.mesh) if PEERS in sources else {}
    many = f"{len(nodes)} nodes, {settings.width} at a time" if len(nodes) > 1 else "1 node"
    yield f"Dry run: nothing was executed. A run on {many} would do the following,"
    yield f"within {settings.deadline:.0f} s, and {settings.connect_timeout:.0f} s for each login."
    yield ""
    yield from _logins(nodes, settings, agent=bool(first or edges))
    if first:
        yield "On each node, python3 reads the agent of ncheck from standard input into memory. The agent reads:"
        for source in first:
            yield from _source(source, settings)
        yield ""
    if FROM_HERE in sources:
        yield from _from_here(nodes, settings)
    if RESERVATIONS in sources and not settings.run.rehearsal and not nodes[0].local:
        from ncheck.this_machine.slurm_from_here import ARGV

        yield "This machine asks Slurm once, if it has its programs:"
        yield f"  {shlex.join(ARGV)}"
        yield ""
    yield from _mesh(nodes, mesh, settings)
    yield from _peers(nodes, edges, settings)
    if PLANNED in sources and len(nodes) > 1:
        yield "Last, if the launch plan sets variables of NCCL, each node that has NCCL, with those variables:"
        yield from _answer(PLANNED)
        yield ""
    if STORAGE_PROBE in sources and settings.storage_probe and read_paths(settings):
        paths = ", ".join(read_paths(settings))
        yield f"Then each node reads {paths}:"
        yield from _answer(STORAGE_PROBE)
        yield ""
    if TASK in sources and settings.probe != "none":
        yield from _measured(nodes, settings)
    if LATER in sources:
        yield "At the end, the agent reads the error counters of each node once more:"
        yield from _answer(LATER)
        yield ""
    measured = TASK in sources and settings.probe != "none" and len(nodes) > 1
    between = ", and between the nodes as listed above" if mesh or edges or measured else ""
    yield f"Nothing is written on any node. Data is sent only to this machine{between}."


def _logins(nodes: tuple[Node, ...], settings: Settings, *, agent: bool) -> Iterator[str]:
    by_environment = _by_environment(nodes, settings)
    if settings.via == "srun":
        from ncheck.fleet.engines.srun import command

        yield "One Slurm step, with one task per node:"
        for members in by_environment.values():
            yield f"  {shlex.join(command([node.name for node in members], settings.connect_timeout))}"
    else:
        yield "One connection per node:"
        for node in nodes:
            yield f"  {node.name}: {_connection(node, settings)}"
    yield ""
    for environment, members in by_environment.items():
        sent = _bootstrap(settings, environment, agent=agent)
        lines = "these lines" if sent.start else "this line"
        yield f"On {fold(node.name for node in members)}, its standard input begins with {lines}:"
        yield from (f"  {line}" for line in (sent.script, sent.start) if line)
        yield from _entering(environment)
        yield ""


def _connection(node: Node, settings: Settings) -> str:
    """Return the login as an ssh command line, whichever transport is used."""
    if node.local:
        return f"(this machine, without ssh) /bin/sh -c {shlex.quote(REMOTE_COMMAND)}"
    rsh = settings.environment_of(node.name).rsh
    if rsh:
        return f"{rsh.replace('{node}', shlex.quote(node.name))} {shlex.quote(REMOTE_COMMAND)}"
    argv = ["ssh", "-T"]
    pairs = (
        ("-F", settings.ssh_config), ("-i", settings.identity),
        ("-p", node.port or settings.port), ("-l", node.user or settings.user),
    )  # fmt: skip
    for option, value in pairs:
        argv += [option, str(value)] if value else []
    return shlex.join([*argv, "--", node.name, REMOTE_COMMAND])


def _by_environment(nodes: tuple[Node, ...], settings: Settings) -> dict[JobEnvironment, list[Node]]:
    members: dict[JobEnvironment, list[Node]] = {}
    for node in nodes:
        members.setdefault(settings.environment_of(node.name), []).append(node)
    return members


def _bootstrap(settings: Settings, environment: JobEnvironment, *, agent: bool) -> Bootstrap:
    seconds = settings.deadline + (settings.probe_time if settings.probe != "none" else 0.0) if agent else None
    entered = {"enter": environment.enter, "python": environment.python, "setup": environment.setup}
    return bootstrap(_NONCE, seconds, **entered, shared=settings.via == "srun")


def _entering(environment: JobEnvironment) -> Iterator[str]:
    if environment.setup:
        yield f"  The environment of the job comes from: bash -l -c {shlex.quote(environment.setup)}"
    if environment.python:
        yield f"  Python interpreter of the job: {environment.python}"


def _source(source: Source, settings: Settings) -> Iterator[str]:
    if isinstance(source, Command):
        root = "sudo -n " if source.root and settings.sudo else ""
        where = "   (in the environment of the job)" if source.job else ""
        limit = f"{source.timeout or settings.command_timeout:.0f}"
        yield f"  run   LC_ALL=C timeout {limit} {root}{shlex.join(source.argv)}{where}"
    elif isinstance(source, File):
        yield f"  file  {source.path}"
    elif isinstance(source, Tree):
        yield from (f"  files {pattern}" for pattern in source.patterns)
    else:
        yield from _answer(source)


def _answer(source: Answer) -> Iterator[str]:
    from ncheck.facts.clock import CLOCK

    if source == CLOCK:
        yield "  clock the time of the node, read a few times over the connection"
        return
    for line in module_of(source.name).READS:
        yield f"  {source.name}: {line}"


def _mesh(nodes: tuple[Node, ...], sources: tuple[Answer, ...], settings: Settings) -> Iterator[str]:
    """Yield what is listened on and connected to. The addresses are not known before the nodes are asked."""
    from ncheck.facts.links import named_ports
    from ncheck.launchers import LAUNCHER_TABLE

    launcher = LAUNCHER_TABLE.get(settings.launcher or "")
    of_each = bool(launcher and launcher.port_everywhere)
    everywhere = len(nodes) > 1 and (of_each or bool(settings.need_ports))
    if settings.mesh != "none" and len(nodes) > 1:
        others = "other" if len(nodes) == 2 else f"{len(nodes) - 1} others"  # noqa: PLR2004  a pair
        which = f"each node, and the {others} by every address in the subnets that they share:"
    else:
        which = f"only {'each node' if everywhere else 'the first node'}, for the ports of the job:"
        sources = sources[:1] if settings.mesh != "none" or named_ports(settings) else ()
    if sources:
        yield f"Then, if the login succeeded, {which}"
        for source in sources:
            yield from _answer(source)
        for port in named_ports(settings):
            each = of_each or port in settings.need_ports
            yield f"  listen: on port {port} of {'each node' if each else 'the first reachable node'}"
        yield ""


def _measured(nodes: tuple[Node, ...], settings: Settings) -> Iterator[str]:
    """Yield what is measured. The method depends on what the nodes have, so all methods are listed."""
    from ncheck.probe.agent.step import METHODS
    from ncheck.probe.choice import driver_names
    from ncheck.probe.facts import MEETING, SWEEP, TASK, TOPOLOGY
    from ncheck.probe.gpu_test import GPU_TEST

    auto = "with the method that the nodes support (--probe none: no test)"
    method = auto if settings.probe == "auto" else f"with {settings.probe}"
    between = "between pairs of nodes" + ("" if settings.probe == "tcp" else ", and between all")
    inside = "" if settings.probe in ("tcp", "gloo") else "inside each node, "
    where = "inside the node" if len(nodes) == 1 else f"{inside}{between}"
    ops = "" if settings.ops == (Op.ALL_REDUCE,) else f" of {', '.join(op.value for op in settings.ops)}"
    yield f"After that, unless errors affect the launch plan, bandwidth{ops} is measured"
    yield f"for at most {settings.probe_time:.0f} s, {method}, {where}:"
    if settings.gpu_test != "none":
        yield from _answer(GPU_TEST)
    for source in (MEETING, TASK, *((SWEEP,) if settings.probe_launcher == "mpirun" else ())):
        if source != MEETING or settings.probe in ("auto", "nccl"):  # other methods do not use it
            yield from _answer(source)
    for name in driver_names(settings.probe):
        yield from (f"  turn by {name}: {line}" for line in import_module(f"ncheck.probe.agent.{METHODS[name]}").READS)
    if len(nodes) > 1 and not settings.groups:
        yield "  where nodes are slow together, one of them once:"
        yield from _source(TOPOLOGY, settings)
    yield ""


def _edges(nodes: tuple[Node, ...], mesh: str) -> dict[str, tuple[Node, ...]]:
    from ncheck.network.ssh_edges import edges

    peers = edges(len(nodes), mesh)
    return {nodes[source].name: tuple(nodes[target] for target in targets) for source, targets in peers.items()}


def _from_here(nodes: tuple[Node, ...], settings: Settings) -> Iterator[str]:
    """Yield what this machine runs itself: none of it if the launch line is typed elsewhere, or there is no SSH."""
    from ncheck.agent.answers.ssh_peers import line
    from ncheck.this_machine.ssh_from_here import configuration, words_for

    if settings.run.rehearsal or settings.environment.enter or settings.environment.rsh or nodes[0].local:
        return
    target = {"host": nodes[0].name, "words": words_for(nodes[0], configuration(settings))}
    yield "This machine runs the ssh program, for one node of each ssh configuration that differs here:"
    yield f"  {shlex.join(line(target, settings.connect_timeout))}"
    yield ""


def _peers(nodes: tuple[Node, ...], edges: Mapping[str, tuple[Node, ...]], settings: Settings) -> Iterator[str]:
    """Yield the ssh of each node to the others: all of them, a dry run is meant to be complete."""
    from ncheck.agent.answers.ssh_peers import line

    if edges:
        which = "each node" if len(edges) == len(nodes) else f"each of {len(edges)} of the {len(nodes)} nodes"
        yield f"Then, if the login succeeded, {which} runs:"
    for name, peers in edges.items():
        for peer in peers:
            target = {"host": peer.name, "port": peer.port or settings.port, "user": peer.user or settings.user}
            yield f"  {name}: {shlex.join(line(target, settings.connect_timeout))}"
    if edges:
        yield ""
