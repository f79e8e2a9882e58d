"""What one rank does, from the first line to the last."""

import ctypes
import json
import os
import threading
import time
from binascii import unhexlify

from ncheck.agent.traffic import carried, counters
from ncheck.probe.agent.nccl_rank.cuda import Cuda
from ncheck.probe.agent.nccl_rank.hip import Hip, is_rccl
from ncheck.probe.agent.nccl_rank.layout import ALL_REDUCE
from ncheck.probe.agent.nccl_rank.measure import REPEATS, Measure
from ncheck.probe.agent.nccl_rank.messages import LONGEST_WORDS, Messages, RankError
from ncheck.probe.agent.nccl_rank.nccl import Nccl, UniqueId
from ncheck.probe.agent.nccl_rank.place import gpu_of, placed
from ncheck.probe.agent.nccl_rank.watch import FAILED, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence, Tuple

    Spec = Dict[str, Any]  # see __init__.py

_TO_PART = 5.0  # seconds for the communicator's end, after the last message
_PER_LINE = 8  # interfaces in one message


def main(arguments: "Sequence[str]") -> None:
    """Do what NCHECK_RANK, or the first argument, says: see __init__.py. Never returns."""
    began = time.monotonic()
    spec = json.loads(os.environ.pop("NCHECK_RANK", "") or arguments[0])
    messages = Messages(spec.get("rank"), spec.get("fd"))
    watch = Watch(messages, began + spec["seconds"])
    watch.start()
    try:
        _work(spec, messages, watch, began)
    except RankError as trouble:
        messages.failure(watch.step, trouble.words, trouble.code)
        watch.end(FAILED)
    except Exception as error:  # noqa: BLE001  whatever it is, the parent gets it
        messages.failure(watch.step, "{}: {}".format(type(error).__name__, error))
        watch.end(FAILED)


def _work(spec: "Spec", messages: "Messages", watch: "Watch", began: float) -> None:
    rank, local, world = placed(spec, os.environ)
    messages.rank = rank
    before = counters() if spec.get("counters") and local == 0 else None
    library, gpu = spec.get("library") or "libnccl.so.2", gpu_of(spec, local, os.environ)
    cuda, nccl = _of_amd(library, gpu, watch) if is_rccl(library) else _of_nvidia(library, gpu, watch)
    watch.abort = nccl.abort
    messages.send("library", version=nccl.version(), path=nccl.real_path()[:LONGEST_WORDS], driver=cuda.driver())
    watch.at("init")
    nccl.init(world, _identity(spec, nccl), rank)
    messages.own_segments()
    watch.at("first all-reduce")
    measure = Measure(cuda, nccl, watch, messages.send, spec.get("repeats") or REPEATS)
    measure.agree()
    messages.own_segments()  # NCCL may connect no sooner than this
    messages.send("first", seconds=round(time.monotonic() - began, 4))
    measure.run(spec.get("op") or ALL_REDUCE, spec["sizes"], rank, world, in_place=spec.get("in_place", True))
    if before is not None:
        _send_carried(messages, carried(before, counters(), spec.get("planned") or ()))
    watch.leaving.acquire()
    messages.own_segments()
    messages.send("done")
    _part(nccl)


def _of_nvidia(library: str, gpu: int, watch: "Watch") -> "Tuple[Cuda, Nccl]":
    watch.at("libcuda")
    cuda = Cuda()
    cuda.enter(gpu)
    watch.at("libnccl")
    return cuda, Nccl(library)


def _of_amd(library: str, gpu: int, watch: "Watch") -> "Tuple[Cuda, Nccl]":
    """Open RCCL first: it brings its own HIP."""
    watch.at("librccl")
    rccl = Nccl(library)
    watch.at("libamdhip64")
    hip = Hip()
    hip.enter(gpu)
    return hip, rccl


def _identity(spec: "Spec", nccl: "Nccl") -> "UniqueId":
    return UniqueId.from_buffer_copy(unhexlify(spec["id"])) if spec.get("id") else nccl.unique_id()


def _send_carried(messages: "Messages", moved: "Dict[str, Dict[str, int]]") -> None:
    names = sorted(moved)
    for start in range(0, len(names), _PER_LINE):
        messages.send("carried", moved={name: moved[name] for name in names[start : start + _PER_LINE]})


def _part(nccl: "Nccl") -> None:
    """Release the communicator, and end: what NCCL does at the end of a process may hang, too."""
    thread = threading.Thread(target=_leave, args=(nccl,), daemon=True)
    thread.start()
    thread.join(_TO_PART)
    os._exit(0)


def _leave(nccl: "Nccl") -> None:
    """Release it after NCCL's output is written: to a pipe the C library only writes full buffers."""
    ctypes.CDLL(None).fflush(None)
    nccl.end()
