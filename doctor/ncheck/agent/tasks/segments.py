"""What a program of ours left in /dev/shm: NCCL's segments outlive the processes that made them.

Their names tell no owner, and a job in another container may have the same folder while its processes cannot be seen
from here. So only what was seen in the hands of our own ranks is removed.
"""

import glob
import os
import threading

SHM = "/dev/shm"  # noqa: S108  where NCCL and CUDA put theirs
NAMES = ("nccl-", "cuda.shm.")
_TO_LOOK = 3.0  # seconds


def here(folder=SHM):
    """Return {path: inode} of this user's NCCL and CUDA segments."""
    found = {}
    for path in [path for name in NAMES for path in glob.glob(folder + "/" + name + "*")]:
        try:
            about = os.lstat(path)
        except OSError:
            continue
        if about.st_uid == os.geteuid():
            found[path] = about.st_ino
    return found


def held(process="/proc/self", folder=SHM):
    """Return {path: inode} of the segments that a process has mapped or open: it opens one before it maps it."""
    found = dict(_mapped(process, folder))
    wanted = tuple(folder + "/" + name for name in NAMES)
    for link in glob.glob(process + "/fd/*"):
        try:
            path = os.readlink(link)
            if path.startswith(wanted):
                found[path] = os.stat(link).st_ino
        except OSError:
            pass  # closed meanwhile, or another user's
    return {path: inode for path, inode in found.items() if path.startswith(wanted)}


def _mapped(process, folder):
    there = os.fsencode(folder)
    try:
        with open(process + "/maps", "rb") as file:
            # 7f0c4e000000-7f0c4e001000 rw-s 00000000 00:1b 42      /dev/shm/nccl-Xy12Zq
            rows = [line.split(None, 5) for line in file.read().splitlines() if there in line]
    except OSError:
        return {}  # it has ended, or is another user's
    return {os.fsdecode(row[5]): int(row[4]) for row in rows if len(row) == 6}


def seen(processes, folder=SHM, seconds=_TO_LOOK):
    """Return what these processes have, and whether there was time for all: one that hangs may lock its maps."""
    found = {}

    def look():
        for process in processes:
            found.update(held(process, folder))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(seconds)
    return dict(found), not thread.is_alive()


def removed(before, ours, folder=SHM):
    """Remove what is there now, was not before, and is `ours`, {path: inode}; return words for each."""
    words = []
    for path, inode in sorted(here(folder).items()):
        if before.get(path) != inode and ours.get(path) == inode:
            try:
                size = os.stat(path).st_size
                os.unlink(path)
            except OSError:
                continue  # a rank has removed it meanwhile
            words.append("{} ({} bytes) was removed".format(path, size))
    return words


def still(held, folder=SHM):
    """Return those that are there yet."""
    there = here(folder)
    return [path for path, inode in held.items() if there.get(path) == inode]


def of_others(folder=SHM, seconds=_TO_LOOK):
    """Return the paths that other processes have that can be seen from here, and whether there was time for all."""
    own = "/proc/{}".format(os.getpid())
    found, whole = seen([process for process in glob.glob("/proc/[0-9]*") if process != own], folder, seconds)
    return set(found), whole


def unused(held, seconds=_TO_LOOK, folder=SHM):
    """Return those of {path: inode} that no other process has; none where there was no time to see them all."""
    others, whole = of_others(folder, seconds)
    return {path: inode for path, inode in held.items() if path not in others} if whole else {}


def doubtful(before, folder=SHM, seconds=_TO_LOOK):
    """Return words for each that was not there before and that no process has which can be seen from here."""
    new = [path for path, inode in sorted(here(folder).items()) if before.get(path) != inode]
    had = of_others(folder, seconds)[0] if new else set()
    words = "{} came meanwhile, and nothing shows whose it is: it was not removed"
    return [words.format(path) for path in new if path not in had]
