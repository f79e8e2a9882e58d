"""What a program of ours left in /dev/shm: NCCL's segments outlive the processes that made them."""

import glob
import os

SHM = "/dev/shm"  # noqa: S108  where NCCL and CUDA put theirs


def here(folder=SHM):
    """Return {path: inode} of this user's NCCL and CUDA segments."""
    found = {}
    for path in glob.glob(folder + "/nccl-*") + glob.glob(folder + "/cuda.shm.*"):
        try:
            about = os.lstat(path)
        except OSError:
            continue
        if about.st_uid == os.geteuid():
            found[path] = about.st_ino
    return found


def removed(before, pids, folder=SHM):
    """Remove what is there now and was not before, and belongs to these processes or to none; return words for each."""
    new = [path for path, inode in here(folder).items() if before.get(path) != inode]
    words = []
    for path in sorted(new):
        if _is_of(path, pids) and not _held(path):
            try:
                size = os.stat(path).st_size
                os.unlink(path)
            except OSError:
                continue  # whose it is has removed it meanwhile
            words.append("{} ({} bytes) was removed".format(path, size))
    return words


def _is_of(path, pids):
    # /dev/shm/cuda.shm.3e8.1a2b.1: user and process as hexadecimal numbers   |   /dev/shm/nccl-Xy12Zq: names nobody
    name = os.path.basename(path)
    return name.startswith("nccl-") or any("{:x}".format(pid) == part for pid in pids for part in name.split(".")[3:4])


def _held(path):
    """Tell whether a living process has it: another job of this user's may have begun meanwhile.

    It opens its segment before it maps it, and closes it when it has.
    """
    return any(_maps(path, process) or _has_open(path, process) for process in glob.glob("/proc/[0-9]*"))


def _maps(path, process):
    try:
        with open(process + "/maps", "rb") as file:
            return path.encode() in file.read()
    except OSError:
        return False  # it has ended, or is another user's


def _has_open(path, process):
    for link in glob.glob(process + "/fd/*"):
        try:
            if os.readlink(link) == path:
                return True
        except OSError:
            pass
    return False
