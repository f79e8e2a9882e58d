"""A test that this machine cannot run is skipped with the reason; with NCHECK_SKIP_NOTHING=1 it fails."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def cannot(why: str) -> NoReturn:
    """Skip the test with this reason; where nothing may be skipped, it fails with it."""
    if os.environ.get("NCHECK_SKIP_NOTHING") == "1":
        pytest.fail(f"NCHECK_SKIP_NOTHING=1: {why}")
    pytest.skip(why)
