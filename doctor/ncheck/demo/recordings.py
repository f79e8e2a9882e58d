"""Where the recorded clusters lie: in the wheel beside the code, in a checkout beside the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import ncheck
from ncheck.errors import RecordingError
from ncheck.fleet.recording import MAX_FILE, loaded

if TYPE_CHECKING:
    from importlib.abc import Traversable

    from ncheck.model.evidence import Evidence


def recorded_clusters() -> tuple[str, ...]:
    """Return the names of all recorded clusters."""
    return tuple(sorted(folder.name for folder in _home().iterdir() if folder.is_dir()))


def recorded_cluster(name: str) -> tuple[Evidence, ...]:
    """Return the nodes of a recorded cluster. Read as bytes, not by path: it may lie inside a zip."""
    folder = _home().joinpath(name)
    if not folder.is_dir():
        raise RecordingError(f"no recorded cluster is called {name!r}; there are: {', '.join(recorded_clusters())}")
    found = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".json"))
    return loaded((f"{name}/{file_name}", file.read_bytes()[: MAX_FILE + 1]) for file_name, file in found)


def _home() -> Traversable:
    in_wheel = files(ncheck).joinpath("fixtures")
    return in_wheel if in_wheel.is_dir() else Path(str(files(ncheck))).parents[1] / "fixtures"
