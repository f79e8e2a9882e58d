"""ncheck as a library: run it, or judge a recording again, and get the report as a value.

Nothing is printed, no file is read for settings unless `config` names one, and nothing of this process is changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ncheck.errors import InventoryError, SettingsError
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.settings import make_settings
from ncheck.settings.given import Given, GivenToRun, OnePath

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ncheck.settings import Settings
    from ncheck.triage.join import LiveReport

TRIAGE_DEADLINE = 30.0  # seconds

Nodes = OnePath | Sequence[str] | None


def run(nodes: Nodes = None, **settings: Unpack[GivenToRun]) -> Report:
    """Check nodes and return the report.

    `nodes`: the path of a host file, or the names of the nodes; None is this machine alone, with no SSH.

    The settings are those of ncheck.toml by the same names: port=10001, select="versions,NC3", deadline=120,
    probe="none"; their names and types are those of ncheck.settings.given. Raises NcheckError for what the caller can
    correct, such as a file that does not exist, and TypeError for an argument that does not exist.
    """
    from ncheck.pipeline import examine

    given = _given("run", settings, GivenToRun)
    elsewhere = settings.get("slurm") or settings.get("failed_of")
    named = {} if nodes is None and elsewhere else _nodes(nodes)
    made = _settings({**named, **given})
    if made.failed_of:
        from ncheck.steps.failed_of import narrowed

        made = narrowed(made)
    return examine(made, Silent())


def replay(directory: OnePath, **settings: Unpack[Given]) -> Report:
    """Judge a recording, and return the report: no node is asked anything.

    `directory`: what `ncheck --record DIRECTORY` saved.

    The settings are those of `run`. Raises NcheckError.
    """
    from ncheck.pipeline import replay as replayed

    given = _given("replay", settings, Given)
    if not isinstance(directory, str | os.PathLike) or not (path := os.fspath(directory)):
        raise SettingsError(f"directory: expected the path of a recording, not {directory!r}")
    return replayed(path, _settings({"local": True, **given}), Silent())


def diagnose(
    nodes: Nodes = None,
    *,
    job: int | str | None = None,
    match: str | None = None,
    slurm: int | str | None = None,
    **settings: Unpack[Given],
) -> LiveReport:
    """Look at the job that runs on these nodes, as `ncheck triage` does, and return what is wrong with it.

    `nodes`: as for `run`. `job`: the number of a process of the job, 4711 or "gpu02:4711"; `match`: a regular
    expression for its command line; `slurm`: its number in Slurm. None of the three is needed where only one job runs.

    The settings are those of `run`, but for slurm. Nothing of the job is changed. Raises NcheckError.
    """
    from dataclasses import replace

    from ncheck.model.job import target_of
    from ncheck.pipeline import triage
    from ncheck.triage.diagnosis_history import kept
    from ncheck.triage.join import examine_job
    from ncheck.triage.live import cluster_of

    given = _given("diagnose", settings, Given)
    if match is not None and not isinstance(match, str):
        raise SettingsError(f"match: expected text, not {match!r}")
    target = target_of(*(None if one is None else str(one) for one in (job, match, slurm)), named="")
    made = _settings({**_nodes(nodes), "deadline": TRIAGE_DEADLINE, **given})
    began = time.time()
    asked = replace(made, run=replace(made.run, target=target))
    return kept(examine_job(cluster_of(triage(asked, Silent())), target), made, began)


def _nodes(nodes: Nodes) -> dict[str, object]:
    """Return the settings that name the nodes. Raises SettingsError, or InventoryError where there is no such file."""
    if nodes is None:
        return {"local": True}
    path = os.fspath(nodes) if isinstance(nodes, str | os.PathLike) else ""
    if path:
        if not os.path.lexists(path):
            raise InventoryError(f"nodes: no such file: {path!r}; to name nodes, give a list: [{path!r}]")
        return {"nodes_file": path}
    if nodes == "" or isinstance(nodes, bytes) or not isinstance(nodes, Sequence) or not all(map(_is_text, nodes)):
        expected = "the path of a host file, a list of node names, or None for this machine"
        raise SettingsError(f"nodes: expected {expected}, not {nodes!r}")
    if not nodes:
        raise SettingsError("nodes: the list is empty; name a node, or give None for this machine alone")
    from ncheck.inventory.read import from_names

    hosts = ",".join(nodes)
    from_names(hosts, "nodes")  # raises in the words of Python; the run reads them again
    return {"hosts": hosts}


def _given(function: str, settings: Mapping[str, object], known: type[Given]) -> dict[str, object]:
    """Return the settings of a call, with paths as text. Raises TypeError as Python does for an unknown argument."""
    for name in settings:
        if name not in known.__annotations__:
            near = get_close_matches(name, known.__annotations__, 1, cutoff=0.8)
            more = f"did you mean {near[0]!r}?" if near else f"its arguments: help(ncheck.{function})"
            raise TypeError(f"{function}() has no argument {name!r}; {more}")
    return {name: _text(value) for name, value in settings.items()}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _text(value: object) -> object:
    """Return a path, or each path of a list, as text; a value of any other type as it is."""
    if isinstance(value, list | tuple):
        return [_text(one) for one in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


_IN_PYTHON = {"nodes_file": "nodes", "hosts": "nodes", "local": "nodes=None"}  # all others have one name everywhere


def _settings(given: Mapping[str, object]) -> Settings:
    """Take the given settings alone: no variable and no ncheck.toml that happens to be there changes the result."""
    texts = {name: (value,) if name in ("select", "ignore") and isinstance(value, str) else value
             for name, value in given.items()}  # fmt: skip
    config = given.get("config") or "none"
    if not isinstance(config, str):
        raise SettingsError(f"config: expected text, not {config!r}")
    named = {name: _IN_PYTHON.get(name, name) for name in given}
    return make_settings({**texts, "config": config}, {}, Path.cwd(), named=named.__getitem__)
