"""`make gpu` on a machine without a GPU: with stand-ins it measures, and what is missing is named and skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ncheck
import ncheck_checks
import pytest

TREE = Path(__file__).parents[1]
SMI = TREE / "tests" / "lab" / "standins" / "nvidia-smi"


@pytest.mark.slow
@pytest.mark.usefixtures("alone_in_shm")
def test_every_step_has_its_section_and_what_is_missing_is_skipped(
    tmp_path: Path, standins: Callable[..., Path]
) -> None:
    shutil.copy(SMI, tmp_path / "nvidia-smi")
    (tmp_path / "nvidia-smi").chmod(0o755)
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    ours = os.pathsep.join(str(Path(package.__path__[0]).parent) for package in (ncheck, ncheck_checks))
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "LD_LIBRARY_PATH": str(standins()),
               "PYTHONPATH": str(tmp_path)}  # fmt: skip
    argv = [sys.executable, str(TREE / "bench" / "gpu.py"), "--ncheck", ours, "--sizes", "1", "--rounds", "1"]
    argv += ["--out", str(tmp_path / "gpu.md")]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    page = (tmp_path / "gpu.md").read_text()

    assert done.returncode == 0, done.stderr
    sections = dict(re.findall(r"^## ([\w-]+): [^\n]*\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert list(sections) == ["machine", "facts", "load", "alone", "hang", "bandwidth", "job", "hook"]
    assert "| gpus[1].uuid | GPU-0" in sections["facts"]
    assert re.search(r"^25 facts, 11 compared, 0 differ\.$", sections["facts"], re.MULTILINE)
    assert re.search(r"^\| 1 MiB \| [\d.]+ \([\d.]+ to [\d.]+\) \|$", sections["bandwidth"], re.MULTILINE)
    assert "| 0000:10:00.0 | memory | 1800 | GB/s | 1800" in sections["alone"]
    for step in ("load", "alone", "hang", "job", "hook"):
        assert re.search(r"^Skipped: .*no torch here", sections[step], re.MULTILINE), sections[step]
    assert "| ncheck local -v " in page.rpartition("## What ncheck took")[2]
