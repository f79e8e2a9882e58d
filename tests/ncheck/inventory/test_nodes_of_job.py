"""The nodes of a job that runs, as squeue lists them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.errors import InventoryError
from ncheck.inventory.read import nodes_of_job


def squeue(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "squeue"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_nodes_of_all_parts_of_a_job_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    squeue(tmp_path, monkeypatch, '[ "$4" = --jobs=812 ] && printf "gpu[01-04]\\nlogin1\\n"')
    assert nodes_of_job("812") == "gpu[01-04],login1"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 0", "no such job runs"),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", "Invalid job id specified"),
    ],
)
def test_a_job_that_does_not_run_has_no_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    squeue(tmp_path, monkeypatch, script)
    with pytest.raises(InventoryError, match=f"^--slurm 812: .*{why}; to list yours: squeue --me$"):
        nodes_of_job("812")


def test_a_machine_without_slurm_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InventoryError, match="no squeue on this machine"):
        nodes_of_job("812")
