"""What is installed beside ncheck. importlib.metadata says more, but a start is shorter by a twentieth without it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def distributions() -> Iterator[Path]:
    """Yield the folder in which an installer describes a distribution (torch-2.3.0.dist-info), for each in sys.path."""
    for folder in sys.path:
        with suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208  a Path for each file takes longer than the reading
                if name.lower().endswith((".dist-info", "egg-info")):
                    yield Path(folder, name)
