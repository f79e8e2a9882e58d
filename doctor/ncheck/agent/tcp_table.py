"""The kernel's table of TCP sockets, which every user may read."""

LISTENS, SYN_SENT = "0A", "02"  # states, as the table writes them


def tcp_sockets(proc="/proc"):
    """Yield (local, remote, state, user id, inode) of every socket, addresses as they stand: "0100007F:1F90"."""
    for table in ("tcp", "tcp6"):
        try:
            with open("{}/net/{}".format(proc, table)) as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            # 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000 100 0
            fields = line.split()
            if len(fields) > 9:
                yield fields[1], fields[2], fields[3], int(fields[7]), fields[9]
