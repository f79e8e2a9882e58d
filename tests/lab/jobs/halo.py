"""A program of mpi4py whose ranks exchange what lies at their borders: TROUBLE=name@rank:step, as in train.py."""

from __future__ import annotations

import os
import sys
import time

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
TROUBLE, _, WHERE = os.environ["TROUBLE"].partition("@")
WHO, FROM = (int(number) for number in WHERE.split(":"))
PAIR = WORLD.Split(RANK // 2)
BORDER = bytearray(1 << 22)  # too much for MPI to take it before somebody receives it


def exchange(step: int) -> None:
    """Pass a border on to the next rank of the pair."""
    if TROUBLE == "tags" and step >= FROM:
        if RANK == 0:
            WORLD.Send(BORDER, dest=1, tag=7)
        elif RANK == 1:
            WORLD.Recv(BORDER, source=0, tag=8)
    elif TROUBLE == "sends" and step >= FROM and RANK < 2:
        WORLD.Send(BORDER, dest=1 - RANK)
        WORLD.Recv(BORDER, source=1 - RANK)
    elif RANK < 2:
        WORLD.Sendrecv(bytes(8), dest=1 - RANK, recvbuf=bytearray(8), source=1 - RANK)


for number in range(10**6):
    exchange(number)
    if TROUBLE == "communicator" and number >= FROM and RANK == WHO:
        PAIR.Barrier()
    else:
        WORLD.Barrier()
    time.sleep(0.05)
    sys.stdout.write(f"[rank{RANK}]: step {number}\n")
    sys.stdout.flush()
