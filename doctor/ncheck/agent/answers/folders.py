"""The folders that every job writes to: are they there, may they be written to, have they room. Nothing is written."""

import os
import pwd

from ncheck.agent.isolated_calls import each
from ncheck.agent.mount_table import OWN, mount_of, own_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    from ncheck.agent.commands import Environment
    from ncheck.agent.sources import Sources

# Open MPI puts its session folder where its own variable says, else where the usual ones of temporary files do.
SESSION = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")
TEMPORARY = ("TMPDIR", "TEMP", "TMP")
SESSIONS = ("ompi", "prte")  # and the host's name and the user's id: ompi.node01.1000

_PATIENCE = 5.0  # seconds for all of them: a healthy file system needs milliseconds

READS = (
    "statvfs and access of /tmp, $" + ", $".join(SESSION + TEMPORARY) + " (their nearest folder that exists), "
    "the home folder, /dev/shm and /",
    "whether this user may write to /tmp/{{{}}}.HOST.UID, where it is there".format(",".join(SESSIONS)),
    OWN + ": the kind of their file systems",
)


def answer(sources: "Sources", arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"temporary": [FOLDER], "home": FOLDER, "shm": FOLDER, "root": FOLDER}."""
    home = home_of(sources.job.login_environment)
    named = {"/tmp": ""}  # noqa: S108  asked about, not written to
    for environment in (sources.job.login_environment, sources.job.environment):
        for name in _set_in(environment):
            named.setdefault(os.path.normpath(os.path.join(home, environment[name])), name)
    others = [(home, ""), ("/dev/shm", ""), ("/", "")]  # noqa: S108
    asked = [*named.items(), *others, *((path, "") for place in named for path in _sessions(place))]
    seconds = min(_PATIENCE, timeout)
    hangs = "no answer within {:.0f} s: its file system hangs".format(seconds)
    found = [
        state or {"path": path, "named_by": name, "error": hangs}
        for (path, name), state in each(lambda one: folder(*one), asked, seconds)
    ]
    home_folder, shm, root, *sessions = found[len(named) :]
    foreign = [one for one in sessions if one.get("exists") and not one["writable"] and not one["read_only"]]
    return {"temporary": found[: len(named)] + foreign, "home": home_folder, "shm": shm, "root": root}


def _sessions(place: str) -> "List[str]":
    """Name the folders in which Open MPI 4 and 5 keep what belongs to a session of this user."""
    full = os.uname().nodename
    names = dict.fromkeys((full, full.partition(".")[0]))
    return [os.path.join(place, ".".join((kind, name, str(os.getuid())))) for kind in SESSIONS for name in names]


def home_of(environment: "Environment") -> str:
    """Return the home folder of the login, as a shell and ssh have it."""
    try:
        return environment.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def _set_in(environment: "Environment") -> "List[str]":
    usual = [name for name in TEMPORARY if environment.get(name)]
    return [name for name in SESSION if environment.get(name)] + usual[:1]


def folder(path: str, named_by: str = "") -> "Dict[str, object]":
    """Describe a folder; one that does not exist is as writable, and as large, as the nearest one above it. Of a link
    that leads nowhere, that is what is above its target.
    """
    wanted = there = path if os.path.isdir(path) else os.path.realpath(path)
    while not os.path.isdir(there) and there != "/":
        there = os.path.dirname(there)
    try:
        found = os.statvfs(there)
    except OSError as error:
        return {"path": path, "named_by": named_by, "error": error.strerror or str(error)}
    return {
        "path": path,
        "named_by": named_by,
        "exists": there == wanted,
        "target": wanted if there != wanted and os.path.islink(path) else "",
        "no_exec": bool(found.f_flag & os.ST_NOEXEC),
        "writable": os.access(there, os.W_OK | os.X_OK),
        "read_only": bool(found.f_flag & os.ST_RDONLY),
        "free": found.f_frsize * found.f_bavail,
        "files_free": found.f_favail if found.f_files else None,
        "size": found.f_frsize * found.f_blocks,
        "kind": _kind(there),
    }


def _kind(path: str) -> "Optional[str]":
    """Name the file system that a folder lies on, None where the kernel's table does not show it."""
    try:
        on = mount_of(os.path.realpath(path), own_mounts())
    except OSError:
        return None
    return on["type"] if on else None
