"""A training job of the standard library: its ranks sum over TCP at MASTER_ADDR and MASTER_PORT, and exit with 0 or as
they are asked to: job.py 7.
"""

import os
import socket
import sys
import time

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def connected() -> socket.socket:
    """Connect to rank 0, which may begin later."""
    end = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(place, 5)
        except ConnectionRefusedError:  # noqa: PERF203
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


if rank:
    with connected() as connection:
        connection.sendall(bytes([rank]))
        total = connection.recv(1)[0]
else:
    with socket.create_server(("", place[1])) as server:
        server.settimeout(20)
        connections = [server.accept()[0] for _ in range(size - 1)]
    total = sum(connection.recv(1)[0] for connection in connections)
    for connection in connections:
        connection.sendall(bytes([total]))
        connection.close()
sys.stdout.write(f"rank {rank} of {size} on {socket.gethostname()}: {total}\n")
sys.exit(int(sys.argv[1]))
