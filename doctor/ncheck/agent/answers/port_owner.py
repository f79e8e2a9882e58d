"""Who holds a TCP port on this node, as far as this user may see."""

import os
import pwd

from ncheck.agent.tcp_table import LISTENS, tcp_sockets


def owner_of(port, proc="/proc"):
    """Return "python3 (pid 4711) of ada", "a program of ada" where only the user is to be seen, "" where nothing is."""
    holders = sorted(_holders(port, proc), key=lambda holder: holder[0] != LISTENS)
    for _, user, inode in holders[:1]:
        pid = _pid_of(inode, proc)
        program = "{} (pid {})".format(_program(pid, proc), pid) if pid else "a program"
        return "{} of {}".format(program, _name(user))
    return ""


def _holders(port, proc):
    """Yield (state, user id, inode) of every socket with this local port."""
    for local, _, state, user, inode in tcp_sockets(proc):
        if int(local.rpartition(":")[2], 16) == port and inode != "0":
            yield state, user, inode


def _pid_of(inode, proc):
    """Return the process that has the socket open, None where it is another's and this user may not look."""
    for pid in os.listdir(proc):
        if not pid.isdigit():
            continue
        folder = "{}/{}/fd".format(proc, pid)
        try:
            for number in os.listdir(folder):
                if os.readlink("{}/{}".format(folder, number)) == "socket:[{}]".format(inode):
                    return int(pid)
        except OSError:
            continue
    return None


def _program(pid, proc):
    try:
        with open("{}/{}/comm".format(proc, pid), errors="replace") as file:
            return file.read().strip()[:64]
    except OSError:
        return "a program"


def _name(user):
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return "user {}".format(user)
