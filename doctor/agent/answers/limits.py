"""The limits that a non-interactive login gets: the agent's own."""

import os

from doctor.agent.files import leaf

# Max locked memory         8388608              8388608              bytes
_ROWS = {
    "memlock": "Max locked memory",
    "open_files": "Max open files",
    "stack": "Max stack size",
    "processes": "Max processes",
}

READS = ("/proc/self/limits", "statvfs /dev/shm")


def answer(sources, arguments, timeout):
    """Return the soft limits (null: unlimited) and /dev/shm's size; OSError where the kernel does not tell them."""
    text = leaf("/proc/self/limits")
    if not isinstance(text, str):
        raise OSError("/proc/self/limits: " + (text or {}).get("error", "it cannot be read"))
    rows = {line[:26].strip(): line[26:].split()[0] for line in text.splitlines()[1:] if line[26:].split()}
    said = {name: _number(rows[row]) for name, row in _ROWS.items()}
    said["shm"] = _shm()
    return said


def _number(word):
    return None if word == "unlimited" else int(word)


def _shm():
    try:
        told = os.statvfs("/dev/shm")  # noqa: S108  asked about, not written to
    except OSError as error:
        return {"error": error.strerror}
    return {"total": told.f_frsize * told.f_blocks, "free": told.f_frsize * told.f_bavail}
