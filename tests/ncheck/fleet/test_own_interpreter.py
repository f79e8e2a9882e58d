"""What of the head's environment counts on the nodes."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from ncheck.fleet.own_interpreter import job_environment, own_prefix
from ncheck.settings import JobEnvironment

MODULE = "ncheck.fleet.own_interpreter"


def in_a_venv(folder: Path) -> str:
    """Return what ncheck says of a virtual environment that holds nothing else."""
    alone = folder.parent / "alone"  # what is tested may lie beside a torch, in one site-packages
    alone.mkdir()
    (alone / "ncheck").symlink_to(Path(sys.modules["ncheck"].__file__ or "").parent)
    done = subprocess.run(
        [str(folder / "bin" / "python3"), "-c", f"from {MODULE} import own_prefix; print(own_prefix())"],
        env={"PYTHONPATH": str(alone)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_venv_with_nothing_but_ncheck_is_never_the_jobs(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    assert in_a_venv(tmp_path / "venv") == str(tmp_path / "venv")


def test_a_venv_with_a_framework_beside_ncheck_may_be_the_jobs(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    (site,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    (site / "torch-2.3.0.dist-info").mkdir()
    (site / "torch-2.3.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.3.0\n")
    assert in_a_venv(tmp_path / "venv") == "None"


def test_what_is_active_travels_with_what_was_asked_for() -> None:
    asked = JobEnvironment(python="/opt/python3", setup="module load nccl")
    environ = {"CONDA_PREFIX": "/opt/conda/envs/train", "HOME": "/home/me"}
    assert job_environment(asked, environ) == {
        "python": "/opt/python3", "setup": "module load nccl", "active": {"CONDA_PREFIX": "/opt/conda/envs/train"},
        "avoid": own_prefix(),
    }  # fmt: skip
