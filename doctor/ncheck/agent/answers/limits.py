"""The limits that a non-interactive login gets: the agent's own."""

import os
import resource

READS = ("getrlimit of memlock, nofile, nproc, as, cpu and fsize", "statvfs /dev/shm")

_LIMITS = {
    "memlock": resource.RLIMIT_MEMLOCK,
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "address_space": resource.RLIMIT_AS,
    "cpu_seconds": resource.RLIMIT_CPU,
    "file_size": resource.RLIMIT_FSIZE,
}


def answer(sources, arguments, timeout):
    """Return the soft limits (null: unlimited) and /dev/shm's size."""
    limits = {name: _soft(number) for name, number in _LIMITS.items()}
    return dict(limits, shm=_shm())


def _soft(number):
    soft = resource.getrlimit(number)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _shm():
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108  asked about, not written to
    except OSError as error:
        return {"error": error.strerror}
    return {"total": found.f_frsize * found.f_blocks, "free": found.f_frsize * found.f_bavail}
