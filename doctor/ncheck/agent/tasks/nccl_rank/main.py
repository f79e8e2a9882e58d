"""What one rank does, from the first line to the last."""

import ctypes
import json
import os
import threading
import time
from binascii import unhexlify

from ncheck.agent.tasks.counters import carried, counters
from ncheck.agent.tasks.nccl_rank.cuda import Cuda
from ncheck.agent.tasks.nccl_rank.measure import Measure
from ncheck.agent.tasks.nccl_rank.nccl import Nccl, UniqueId
from ncheck.agent.tasks.nccl_rank.place import gpu_of, placed
from ncheck.agent.tasks.nccl_rank.telling import LONGEST_WORDS, RankError, Telling
from ncheck.agent.tasks.nccl_rank.watch import FAILED, Watch

_TO_PART = 5.0  # seconds for the communicator's end, when all is measured and told
_A_LINE = 8  # interfaces told of in one line


def main(arguments):
    """Do what NCHECK_RANK, or the first argument, says: see the package's own words. Never returns."""
    began = time.monotonic()
    spec = json.loads(os.environ.pop("NCHECK_RANK", None) or arguments[0])
    telling = Telling(spec.get("rank"), spec.get("fd"))
    watch = Watch(telling, began + spec["seconds"])
    watch.start()
    try:
        _work(spec, telling, watch, began)
    except RankError as trouble:
        telling.failure(watch.step, trouble.words, trouble.code)
        watch.end(FAILED)
    except Exception as error:  # noqa: BLE001  whatever it is, the parent is told
        telling.failure(watch.step, "{}: {}".format(type(error).__name__, error))
        watch.end(FAILED)


def _work(spec, telling, watch, began):
    rank, local, world = placed(spec, os.environ)
    telling.rank = rank
    before = counters() if spec.get("counters") and local == 0 else None
    watch.at("libcuda")
    cuda = Cuda()
    cuda.enter(gpu_of(spec, local, os.environ))
    watch.at("libnccl")
    nccl = Nccl(spec.get("library") or "libnccl.so.2")
    watch.abort = nccl.abort
    telling.say("library", version=nccl.version(), path=nccl.real_path()[:LONGEST_WORDS], driver=cuda.driver())
    watch.at("init")
    nccl.init(world, _identity(spec, nccl), rank)
    telling.held()
    watch.at("first all-reduce")
    measure = Measure(cuda, nccl, watch, telling.say)
    measure.agree()
    telling.held()  # NCCL may connect no sooner than this
    telling.say("first", seconds=round(time.monotonic() - began, 4))
    measure.run(spec["sizes"], rank, world)
    if before is not None:
        _tell_carried(telling, carried(before, counters(), spec.get("planned") or ()))
    watch.leaving.acquire()
    telling.held()
    telling.say("done")
    _part(nccl)


def _identity(spec, nccl):
    return UniqueId.from_buffer_copy(unhexlify(spec["id"])) if spec.get("id") else nccl.unique_id()


def _tell_carried(telling, moved):
    names = sorted(moved)
    for start in range(0, len(names), _A_LINE):
        telling.say("carried", moved={name: moved[name] for name in names[start : start + _A_LINE]})


def _part(nccl):
    """Give the communicator back, and leave: what NCCL does at a process's own end may hang, too."""
    thread = threading.Thread(target=_leave, args=(nccl,), daemon=True)
    thread.start()
    thread.join(_TO_PART)
    os._exit(0)


def _leave(nccl):
    """Give it back, once what NCCL printed is written: to a pipe the C library writes when its buffer is full."""
    ctypes.CDLL(None).fflush(None)
    nccl.end()
