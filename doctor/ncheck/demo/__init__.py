"""`ncheck demo`: a simulated cluster on this machine.

SSH is real: one server per node on loopback, with a temporary key, known_hosts and ssh_config. The answers of the nodes
come from a recorded cluster, through the main loop of the agent, and the report says so.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import ncheck
from ncheck.errors import NcheckError, RecordingError
from ncheck.fleet.recording import MAX_FILE, loaded
from ncheck.settings import JobEnvironment

if TYPE_CHECKING:
    from importlib.abc import Traversable

    from ncheck.model.evidence import Evidence
    from ncheck.model.report import Report
    from ncheck.observer import Observer
    from ncheck.settings import Settings


CLUSTER, HEALTHY = "demo", "healthy-4x8-h100"


class DemoError(NcheckError):
    """The demo itself failed: a server on loopback was unreachable, or a package is missing."""


def run(settings: Settings, observer: Observer, cluster: str = CLUSTER) -> Report:
    """Examine a recorded cluster with the real pipeline. The report has the exit code of a real run.

    Raises DemoError if a node that should be reachable was not: the report would be wrong.
    """
    from ncheck.pipeline import examine
    from ncheck.probe.facts import TASK

    nodes = recorded_cluster(cluster)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ncheck-demo-")))
        made = replace(settings, force=any(node.rounds(TASK) for node in nodes))  # as in the recorded run
        report = examine(_for_demo(made, _laid_out(nodes, folder, stack)), observer)
    _require_reached(report, nodes)
    return replace(report, recorded=True, nodes=tuple(replace(node, recorded=node.reached) for node in report.nodes))


def _laid_out(nodes: tuple[Evidence, ...], folder: Path, stack: ExitStack) -> tuple[Path, Path]:
    try:
        from ncheck.demo.server import lay_out
    except ModuleNotFoundError as error:
        hint = "python3 -m pip install cluster-ncheck"
        raise DemoError(
            f"the demo needs {error.name}, which the single-file ncheck does not contain: {hint}"
        ) from error
    return lay_out(nodes, folder, stack)


def _for_demo(settings: Settings, files: tuple[Path, Path]) -> Settings:
    """Use the nodes and ssh_config of the demo; the SSH configuration of the user is not read."""
    nodes_file, ssh_config = files
    return replace(
        settings,
        nodes_file=str(nodes_file),
        ssh_config=str(ssh_config),
        hosts=None,
        slurm=False,
        via="ssh",
        local=False,
        port=None,
        user=None,
        identity=None,
        transport="paramiko",
        accept_new_host_keys=False,
        environment=JobEnvironment(),
        overrides=(),
        sudo=False,
        run=replace(settings.run, rehearsal=True),
    )


def _require_reached(report: Report, nodes: tuple[Evidence, ...]) -> None:
    expected = {node.node for node in nodes if node.login.reached}
    lost = [node for node in report.nodes if node.name in expected and not node.reached]
    if lost and not report.interrupted:
        first = lost[0]
        raise DemoError(f"the demo failed: {first.name} on loopback is unreachable ({first.cause}: {first.detail})")


def recorded_clusters() -> tuple[str, ...]:
    """Return the names of all recorded clusters."""
    return tuple(sorted(folder.name for folder in _fixtures().iterdir() if folder.is_dir()))


def recorded_cluster(name: str) -> tuple[Evidence, ...]:
    """Return the nodes of a recorded cluster. They are read as bytes, not by path: it may be inside a zip file."""
    folder = _fixtures().joinpath(name)
    if not folder.is_dir():
        raise RecordingError(f"there is no recorded cluster {name!r}; known: {', '.join(recorded_clusters())}")
    recordings = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".json"))
    return loaded((f"{name}/{file_name}", file.read_bytes()[: MAX_FILE + 1]) for file_name, file in recordings)


def _fixtures() -> Traversable:
    in_wheel = files(ncheck).joinpath("fixtures")
    return in_wheel if in_wheel.is_dir() else Path(str(files(ncheck))).parents[1] / "fixtures"
