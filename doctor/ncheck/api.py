"""ncheck as a library: run it, or judge a recording again, and get the report as a value.

Nothing is printed, no file is read for settings unless `config` names one, and nothing of this process is changed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.settings import make_settings

if TYPE_CHECKING:
    from ncheck.settings import Settings
    from ncheck.triage.join import LiveReport

TRIAGE_DEADLINE = 30.0  # seconds


def run(nodes: str | os.PathLike[str] | Sequence[str] | None = None, **settings: object) -> Report:
    """Check nodes and return the report.

    `nodes` is the path of a host file, or the names of the nodes; None is this machine alone, with no SSH. `settings`
    are those of ncheck.toml by the same names: port=10001, select="versions,NC3", deadline=120, probe="none".
    Raises NcheckError (in ncheck.errors) for what the caller can mend: no such file, no such setting.
    """
    from ncheck.pipeline import examine

    return examine(_settings({**_nodes(nodes), **settings}), Silent())


def replay(directory: str | os.PathLike[str], **settings: object) -> Report:
    """Judge what `ncheck --record DIRECTORY` saved, and return the report: no node is asked anything."""
    from ncheck.pipeline import replay as replayed

    return replayed(os.fspath(directory), _settings({"local": True, **settings}), Silent())


def diagnose(
    nodes: str | os.PathLike[str] | Sequence[str] | None = None,
    *,
    job: str | None = None,
    match: str | None = None,
    slurm: str | None = None,
    **settings: object,
) -> LiveReport:
    """Look at the job that runs on these nodes, as `ncheck triage` does, and return what is wrong with it.

    `job` is a process of it ("4711", or "gpu02:4711"), `match` a regular expression for its command line, `slurm` its
    number in Slurm; none is needed where only one job runs. Nothing of the job is changed. Raises NcheckError.
    """
    from dataclasses import replace

    from ncheck.model.job import target_of
    from ncheck.pipeline import triage
    from ncheck.triage.join import examine_job
    from ncheck.triage.live import cluster_of

    target = target_of(job, match, slurm)
    made = _settings({**_nodes(nodes), "deadline": TRIAGE_DEADLINE, **settings})
    return examine_job(cluster_of(triage(replace(made, target=target), Silent())), target)


def _nodes(nodes: str | os.PathLike[str] | Sequence[str] | None) -> dict[str, object]:
    """Return the settings that name the nodes."""
    if nodes is None:
        return {"local": True}
    if isinstance(nodes, str | os.PathLike):
        return {"nodes_file": os.fspath(nodes)}
    return {"hosts": ",".join(nodes)}


def _settings(given: dict[str, object]) -> Settings:
    """Take the given settings alone: no variable and no ncheck.toml that happens to be there changes the result."""
    texts = {name: (value,) if name in ("select", "ignore") and isinstance(value, str) else value
             for name, value in given.items()}  # fmt: skip
    return make_settings({"config": "none", **texts}, {}, Path.cwd())
