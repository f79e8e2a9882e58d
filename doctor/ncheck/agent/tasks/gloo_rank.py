"""Ranks of all-reduces by torch.distributed over gloo, on CPUs; and the store at which such ranks meet.

The job's interpreter, which has torch, runs this text by `python3 -B -c TEXT ASKED` and imports torch once: the store
and each rank are forked from it. Asked {"store": own ip, or ""}, it tells lines of JSON behind "ncheck:"

library   {"version", "path"}
store     {"port"}

and then reads one line for each turn until its input ends: {"turn": a name that no other has, "meeting": {"address",
"port"}, "rank", "world", "sizes", "seconds": for measuring, "timeout": for all of it, "variables": {NAME: value|null}}.
Of a turn it tells {"pid"}, of the rank, which leads a process group, and {"ended": its wait status}; the rank itself

step      {"step": what it does now}
first     {"first": time.monotonic() as the first collective begins}
row       {"row": {"size", "in_place", "seconds", "fastest", "slowest", "wrong"}}
note      {"note": what was left out, and why}
failure   {"failure": words}
done      {"done": true}: all was measured that there was time for

Element i of rank r is v(i) x (r % 7 + 1), v(i) being a small whole number that depends on the position: a float holds
every partial sum exactly, and a part that is missing or in the wrong place is seen.
"""

import json
import os
import signal
import socket
import sys
import time
import warnings
from datetime import timedelta

REPEATS = 5
PERIOD, FACTORS = 127, 7
FLOAT = 4  # bytes
COPIES = 4  # of a size in memory, while it is verified
SPENT = 3.0  # times what the collectives take: they are filled and verified as well
SMALL, STRIDE = 65536, 64  # bytes up to which all take about the same; how much larger a size may be than one known
WIDEST = 1000  # characters of a failure: a line of which others write no part
REASONS = ("", "there is no time for it", "there is no memory for it")


def tell(**said):
    sys.stdout.write("\nncheck:" + json.dumps(said) + "\n")
    sys.stdout.flush()


def main(asked):
    warnings.simplefilter("ignore")  # torch misses numpy, and says so
    import torch

    tell(version=str(torch.__version__), path=torch.__file__)
    if asked["store"]:
        forked(store, asked["store"])
    for line in iter(sys.stdin.readline, ""):
        pid = forked(one_turn, json.loads(line))
        tell(pid=pid)
        tell(ended=os.waitpid(pid, 0)[1])


def forked(work, argument):
    """Run `work` in a child that leads a process group, and return its pid."""
    pid = os.fork()
    if pid:
        return pid
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        work(argument)
    except Exception as error:  # noqa: BLE001  whatever it is, the agent is told
        tell(failure="{}: {}".format(type(error).__name__, error)[:WIDEST])
        os._exit(1)
    os._exit(0)  # what torch does at a process's own end may hang where another rank died


def store(address):
    """Keep a store until this is ended. It listens at this address only: by itself TCPStore takes all of the node."""
    from torch.distributed import TCPStore

    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    sock.bind((address, 0))
    port, number = sock.getsockname()[1], sock.detach()
    try:
        held = TCPStore(address, port, is_master=True, wait_for_workers=False, master_listen_fd=number)
    except TypeError:  # torch before 2.0 cannot be given a socket
        os.close(number)
        held = TCPStore(address, 0, is_master=True, wait_for_workers=False)
    tell(port=held.port)
    while held:
        signal.pause()


def one_turn(asked):
    for name, value in asked["variables"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    Rank(asked).run()


class Rank:
    """This rank's part. All ranks must launch the same collectives: what is left out, they agree upon."""

    def __init__(self, asked):
        import torch
        from torch import distributed

        self.torch, self.distributed = torch, distributed
        self.rank, self.world, self.sizes = asked["rank"], asked["world"], sorted(asked["sizes"])
        self.last = (0, 0.0)  # bytes, and seconds of one
        torch.set_num_threads(1)  # what is filled and verified is none of gloo's work, and others run here as well
        self.join(asked)
        self.ends = time.monotonic() + asked["seconds"]

    def join(self, asked):
        """Come together with the other ranks."""
        where, limit = asked["meeting"], timedelta(seconds=asked["timeout"])
        tell(step="meeting at {address} port {port}".format(**where))
        held = self.distributed.TCPStore(where["address"], where["port"], timeout=limit, wait_for_workers=False)
        tell(step="init")
        self.distributed.init_process_group(
            "gloo", store=self.distributed.PrefixStore(asked["turn"], held), rank=self.rank, world_size=self.world,
            timeout=limit,
        )  # fmt: skip

    def run(self):
        tell(step="first all-reduce", first=time.monotonic())
        self.agreed("")
        for size, wanted in ladder(self.sizes):
            why = self.agreed(self.against(size))
            if why:
                tell(note="left out from {} bytes on: {}".format(min(one for one in self.sizes if one >= size), why))
                break
            tell(step="all-reduce of {} bytes".format(size))
            self.measure(size, wanted)
        self.distributed.barrier()  # whoever leaves takes its connections along
        tell(done=True)

    def against(self, size):
        """Say why this size should be left out; the first one is only for want of memory."""
        if size * COPIES > free_memory():
            return REASONS[2]
        known, seconds = self.last
        spent = known and seconds * max(1.0, size / max(known, SMALL)) * (REPEATS + 1) * SPENT
        return REASONS[1] if spent and time.monotonic() + spent > self.ends else ""

    def agreed(self, why):
        """Return why a size is left out where any rank has a reason."""
        number = self.torch.tensor([float(REASONS.index(why))])
        self.distributed.all_reduce(number, op=self.distributed.ReduceOp.MAX)
        return REASONS[int(number[0])]

    def measure(self, size, wanted):
        values = (self.torch.arange(max(1, size // FLOAT)) % PERIOD + 1).float()
        factors = [rank % FACTORS + 1 for rank in range(self.world)]
        times, wrong = [], 0
        for _ in range(REPEATS + 1 if wanted else 1):
            data = values * factors[self.rank]
            self.distributed.barrier()
            began = time.perf_counter()
            self.distributed.all_reduce(data)
            times.append(time.perf_counter() - began)
            wrong += int((data != values * sum(factors)).sum())
        times = sorted(times[1:] or times)
        self.last = (size, times[len(times) // 2])
        if wanted:
            tell(row={
                "size": size, "in_place": True, "seconds": self.last[1], "fastest": times[0], "slowest": times[-1],
                "wrong": wrong,
            })  # fmt: skip


def ladder(sizes):
    """Yield (size, whether it was asked for): no step is so large that nobody can tell how long it will take."""
    known = SMALL
    for size in sizes:
        while size > STRIDE * known:
            known *= STRIDE
            yield known, False
        yield size, True
        known = max(known, size)


def free_memory():
    """Return the bytes that can be had without swapping."""
    with open("/proc/meminfo") as file:
        # MemAvailable:   14163292 kB
        lines = [line.split() for line in file if line.startswith("MemAvailable:")]
    return int(lines[0][1]) * 1024 if lines else float("inf")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
