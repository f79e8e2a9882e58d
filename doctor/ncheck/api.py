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


def run(nodes: str | os.PathLike[str] | Sequence[str] | None = None, **settings: object) -> Report:
    """Check nodes and return the report.

    `nodes` is the path of a host file, or the names of the nodes; None is this machine alone, with no SSH. `settings`
    are those of ncheck.toml by the same names: port=10001, select="versions,NC3", deadline=120, probe="none".
    Raises NcheckError (in ncheck.errors) for what the caller can mend: no such file, no such setting.
    """
    if nodes is None:
        named: dict[str, object] = {"local": True}
    elif isinstance(nodes, str | os.PathLike):
        named = {"nodes_file": os.fspath(nodes)}
    else:
        named = {"hosts": ",".join(nodes)}
    from ncheck.pipeline import examine

    return examine(_settings({**named, **settings}), Silent())


def replay(directory: str | os.PathLike[str], **settings: object) -> Report:
    """Judge what `ncheck --record DIRECTORY` saved, and return the report: no node is asked anything."""
    from ncheck.pipeline import replay as replayed

    return replayed(os.fspath(directory), _settings({"local": True, **settings}), Silent())


def _settings(given: dict[str, object]) -> Settings:
    """Take the given settings alone: no variable and no ncheck.toml that happens to be there changes the result."""
    texts = {name: (value,) if name in ("select", "ignore") and isinstance(value, str) else value
             for name, value in given.items()}  # fmt: skip
    return make_settings({"config": "none", **texts}, {}, Path.cwd())
