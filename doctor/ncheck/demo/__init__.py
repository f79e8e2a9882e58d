"""`ncheck demo`: a throw-away cluster on this machine, for who has none at hand.

The SSH is real: a server a node on loopback, a key, known_hosts and an ssh_config made for this run alone. What the
nodes answer is recorded: it comes from a fixture, through the agent's own loop, and the report says so.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ncheck.errors import NcheckError
from ncheck.settings import JobEnvironment

if TYPE_CHECKING:
    from ncheck.model.evidence import Evidence
    from ncheck.model.report import Report
    from ncheck.observer import Observer
    from ncheck.settings import Settings


CLUSTER = "demo"


class DemoError(NcheckError):
    """The demo itself did not work: this machine let no loopback server be reached, or a part is not installed."""


def run(settings: Settings, observer: Observer, cluster: str = CLUSTER) -> Report:
    """Examine a recorded cluster with the real pipeline. The report's exit code is what a real run would end with.

    Raises DemoError where a node that should have been reached was not: then nothing that it shows would be true.
    """
    from ncheck.demo.recordings import recorded_cluster
    from ncheck.facts.probe_replies import TASK
    from ncheck.pipeline import examine

    nodes = recorded_cluster(cluster)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ncheck-demo-")))
        made = replace(settings, force=any(node.turns(TASK) for node in nodes))  # as it was when it was recorded
        report = examine(_for_demo(made, _laid_out(nodes, folder, stack)), observer)
    _hold(report, nodes)
    return replace(report, recorded=True, nodes=tuple(replace(node, recorded=node.reached) for node in report.nodes))


def _laid_out(nodes: tuple[Evidence, ...], folder: Path, stack: ExitStack) -> tuple[Path, Path]:
    try:
        from ncheck.demo.server import lay_out
    except ModuleNotFoundError as error:
        hint = "python3 -m pip install cluster-ncheck"
        raise DemoError(f"the demo needs {error.name}, which a single-file ncheck leaves out; {hint}") from error
    return lay_out(nodes, folder, stack)


def _for_demo(settings: Settings, files: tuple[Path, Path]) -> Settings:
    """Point the run at the demo's nodes and ssh_config; nothing of the user's own SSH is read or used."""
    nodes_file, ssh_config = files
    return replace(
        settings,
        nodes_file=str(nodes_file),
        ssh_config=str(ssh_config),
        hosts=None,
        slurm=False,
        local=False,
        port=None,
        user=None,
        identity=None,
        transport="paramiko",
        accept_new_host_keys=False,
        environment=JobEnvironment(),
        overrides=(),
        sudo=False,
        rehearsal=True,
    )


def _hold(report: Report, nodes: tuple[Evidence, ...]) -> None:
    wanted = {node.node for node in nodes if node.login.reached}
    lost = [node for node in report.nodes if node.name in wanted and not node.reached]
    if lost and not report.interrupted:
        first = lost[0]
        raise DemoError(
            f"the demo did not work: {first.name} on loopback was not reached ({first.cause}: {first.detail})"
        )
