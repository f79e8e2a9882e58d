"""The limits that a non-interactive login gets: the agent's own."""

import os

from ncheck.agent.files import leaf

# Max locked memory         8388608              8388608              bytes
_MEMLOCK = "Max locked memory"

READS = ("/proc/self/limits", "statvfs /dev/shm")


def answer(sources, arguments, timeout):
    """Return the soft limit (null: unlimited) and /dev/shm's size; OSError where the kernel does not tell it."""
    text = leaf("/proc/self/limits")
    if not isinstance(text, str):
        raise OSError("/proc/self/limits: " + (text or {}).get("error", "it cannot be read"))
    soft = text.partition(_MEMLOCK)[2].split()[0]
    return {"memlock": None if soft == "unlimited" else int(soft), "shm": _shm()}


def _shm():
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108  asked about, not written to
    except OSError as error:
        return {"error": error.strerror}
    return {"total": found.f_frsize * found.f_blocks, "free": found.f_frsize * found.f_bavail}
