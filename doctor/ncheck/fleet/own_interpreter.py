"""What of the head's own environment the job would use on the nodes, and which interpreter it surely would not."""

from __future__ import annotations

import sys
import threading
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncheck.model.evidence import JsonValue
    from ncheck.settings import JobEnvironment

ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
FRAMEWORKS = (
    "torch", "tensorflow", "jax", "horovod", "oneflow", "paddlepaddle", "paddlepaddle-gpu", "deepspeed", "mpi4py",
)  # fmt: skip

_LOOKING = threading.Lock()


def job_environment(asked: JobEnvironment, environ: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return how the agent is to enter the job's environment, as agent/job.py reads it."""
    avoid = own_prefix()
    active: dict[str, JsonValue] = {
        name: environ[name] for name in ACTIVE if environ.get(name) and environ[name].rstrip("/") != avoid
    }
    return {"python": asked.python, "setup": asked.setup, "active": active, "avoid": avoid}


def own_prefix() -> str | None:
    """Return the environment that ncheck alone was installed into; None where a framework lives beside it, or where
    ncheck lives in the system's own Python. Looked for once, though all nodes want it at the same time.
    """
    with _LOOKING:
        return _own_prefix()


@cache
def _own_prefix() -> str | None:
    if sys.prefix == sys.base_prefix or any(_installed(name) for name in FRAMEWORKS):
        return None
    return sys.prefix


def _installed(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False
