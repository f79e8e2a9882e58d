"""What the test of one GPU does, in order: the fixed results, how fast it computes, copies, and the results again."""

import ctypes
import hashlib
import json
import os
import signal
import struct
import sys
import time
from collections import Counter
from functools import partial

from ncheck.probe.agent.gpu_alone import kernels
from ncheck.probe.agent.gpu_alone.device import UNCOMPILED, Blas, Device
from ncheck.probe.agent.gpu_alone.hip import Hip, RocBlas
from ncheck.probe.agent.nccl_rank.messages import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Type

    from ncheck.probe.agent.nccl_rank.cuda import Pointer

    Task = Dict[str, Any]

BLOCKS = 4096  # far more than any GPU has processors: each of them computes some
REPEATS = 5  # of each measurement; the median counts
_COPY, _PEER_COPY = 256 * 1024 * 1024, 64 * 1024 * 1024
_PART = 8  # at most this part of the free memory for a copy
_FIXED_ROUNDS = 500  # of the kernels with known results: the same on every GPU, or they could not be compared
_LAUNCH = 0.02  # seconds of one launch while it keeps busy
_EMPTY = 200  # launches in a row
_MULTIPLIED = 0.3  # seconds of matrix products: longer than the control of the power takes to act
_BLOCK = 4 * 1024 * 1024  # bytes of numbers that differ; matrices repeat them
# Of each 16 bits, these are as they come and those are set: numbers of either sign between 2^-7 and 2^-3, in BF16 and
# in single precision. A matrix that repeats one number draws less power than those that programs multiply.
_KEPT, _SET = 0x81FF, 0x3C00


def main(_arguments: object) -> None:
    """Do the task of the first line of standard input: see __init__.py. Never returns."""
    status = 0
    try:
        _work(json.loads(sys.stdin.readline()))
    except RankError as trouble:
        say(failure={"step": _Step.now, "words": trouble.words[:400], "code": trouble.driver})
        status = 1
    except Exception as error:  # noqa: BLE001  whatever it is, the parent gets it
        say(failure={"step": _Step.now, "words": "{}: {}".format(type(error).__name__, error)[:400], "code": None})
        status = 1
    sys.stdout.flush()
    os._exit(status)  # what the driver does at the end of a process may hang


def say(**fields: object) -> None:
    """Print one message."""
    sys.stdout.write("\nncheck:" + json.dumps(fields) + "\n")
    sys.stdout.flush()


class _Step:
    now = "start"


def _at(step: str) -> None:
    _Step.now = step
    say(step=step)


def _work(task: "Task") -> None:
    signal.alarm(max(1, int(task["deadline"])))  # whatever hangs, and whoever started it: this ends the process
    if task.get("cpus"):
        try:
            os.sched_setaffinity(0, task["cpus"])  # before the driver pins memory: it lies on the GPU's own NUMA node
        except OSError as error:
            say(notes="not bound to the CPUs near the GPU: {}".format(error.strerror))
    _at("the driver")
    amd = "hip" in task
    cuda = Hip(task["pci"], task["hip"], task["compilers"]) if amd else Device()
    if task.get("peers"):
        _pairs(cuda)
    else:
        _at("a context")
        cuda.enter(0)
        _Gpu(cuda).test(task, RocBlas if amd else Blas)
    say(done=True)


def _repeated(do: "Callable[[], object]", count: int) -> None:
    for _ in range(count):
        do()


class _Timer:
    """The device's own clock, on one stream."""

    def __init__(self, cuda: "Device") -> None:
        self.cuda, self.stream = cuda, cuda.stream()
        self.events = [cuda.event() for _ in range(REPEATS + 1)]

    def seconds(self, do: "Callable[[], object]") -> float:
        """Return the median of the seconds that what `do` queues takes."""
        self.cuda.record(self.events[0], self.stream)
        for event in self.events[1:]:
            do()
            self.cuda.record(event, self.stream)
        self.cuda.wait(self.events[-1], lambda: None)
        return sorted(self.cuda.seconds(*self.events[at : at + 2]) for at in range(REPEATS))[REPEATS // 2]


class _Gpu(_Timer):
    def __init__(self, cuda: "Device") -> None:
        _Timer.__init__(self, cuda)
        self.out = cuda.memory(4 * BLOCKS * kernels.THREADS)

    def test(self, task: "Task", library: "Type[Blas]") -> None:
        """Test all of it; what is known is printed at once."""
        _at("compiling the kernels")
        try:
            found = self.cuda.kernels()
        except RankError as trouble:
            if trouble.driver not in (None, *UNCOMPILED):
                raise
            say(notes="nothing was computed: {}".format(trouble.words)[:200])
            self.copies()
            self.products(library, task.get("blas") or ())
            return
        floats, integers, nothing = (found[name] for name in ("floats", "integers", "nothing"))
        self.results({"integers": integers, "floats": floats})
        _at("empty kernels")
        self.launch(nothing, 1)
        say(figures={"launch": self.seconds(partial(_repeated, partial(self.launch, nothing, 1), _EMPTY)) / _EMPTY})
        self.copies()
        _at("computing")
        say(loading=True)
        ends = time.monotonic() + task["seconds"]
        say(figures={"fma": self.fma(floats, time.monotonic() + task["seconds"] / 2)})
        self.products(library, task.get("blas") or ())
        _at("computing again")
        late = self.fma(floats, max(ends, time.monotonic()))
        say(loading=False, figures={"late_fma": late})
        self.results({"integers again": integers, "floats again": floats})

    def launch(self, function: "Pointer", blocks: int, rounds: int = 1) -> None:
        self.cuda.launch(
            function, blocks, kernels.THREADS, self.stream, ctypes.c_uint64(self.out), ctypes.c_uint32(rounds)
        )

    def results(self, functions: "Dict[str, Pointer]") -> None:
        """Print the digest of what each kernel computes, and how many blocks computed otherwise than most."""
        for name, function in sorted(functions.items()):
            _at(name)
            self.launch(function, BLOCKS, _FIXED_ROUNDS)
            self.cuda.record(self.events[0], self.stream)
            self.cuda.wait(self.events[0], lambda: None)
            size = 4 * kernels.THREADS
            data = ctypes.create_string_buffer(size * BLOCKS)
            self.cuda.to_host(data, self.out, size * BLOCKS)
            computed = data.raw
            blocks = Counter(computed[at : at + size] for at in range(0, size * BLOCKS, size))
            usual, count = blocks.most_common(1)[0]
            say(results={name: [hashlib.sha256(usual).hexdigest()[:16], BLOCKS - count]})

    def fma(self, function: "Pointer", ends: float) -> float:
        """Keep the GPU busy until then; return its TFLOPS, at the end of that time."""
        one = self.busy(partial(self.launch, function, BLOCKS), ends, 100, 4000000)
        return BLOCKS * kernels.THREADS * kernels.FLOPS / one / 1e12

    def busy(self, do: "Callable[[int], object]", ends: float, least: int, most: int) -> float:
        """Queue `do` so many times, at once, until then; return the seconds of one, at the end of that time."""
        count = least
        while True:
            took = self.seconds(partial(do, count))
            if time.monotonic() >= ends and took > _LAUNCH / 4:
                return took / count
            count = max(least, min(most, int(count * _LAUNCH / max(took, 1e-6))))

    def copies(self) -> None:
        """Measure copies on the device, and to and from the host: GPUs share links to it, so one copies at a time."""
        size = min(_COPY, self.cuda.free() // _PART)
        _at("a copy on the device")
        source, target = self.cuda.memory(size), self.cuda.memory(size)
        copy = partial(self.cuda.queue_on_device, target, source, size, self.stream)
        copy()
        say(figures={"memory": 2 * size / self.seconds(copy) / 1e9})
        host = self.cuda.pinned(size)
        _at("waiting for its turn to copy")
        say(turn=True)
        if not json.loads(sys.stdin.readline() or "{}").get("turn"):
            say(notes="the link to the host was not measured: the copies of another GPU do not end")
            return
        for name, do in (
            ("to_device", partial(self.cuda.queue_to_device, target, host, size, self.stream)),
            ("to_host", partial(self.cuda.queue_to_host, host, source, size, self.stream)),
        ):
            _at("a copy " + name.replace("_", " the "))
            do()
            say(figures={name: size / self.seconds(do) / 1e9})
        say(turn=False)

    def numbers(self, matrix: int, size: int) -> None:
        """Fill it with numbers that differ, the same on every GPU."""
        data = int.from_bytes(hashlib.shake_128(b"ncheck").digest(_BLOCK), "little")
        kept, ones = (int.from_bytes(struct.pack("<H", bits) * (_BLOCK // 2), "little") for bits in (_KEPT, _SET))
        self.cuda.to_device(matrix, (data & kept | ones).to_bytes(_BLOCK, "little"), _BLOCK)
        done = _BLOCK
        while done < size:
            self.cuda.on_device(matrix + done, matrix, min(done, size - done))
            done *= 2

    def products(self, library: "Type[Blas]", files: "Iterable[str]") -> None:
        """Multiply matrices by cuBLAS or rocBLAS, where there is one. What it refuses is a note: it is no fault of the
        GPU, which the calls of the driver after it would show.
        """
        blas = library.first(files)
        if isinstance(blas, str):
            say(notes=blas)
            return
        side = 8192 if 6 * 8192 * 8192 * 2 < self.cuda.free() else 2048
        matrices = [self.cuda.memory(4 * side * side) for _ in range(3)]
        for matrix in matrices[:2]:
            self.numbers(matrix, 4 * side * side)
        for name in ("bf16", "fp32"):
            _at("a matrix product, " + name)
            try:
                do = blas.product(name, side, matrices, self.stream)
                do()
                ends = time.monotonic() + _MULTIPLIED
                one = self.busy(partial(_repeated, do), ends, 1, 9999)
                say(figures={name: 2 * side**3 / one / 1e12})
            except RankError as trouble:
                if trouble.driver is not None:
                    raise
                say(notes="{} products were not measured: {}".format(name.upper(), trouble.words)[:200])


def _pairs(cuda: "Device") -> None:
    """Measure the copy from each GPU to each other; where one cannot reach the other, the driver goes by the host."""
    count = cuda.count()
    contexts, buffers = [], []
    for index in range(count):
        _at("a context on GPU {}".format(index))
        contexts.append(cuda.enter(index))
        buffers.append(cuda.memory(_PEER_COPY))
    for one in range(count):
        for other in range(count):
            if one != other:
                _at("a copy from GPU {} to GPU {}".format(one, other))
                cuda.use(contexts[one])
                cuda.let_reach(one, other, contexts[other])
                timer = _Timer(cuda)
                copy = partial(
                    cuda.queue_to_peer, buffers[other], contexts[other], buffers[one], contexts[one], _PEER_COPY,
                    timer.stream,
                )  # fmt: skip
                copy()
                say(pairs=[[one, other, _PEER_COPY / timer.seconds(copy) / 1e9]])
