"""Ranks that leave nothing behind: no process, no segment in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .driven_ranks import DrivenRanks, Standins


@pytest.fixture
def measured(standins: Standins, alone_in_shm: None) -> Iterator[DrivenRanks]:  # noqa: ARG001  for as long as it runs
    """Return a function that runs a step of this node's ranks. Afterwards no process and no segment may be left."""
    ranks = DrivenRanks(standins)
    yield ranks
    ranks.close()
    assert ranks.left() == []
    assert list(Path("/dev/shm").glob(f"nccl-{ranks.mark}*")) == []  # noqa: S108  where NCCL puts its segments
