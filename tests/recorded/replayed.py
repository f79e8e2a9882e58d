"""Reports of the recorded clusters, each made once for all tests of a worker."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ncheck
from ncheck import Report

FIXTURES = Path(__file__).parents[2] / "fixtures"
CLUSTERS = tuple(sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))


@cache
def replayed(cluster: str) -> Report:
    """Replay a recorded cluster with no setting."""
    return ncheck.replay(FIXTURES / cluster)
