"""A rank that talks to its peers over plain sockets: talking_rank.py JOB KIND.

Rank 0 keeps a store; every rank says there where it listens (SAYS, or the address by which it reached the store), then
connects to all ranks before it. Then all send to all and read from all, turn by turn. KIND: "busy" goes on for ever;
"idle" stops once all are connected; "deaf" stops after a few turns, in which it takes part. Only the end of its host
ends it.
"""

import json
import os
import socket
import sys
import threading
import time

KIND = sys.argv[2]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
MASTER = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
DATA_PORT = MASTER[1] + 1 + RANK
TURN = 1 << 16  # bytes
TURNS = {"busy": 1 << 30, "idle": 0, "deaf": 3}


def connected(address: tuple[str, int]) -> socket.socket:
    while True:
        try:
            return socket.create_connection(address)
        except OSError:  # noqa: PERF203
            time.sleep(0.02)


def serve(listener: socket.socket) -> None:
    held: list[socket.socket] = []
    said: dict[str, tuple[str, int]] = {}
    while len(said) < SIZE:
        client, _ = listener.accept()
        held.append(client)
        said.update(json.loads(client.makefile().readline()))
    for client in held:
        client.sendall((json.dumps(said) + "\n").encode())
    time.sleep(10000)


def read(peer: socket.socket) -> None:
    left = TURN
    while left:
        left -= len(peer.recv(left))


def main() -> None:
    own = os.environ.get("SAYS", "")
    listening = socket.create_server((own, DATA_PORT))
    if RANK == 0:
        threading.Thread(target=serve, args=(socket.create_server(("", MASTER[1])),), daemon=True).start()
    store = connected(MASTER)
    address = own or store.getsockname()[0]
    store.sendall((json.dumps({str(RANK): [address, DATA_PORT]}) + "\n").encode())
    said = json.loads(store.makefile().readline())
    peers = [connected(tuple(said[str(rank)])) for rank in range(RANK)]
    peers += [listening.accept()[0] for _ in range(RANK + 1, SIZE)]
    sys.stdout.write("met\n")
    sys.stdout.flush()
    for _ in range(TURNS[KIND]):
        for peer in peers:
            peer.sendall(bytes(TURN))
        for peer in peers:
            read(peer)
        time.sleep(0.02)
    time.sleep(10000)


main()
