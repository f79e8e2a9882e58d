"""Who holds a TCP port on this node, as far as this user may see."""

import os
import pwd

_LISTENS = "0A"


def owner_of(port, proc="/proc"):
    """Return "python3 (pid 4711) of ada", "a program of ada" where only the user is to be seen, "" where nothing is."""
    holders = sorted(_holders(port, proc), key=lambda holder: holder[0] != _LISTENS)
    for _, user, inode in holders[:1]:
        pid = _pid_of(inode, proc)
        program = "{} (pid {})".format(_program(pid, proc), pid) if pid else "a program"
        return "{} of {}".format(program, _name(user))
    return ""


def _holders(port, proc):
    """Yield (state, user id, inode) of every socket with this local port."""
    for table in ("tcp", "tcp6"):
        try:
            with open("{}/net/{}".format(proc, table)) as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            # 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000 100 0
            fields = line.split()
            if len(fields) > 9 and int(fields[1].rpartition(":")[2], 16) == port and fields[9] != "0":
                yield fields[3], int(fields[7]), fields[9]


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
