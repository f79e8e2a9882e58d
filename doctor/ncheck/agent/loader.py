"""Where the dynamic loader finds a library that another one asks for, without loading either."""

import os
import re
from functools import lru_cache

from ncheck.agent.commands import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional, Tuple

    from ncheck.agent.commands import Environment
    from ncheck.agent.elf import Library
    from ncheck.agent.job import JobSetup

CACHE = "/etc/ld.so.cache"
DEFAULT = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")  # where the loader looks last


def resolve(
    job: "JobSetup", library: "Optional[Library]", name: str, last: "Iterable[str]"
) -> "Tuple[Optional[str], str]":
    """Return (path, words for where it was found) of what a `Library` of torch asks for, (None, "") without any.

    Without a library: of what a program opens by name. `last` are folders that count where all others have nothing,
    such as those of wheels, in which torch itself looks.
    """
    rpath, runpath = library.search_paths() if library else ([], [])
    for entry in preloaded(job.environment, name.partition(".so")[0] + ".so"):
        return entry, "LD_PRELOAD"
    steps = (
        (rpath, "DT_RPATH of torch's library"),
        (library_path(job.environment), "LD_LIBRARY_PATH"),
        (runpath, "DT_RUNPATH of torch's library"),
        ([os.path.dirname(path) for path in cached(name)], "the loader's cache"),
        (last, "the wheel, opened by torch itself"),
    )
    for folders, how in steps:
        for folder in folders:
            path = os.path.join(folder, name)
            if os.path.exists(path):
                return path, how
    return None, ""


def preloaded(environment: "Environment", *beginnings: str) -> "List[str]":
    """Return the libraries in LD_PRELOAD whose names begin so."""
    entries = re.split(r"[\s:]+", environment.get("LD_PRELOAD", ""))
    return [entry for entry in entries if os.path.basename(entry).startswith(beginnings)]


def library_path(environment: "Environment") -> "List[str]":
    """Return LD_LIBRARY_PATH's folders."""
    return [folder for folder in re.split("[:;]", environment.get("LD_LIBRARY_PATH", "")) if folder]


def cached(*beginnings: str) -> "List[str]":
    """Return the libraries in the loader's cache whose names begin so, in its order."""
    # 	libnccl.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libnccl.so.2
    lines = (line.strip().partition(" => ") for line in _cache().splitlines())
    return [path for name, _, path in lines if name.startswith(beginnings)]


def cache_is_known() -> bool:
    """Tell whether the loader's cache could be read, or there is none: else what was not found may be in it."""
    return " => " in _cache() or not os.path.exists(CACHE)


@lru_cache(maxsize=1)  # several answers look into it, and an agent lives for one run
def _cache() -> str:
    return run(["ldconfig", "-p"], 5.0).get("stdout", "")
