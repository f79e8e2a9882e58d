"""What the command changes in its own process. The library changes none of it: a program may call `ncheck.run`."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ncheck.agent import proc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# Python looks for garbage in cycles at every 700th new object, and a start creates 80,000 that all stay. At exit it
# looks through all of them several times: a fifth of a run's CPU for objects that end with the process anyway.
_GC_THRESHOLDS = (100_000, 20, 50)
_OPEN_FILES = 65_536  # enough for ten thousand nodes at a socket, or three pipes, each


def collect_garbage_rarely() -> None:
    """Let the garbage collector run rarely: the process ends soon."""
    gc.set_threshold(*_GC_THRESHOLDS)


def prepare_fan_out(*, many: bool = True) -> None:
    """Make the process ready for many connections: open files, and an import of paramiko in half the time."""
    if many:
        allow_open_files()
    if not any(isinstance(finder, NoInvokeForParamiko) for finder in sys.meta_path):
        sys.meta_path.insert(0, NoInvokeForParamiko())


def allow_open_files(wanted: int = _OPEN_FILES) -> None:
    """Raise the soft limit of open files to `wanted`, or to the hard limit; never lower it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


class NoInvokeForParamiko:
    """Hides `invoke` from paramiko.config, which imports it where it can, for a feature that ncheck does not use: it
    takes half of paramiko's import time. Every other import of `invoke` works.
    """

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Find nothing, as a finder that knows no module; refuse `invoke` while paramiko.config is imported."""
        importer = sys.modules.get("paramiko.config")
        if name == "invoke" and importer and not hasattr(importer, "SSHConfig"):
            raise ModuleNotFoundError("No module named 'invoke'", name=name)
        return None


def process_seconds() -> float:
    """Return how many seconds ago this process began; 0 where /proc does not say."""
    own = proc.stat("self")
    try:
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
    except OSError:
        return 0.0
    return max(0.0, now - own.started / os.sysconf("SC_CLK_TCK")) if own else 0.0
