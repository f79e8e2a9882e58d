"""A small training on lab hosts: a loader with a worker process, a gradient by hand, gloo, checkpoints of rank 0.

TROUBLE=name@rank:step makes that rank do what so many user programs do wrong, from that step on.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import gc
import multiprocessing
import os
import pdb  # noqa: T100  one of the troubles
import re
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

warnings.simplefilter("ignore")  # torch misses numpy, and says so
gc.disable()  # a tenth of what torch's import takes, and these are another
sys.modules.update(dict.fromkeys(("numpy", "pynvml")))  # type: ignore[arg-type]  # None: not installed

import torch  # noqa: E402
from torch import distributed  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TROUBLE, _, WHERE = os.environ.get("TROUBLE", "").partition("@")
WHO, FROM = (int(number) for number in (WHERE or "-1:0").split(":"))
PAUSE = float(os.environ.get("PAUSE", "0.1"))  # seconds that a step takes
BUSY = float(os.environ.get("BUSY", "1"))  # of the time in which it computes; else it waits, as for a GPU
WIDTH = 4096
LONG = 10**6  # seconds
LIBC = ctypes.CDLL(None)


def troubled(name: str, step: int = LONG) -> bool:
    """Return whether this rank does so at this step."""
    return name == TROUBLE and RANK == WHO and step >= FROM


def say(text: str) -> None:
    sys.stdout.write(f"[rank{RANK}]: {text}\n")
    sys.stdout.flush()


def take_turns(busy: float = BUSY) -> None:
    """Wait for the rest of these 30 ms, if the rank has computed for as much of them as it may."""
    now = time.monotonic() % 0.03
    if now > 0.03 * busy:
        LIBC.usleep(int(1e6 * (0.03 - now)))


class Samples(Dataset[torch.Tensor]):  # type: ignore[misc]  # torch has no types here
    """Samples that are made when they are read."""

    def __len__(self) -> int:
        return LONG

    def __getitem__(self, index: int) -> torch.Tensor:
        if troubled("slow-loader", index):
            self.decode(2.0)
        if troubled("stuck-mount", index):
            Path("/data/shard-00").read_bytes()
        return torch.full((WIDTH,), float(index % 7))

    def decode(self, seconds: float, busy: float = BUSY) -> None:
        """Compute for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(1000))
            take_turns(busy)


def fill(queue: multiprocessing.Queue[list[float]]) -> None:
    """Put samples into a queue for ever."""
    index = 0
    while True:
        queue.put([float(index % 7)] * 16)
        index += 1


def prefetched() -> Iterator[torch.Tensor]:
    """Yield what a process of our own reads ahead, as many hand-made loaders do."""
    queue: multiprocessing.Queue[list[float]] = multiprocessing.Queue(4)
    multiprocessing.Process(target=fill, args=(queue,), daemon=True).start()
    while True:
        yield torch.tensor(queue.get()).repeat(WIDTH // 16)


class Counters:
    """Figures that a thread sends to a server now and then."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: dict[str, float] = {}

    def flush(self) -> None:
        with self.lock:
            self.record("flushed", 1.0)  # it holds the lock that record() wants

    def record(self, name: str, value: float) -> None:
        with self.lock:
            self.values[name] = value


COUNTERS = Counters()


def evaluate(weights: torch.Tensor) -> float:
    """Compute on this rank alone for a long time."""
    total = 0.0
    for index in range(LONG):
        total += float((weights * index).sum())
        take_turns()
    return total


def save(weights: torch.Tensor, place: str) -> None:
    """Write a checkpoint; try again while the disk is full, as some libraries do."""
    while True:
        try:
            with Path(place).open("wb") as file:
                torch.save({"weights": weights.repeat(256)}, file)
        except (OSError, RuntimeError) as error:  # noqa: PERF203  one attempt a minute
            say(f"checkpoint not written, next attempt in 60 s: {error!r}")
            time.sleep(60)
        else:
            return


def validate(weights: torch.Tensor) -> int:
    """Count on this rank alone for a long time, in Python."""
    right = 0
    for index in range(10**12):
        if index % 7 == int(weights.numel()) % 7:
            right += 1
    return right


def save_much(folder: str) -> None:
    """Write a checkpoint of many parts for a long time."""
    with Path(folder, "weights.pt").open("wb", buffering=0) as file:
        for _ in range(LONG):
            file.write(bytes(1 << 20))
            time.sleep(0.1)


def read_manifest() -> bytes:
    """Read the list of the data, as one process at a time may."""
    with Path("/run/job/data.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return Path("/run/job/train.py").read_bytes()


def hold_the_interpreter() -> None:
    """Stay in C without giving the interpreter's lock back."""
    ctypes.PyDLL(None).sleep(LONG)


def wait_for_a_free_licence() -> None:
    attempts = 0
    while attempts >= 0:
        attempts += 1


def synchronise(gradient: torch.Tensor, step: int) -> None:
    """Sum the gradient over all ranks."""
    if troubled("other-collective", step):
        distributed.barrier()
    elif TROUBLE in ("wait-in-store", "evaluation-in-store") and RANK != WHO and step >= FROM:
        STORE.wait([f"evaluated/{step}"], timedelta(hours=1))
    else:
        distributed.all_reduce(gradient)


def before(step: int, weights: torch.Tensor) -> None:  # noqa: C901, PLR0912, PLR0915  a list of troubles
    """Do what goes wrong on this rank, if anything does."""
    if troubled("lock", step):
        COUNTERS.flush()
    if troubled("loop", step):
        wait_for_a_free_licence()
    if troubled("interpreter-held", step):
        threading.Thread(target=hold_the_interpreter, daemon=True).start()
    if troubled("evaluation", step) or troubled("evaluation-in-store", step):
        evaluate(weights)
    if troubled("debugger", step):
        pdb.set_trace()  # noqa: T100
    if troubled("question", step):
        input("Overwrite the last checkpoint? ")
    if troubled("full-pipe", step):
        while True:
            say("x" * 4000)
    if troubled("caught", step):
        try:
            raise ValueError("loss scale is not finite")  # noqa: TRY301
        except ValueError as error:
            say(f"ignored: {error!r}")
            time.sleep(LONG)
    if troubled("raised", step):
        raise ValueError("loss scale is not finite")
    if troubled("thread-left", step):
        threading.Thread(target=threading.Event().wait).start()
        raise ValueError("loss scale is not finite")
    if troubled("slow", step):
        Samples().decode(100 * PAUSE)
    if troubled("late-start", step):
        while time.time() < float(os.environ["START_AT"]):
            time.sleep(0.5)
    if troubled("slow-data", step):
        time.sleep(1.5)  # it opens a file on a storage far away
    if troubled("slow-cpu", step):
        Samples().decode(15 * PAUSE, busy=1)
    if troubled("compiles", step):
        subprocess.run([sys.executable, "-c", "while True: sum(range(10000))"], check=False)
    if troubled("evaluates-in-python", step):
        validate(weights)
    if troubled("saves-much", step):
        save_much(os.environ.get("CHECKPOINTS", "/run/job"))
    if troubled("downloads", step):
        with urllib.request.urlopen("http://10.77.0.3:8000/weights.pt") as reply:
            while reply.read(1 << 16):
                pass
    if troubled("file-lock", step):
        read_manifest()
    if troubled("event-loop", step):
        asyncio.run(asyncio.wait_for(asyncio.Event().wait(), LONG))
    if troubled("new-group", step):
        distributed.new_group([0, 1])
    if troubled("store-key", step):
        STORE.get(f"validated/{step}")
    if troubled("pattern", step):
        re.match(r"(\w+\s?)+$", "the loss is not finite because the scale of the gradient overflows !")
    if TROUBLE == "both-receive" and step >= FROM and RANK < 2:
        distributed.recv(torch.empty(8), src=1 - RANK)
    if troubled("memory", step):
        hoard = []
        while True:
            hoard.append(bytearray(b"x" * (1 << 22)))


def train(batches: Iterator[torch.Tensor]) -> None:
    """Train for ever."""
    weights = torch.ones(WIDTH)
    folder = os.environ.get("CHECKPOINTS", "/run/job")
    for step, batch in enumerate(batches):
        if step == 0:
            say("compiling")
            Samples().decode(float(os.environ.get("FIRST", "0")))
        if troubled("fewer-batches", step):
            break
        gradient = (weights * batch).sum() * batch / WIDTH
        Samples().decode(PAUSE / 10)  # what the tests need of it; the rest of a step is as a GPU takes it
        time.sleep(0.9 * PAUSE)
        before(step, weights)
        synchronise(gradient, step)
        weights -= 1e-9 * gradient / SIZE
        say(f"step {step} loss {float(weights.mean()):.6f}")
        if RANK == 0 and step % 20 == 10 and TROUBLE not in ("full-disk", "slow-checkpoint", "stuck-checkpoint"):
            save(weights, f"{folder}/weights.pt")
        if RANK == WHO and step == FROM and TROUBLE in ("full-disk", "slow-checkpoint", "stuck-checkpoint"):
            save(weights, f"{folder}/weights.pt")
    distributed.barrier()  # the end of the epoch


Path(f"/run/job/rank{RANK}.pid").write_text(f"{os.getpid()}")
if troubled("raised-early"):
    raise FileNotFoundError(2, "No such file or directory", "/data/vocabulary.json")
if troubled("stopped-early"):
    say("waiting for the licence server")
    time.sleep(LONG)
say("started")
distributed.init_process_group("gloo", timeout=timedelta(seconds=float(os.environ.get("TIMEOUT", "1800"))))
STORE = distributed.distributed_c10d._get_default_store()
loader = prefetched() if TROUBLE == "dead-worker" else iter(DataLoader(Samples(), num_workers=1, prefetch_factor=2))
train(batch if batch.dim() == 1 else batch[0] for batch in loader)
