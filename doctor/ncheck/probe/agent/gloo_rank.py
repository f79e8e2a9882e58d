"""Ranks of collectives by torch.distributed over gloo, on CPUs; and the store at which such ranks meet.

The job's interpreter, which has torch, runs this text by `python3 -B -c TEXT ASKED` and imports torch once: the store
and each rank are forked from it. With {"store": own ip, or ""} it writes messages, lines of JSON after "ncheck:"

library   {"version", "path"}
store     {"port"}

and then reads one line for each step until its input ends: {"step": a unique name, "meeting": {"address",
"port"}, "rank", "world", "op", "sizes", "repeats", "seconds": for measuring, "timeout": for all of it, "variables":
{NAME: value|null}}. For a step it writes {"pid"} of the rank, which leads a process group, and {"ended": its wait
status}; the rank writes

step      {"step": the current step}
first     {"first": time.monotonic() as the first collective begins}
row       {"row": {"size", "in_place", "seconds", "fastest", "slowest", "wrong", "timing"}}
note      {"note": what was left out, and why}
failure   {"failure": words}
done      {"done": true}: all is measured that there is time for

Element i of rank r is v(i) x (r % 7 + 1), v(i) being a small whole number that depends on the position: a float holds
every partial sum exactly, and a missing or misplaced part is found. Where nothing is summed up, each rank begins at a
position of its own. A reduce-scatter is not measured: torch makes one over gloo of an all-reduce.
"""

import gc
import json
import os
import socket
import sys
import time
import warnings
from datetime import timedelta
from statistics import median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

    Tensor = Any
    Task = Dict[str, Any]  # of one step, as it comes from the parent

FEW = 3  # repeats where there is little time
PART = 0.25  # of the time that is left, for one size: the rest is for larger ones
PERIOD, FACTORS = 127, 7
APART = 31  # elements from where one rank begins to where the next one does
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, BROADCAST = "all-reduce", "all-gather", "all-to-all", "broadcast"
FLOAT = 4  # bytes
COPIES = 4  # of a size in memory, while it is verified
SHORTEST = 1e-6  # seconds: no clock is trusted below
SPENT = 3.0  # times the seconds of the collectives: data is filled and verified as well
SMALL, STRIDE = 65536, 64  # bytes up to which all take about the same; how much larger a size may be than one known
WIDEST = 1000  # characters of a failure: a pipe never splits such a line
LOOKS = 0.5  # seconds between two looks of a store at whether its parent is still there
TO_OPEN = 10.0  # seconds for a store to reach itself: a firewall may let no connection in
REASONS = ("", "there is no time for it", "there is no memory for it")


def send(**message: object) -> None:
    sys.stdout.write("\nncheck:" + json.dumps(message) + "\n")
    sys.stdout.flush()


def main(arguments: "Dict[str, str]") -> None:
    warnings.simplefilter("ignore")  # torch warns if numpy is missing
    gc.disable()  # it takes a tenth of the import, and would halt a rank while it is measured
    import torch

    send(version=str(torch.__version__), path=torch.__file__)
    if arguments["store"]:
        forked(store, arguments["store"])
    for line in iter(sys.stdin.readline, ""):
        pid = forked(one_step, json.loads(line))
        send(pid=pid)
        send(ended=os.waitpid(pid, 0)[1])


def forked(work: "Callable[[Any], object]", argument: object) -> int:
    """Run `work` in a child that leads a process group, and return its pid."""
    pid = os.fork()
    if pid:
        return pid
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        work(argument)
    except Exception as error:  # noqa: BLE001  whatever it is, the agent gets it
        send(failure="{}: {}".format(type(error).__name__, error)[:WIDEST])
        os._exit(1)
    os._exit(0)  # what torch does at a process's own end may hang where another rank died


def store(address: str) -> None:
    """Run a store until this process is ended. It listens on this address only; the default is all addresses."""
    from torch.distributed import TCPStore

    parent = os.getppid()
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    sock.bind((address, 0))
    port, number = sock.getsockname()[1], sock.detach()
    options = {"is_master": True, "wait_for_workers": False, "timeout": timedelta(seconds=TO_OPEN)}
    try:
        tcp_store = TCPStore(address, port, master_listen_fd=number, **options)
    except TypeError:  # torch before 2.0 cannot be given a socket
        os.close(number)
        tcp_store = TCPStore(address, 0, **options)
    send(port=tcp_store.port)
    while tcp_store and os.getppid() == parent:  # it leads a process group of its own: nothing else ends it
        time.sleep(LOOKS)


def one_step(asked: "Task") -> None:
    for name, value in asked["variables"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    Rank(asked).run()


class Rank:
    """One rank. All ranks must launch the same collectives: they agree on the sizes that are left out."""

    def __init__(self, asked: "Task") -> None:
        import torch
        from torch import distributed

        self.torch, self.distributed = torch, distributed
        self.rank, self.world, self.sizes = asked["rank"], asked["world"], sorted(asked["sizes"])
        self.op: str = asked["op"]
        self.repeats, self.few = asked["repeats"], min(FEW, asked["repeats"])
        self.last = (0, 0.0)  # bytes, and seconds of one
        torch.set_num_threads(1)  # to fill and verify is not gloo's work, and other ranks run here as well
        self.join(asked)
        self.ends = time.monotonic() + asked["seconds"]

    def join(self, asked: "Task") -> None:
        """Meet the other ranks."""
        where, limit = asked["meeting"], timedelta(seconds=asked["timeout"])
        send(step="meeting at {address} port {port}".format(**where))
        tcp_store = self.distributed.TCPStore(where["address"], where["port"], timeout=limit, wait_for_workers=False)
        send(step="init")
        self.distributed.init_process_group(
            "gloo", store=self.distributed.PrefixStore(asked["step"], tcp_store), rank=self.rank, world_size=self.world,
            timeout=limit,
        )  # fmt: skip

    def run(self) -> None:
        send(step="first all-reduce", first=time.monotonic())
        self.agreed("")
        for size, wanted in ladder(self.sizes):
            requested = min(other for other in self.sizes if other >= size)
            why = self.agreed(self.reason_against(size, requested))
            if why:
                send(note="left out from {} bytes on: {}".format(requested, why))
                break
            send(step="{} of {} bytes".format(self.op, size))
            self.measure(size, wanted=wanted)
        self.distributed.barrier()  # a rank that ends closes its connections
        send(done=True)

    def reason_against(self, size: int, requested: int) -> str:
        """Return why this size should be left out, "" if not; the first one only for lack of memory.

        It may be one on the ladder to the size that was requested: without memory for that it is not needed.
        """
        if requested * COPIES > free_memory():
            return REASONS[2]
        known, seconds = self.last
        spent = known and seconds * max(1.0, size / max(known, SMALL)) * (self.few + 1) * SPENT
        return REASONS[1] if spent and time.monotonic() + spent > self.ends else ""

    def largest(self, number: float) -> int:
        """Return the largest of the ranks' numbers."""
        numbers = self.torch.tensor([float(number)])
        self.distributed.all_reduce(numbers, op=self.distributed.ReduceOp.MAX)
        return int(numbers[0])

    def agreed(self, why: str) -> str:
        """Return why a size is left out, if any rank has a reason."""
        return REASONS[self.largest(REASONS.index(why))]

    def affordable(self, size: int, seconds: float) -> int:
        """Return how often a size that took these seconds is repeated: fewer times where a rank has little time."""
        left = (self.ends - time.monotonic()) * (1 if size == self.sizes[-1] else PART)
        fits = max(FEW, int(left / (max(seconds, SHORTEST) * SPENT)))
        return -self.largest(-min(self.repeats, fits))

    def elements(self, rank: int, start: int, count: int) -> "Tensor":
        """Return so many elements of a rank from this one on, where nothing is summed up."""
        first = start + rank * APART
        values = (self.torch.arange(first, first + PERIOD) % PERIOD + 1) * (rank % FACTORS + 1)
        return values.float().repeat(count // PERIOD + 1)[:count]

    def contents(self, size: int) -> "Tuple[Tensor, Tensor]":
        """Return what this rank sends, and what it must have afterwards."""
        count, part = max(1, size // FLOAT), max(1, size // FLOAT // self.world)
        ranks, rank = range(self.world), self.rank
        if self.op == ALL_REDUCE:
            values = self.elements(0, 0, count)  # as they are, once
            return values * (rank % FACTORS + 1), values * sum(other % FACTORS + 1 for other in ranks)
        if self.op == ALL_GATHER:
            received = self.torch.cat([self.elements(other, 0, part) for other in ranks])
            return self.elements(rank, 0, part), received
        if self.op == ALL_TO_ALL:
            received = self.torch.cat([self.elements(other, rank * part, part) for other in ranks])
            return self.elements(rank, 0, self.world * part), received
        source = 0 if self.op == BROADCAST else (rank - 1) % self.world
        return self.elements(rank, 0, count), self.elements(source, 0, count)

    def operate(self, data: "Tensor", received: "Tensor") -> None:
        """Run the operation once; in place `received` holds what this rank sends."""
        if self.op == ALL_REDUCE:
            self.distributed.all_reduce(received)
        elif self.op == BROADCAST:
            self.distributed.broadcast(received, src=0)
        elif self.op == ALL_GATHER:
            self.distributed.all_gather(list(received.chunk(self.world)), data)
        elif self.op == ALL_TO_ALL:
            self.distributed.all_to_all_single(received, data)
        else:
            sending = self.distributed.isend(data, (self.rank + 1) % self.world)
            self.distributed.recv(received, (self.rank - 1) % self.world)
            sending.wait()

    def measure(self, size: int, *, wanted: bool) -> None:
        data, right = self.contents(size)
        in_place = self.op in (ALL_REDUCE, BROADCAST)
        times: "List[float]" = []
        wrong, repeats = 0, 0
        while len(times) <= repeats:
            received = data.clone() if in_place else self.torch.zeros_like(right)
            self.distributed.barrier()
            began = time.perf_counter()
            self.operate(data, received)
            times.append(time.perf_counter() - began)
            wrong += int((received != right).sum())
            if wanted and not repeats:
                repeats = self.affordable(size, times[0])
        times = sorted(times[1:] or times)
        self.last = (size, median(times))
        if wanted:
            send(row={
                "size": size, "in_place": in_place, "seconds": self.last[1], "fastest": times[0], "slowest": times[-1],
                "wrong": wrong, "timing": {"warm_ups": 1, "repeats": repeats, "iterations": 1},
            })  # fmt: skip


def ladder(sizes: "Iterable[int]") -> "Iterator[Tuple[int, bool]]":
    """Yield (size, whether it was requested): no size is so much larger that its time cannot be predicted."""
    known = SMALL
    for size in sizes:
        while size > STRIDE * known:
            known *= STRIDE
            yield known, False
        yield size, True
        known = max(known, size)


def free_memory() -> float:
    """Return the bytes that are available without swapping."""
    with open("/proc/meminfo") as file:
        # MemAvailable:   14163292 kB
        lines = [line.split() for line in file if line.startswith("MemAvailable:")]
    return int(lines[0][1]) * 1024 if lines else float("inf")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
