"""The nodes of a running job of Slurm, as squeue on this machine lists them."""

from __future__ import annotations

import subprocess

from ncheck.errors import InventoryError
from ncheck.text import printable

_PATIENCE = 10.0  # seconds


def nodes_of_job(job: str) -> str:
    """Return the node list of a job: "gpu[01-04]". Raises InventoryError where Slurm does not name one."""
    argv = ["squeue", "--noheader", "--states=RUNNING,SUSPENDED,COMPLETING", "--format=%N", f"--jobs={job}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except FileNotFoundError:
        raise InventoryError(f"--slurm {job}: no squeue on this machine; name the nodes: ncheck triage NODES") from None
    except subprocess.TimeoutExpired:
        raise InventoryError(f"--slurm {job}: squeue did not answer within {_PATIENCE:.0f} s") from None
    nodes = ",".join(done.stdout.split())
    if done.returncode or not nodes:
        last = done.stderr.strip().splitlines()[-1:]
        why = printable(last[0], 200) if last else "no such job runs"
        raise InventoryError(f"--slurm {job}: {why}; to list yours: squeue --me")
    return nodes
