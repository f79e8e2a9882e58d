"""The real libnccl.so.2 of a wheel, fetched once: the library alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from .layers import CHECKOUT

LIBRARY = "nvidia/nccl/lib/libnccl.so.2"


class NotFetchedError(Exception):
    """No index could be reached, or it has no such wheel for this machine."""


def library(version: str) -> Path:
    """Return the library; NCHECK_CACHE names the folder where it is kept, else it is .cache in the checkout."""
    cache = Path(os.environ.get("NCHECK_CACHE") or CHECKOUT / ".cache").resolve()
    kept = cache / f"libnccl-{version}.so.2"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _unpack(_wheel(version, folder), Path(folder, kept.name)).replace(kept)
    return kept


def _wheel(version: str, folder: str) -> Path:
    argv = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, f"nvidia-nccl-cu12=={version}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise NotFetchedError((done.stderr.strip().splitlines() or ["pip said nothing"])[-1])
    (wheel,) = Path(folder).glob("*.whl")
    return wheel


def _unpack(wheel: Path, target: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive, archive.open(LIBRARY) as packed, target.open("wb") as unpacked:
        while data := packed.read(1 << 20):
            unpacked.write(data)
    return target
