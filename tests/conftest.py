"""What all tests share: real libraries of NCCL, fetched once into a cache folder, some 200 MB of each wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("NCHECK_CACHE") or Path(__file__).parents[1] / ".cache").resolve()
_PIP_DOWNLOAD = (sys.executable, "-m", "pip", "download", "-qq", "--retries", "1", "--no-deps", "--only-binary=:all:")
IN_WHEEL = "nvidia/nccl/lib/libnccl.so.2"


@pytest.fixture(scope="session")
def nccl_folder() -> Callable[[str], Path]:
    """Return a function from a release to the folder that holds its libnccl.so.2."""
    failures: dict[str, str] = {}  # one try a run: without a network pip takes a minute to give up

    def folder(release: str) -> Path:
        place = CACHE / "nccl" / release
        if not (place / "libnccl.so.2").exists() and release not in failures:
            try:
                _fetch(release, place)
            except subprocess.CalledProcessError as error:
                failures[release] = str(error.stderr.strip().splitlines()[-1:])
        if why := failures.get(release):
            words = f"NCCL {release} cannot be fetched here: {why}"
            pytest.fail(words) if os.environ.get("CI") == "true" else pytest.skip(words)
        return place

    return folder


def _fetch(release: str, place: Path) -> None:
    """Download the wheel, keep the library alone; whoever looks sees a whole one or none."""
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        wanted = f"nvidia-nccl-cu12=={release}"
        subprocess.run([*_PIP_DOWNLOAD, "-d", folder, wanted], check=True, capture_output=True, text=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            unpacked = archive.extract(IN_WHEEL, folder)
        Path(unpacked).replace(place / "libnccl.so.2")
