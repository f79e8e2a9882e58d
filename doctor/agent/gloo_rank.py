"""One rank of an all-reduce by torch.distributed over gloo, on CPUs; and the store at which such ranks meet.

The job's interpreter, which has torch, runs this text by `python3 -B -c TEXT ASKED`. It tells lines of JSON behind
"ncheck:". A store is asked {"store": own ip} and tells {"port", "version", "path"}; it ends with its input. A rank is
asked {"meeting": {"address", "port"}, "turn": a name that no other turn has, "rank", "world", "sizes", "seconds": for
measuring, "timeout": for all of it}, and tells

step      {"step": what it does now}
library   {"version", "path"}
first     {"first": time.monotonic() as the first collective begins}
row       {"row": {"size", "in_place", "seconds", "fastest", "slowest", "wrong"}}
note      {"note": what was left out, and why}
failure   {"failure": words}
done      {"done": true}: all of it was measured

Element i of rank r is v(i) x (r % 7 + 1), v(i) being a small whole number that depends on the position: a float holds
every partial sum exactly, and a part that is missing or in the wrong place is seen.
"""

import json
import os
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


def tell(**said):
    sys.stdout.write("\nncheck:" + json.dumps(said) + "\n")
    sys.stdout.flush()


def store(address):
    """Keep a store until the input ends."""
    import torch
    from torch.distributed import TCPStore

    held = TCPStore(address, 0, is_master=True, wait_for_workers=False)
    tell(port=held.port, version=str(torch.__version__), path=torch.__file__)
    sys.stdin.read()


def joined(asked):
    """Come together with the other ranks, and return torch and its distributed."""
    tell(step="import torch")
    import torch
    from torch import distributed

    tell(version=str(torch.__version__), path=torch.__file__)
    limit = timedelta(seconds=asked["timeout"])
    where = asked["meeting"]
    tell(step="meet the others at {address} port {port}".format(**where))
    held = distributed.TCPStore(where["address"], where["port"], timeout=limit, wait_for_workers=False)
    tell(step="init")
    distributed.init_process_group(
        "gloo", store=distributed.PrefixStore(asked["turn"], held), rank=asked["rank"], world_size=asked["world"],
        timeout=limit,
    )  # fmt: skip
    return torch, distributed


class Rank:
    """This rank's part. All ranks must launch the same collectives: what is left out, they agree upon."""

    def __init__(self, asked):
        self.rank, self.world, self.sizes = asked["rank"], asked["world"], sorted(asked["sizes"])
        self.torch, self.distributed = joined(asked)
        self.ends = time.monotonic() + asked["seconds"]
        self.last = (0, 0.0)  # bytes, and seconds of one

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
            return "there is no memory for it"
        known, seconds = self.last
        spent = known and seconds * max(1.0, size / max(known, SMALL)) * (REPEATS + 1) * SPENT
        return "there is no time for it" if spent and time.monotonic() + spent > self.ends else ""

    def agreed(self, why):
        """Return why a size is left out where any rank has a reason."""
        reasons = ("", "there is no time for it", "there is no memory for it")
        number = self.torch.tensor([float(reasons.index(why))])
        self.distributed.all_reduce(number, op=self.distributed.ReduceOp.MAX)
        return reasons[int(number[0])]

    def measure(self, size, wanted):
        count = max(1, size // FLOAT)
        values = (self.torch.arange(count) % PERIOD + 1).float()
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


def main(asked):
    warnings.simplefilter("ignore")  # torch misses numpy, and says so
    if "store" in asked:
        return store(asked["store"])
    try:
        Rank(asked).run()
    except Exception as error:  # noqa: BLE001  whatever it is, the agent is told
        tell(failure="{}: {}".format(type(error).__name__, error))
        os._exit(1)
    os._exit(0)  # what torch does at a process's own end may hang where another rank died


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
