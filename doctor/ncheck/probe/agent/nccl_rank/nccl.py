"""libnccl.so.2, or AMD's librccl.so.1, by ctypes: a communicator that can be aborted, and what is measured."""

import ctypes
import time

from ncheck.probe.agent.nccl_rank.hip import is_rccl
from ncheck.probe.agent.nccl_rank.layout import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, REDUCE_SCATTER
from ncheck.probe.agent.nccl_rank.messages import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence, Tuple

    from ncheck.probe.agent.nccl_rank.cuda import Pointer
    from ncheck.probe.agent.nccl_rank.layout import Layout

    Launch = Callable[[int], None]  # so many times
    Call = Tuple[Callable[..., int], Tuple[Any, ...]]

IN_PROGRESS = 7  # ncclResult_t
FLOAT32, SUM, MAX = 7, 0, 2  # ncclDataType_t, ncclRedOp_t
CONFIG_SINCE = 21400
# A non-blocking communicator starts a thread for each launch in 2.26.2, and not yet in 2.22.3 (NCCL source, group.cc):
# tens of microseconds that no job's collectives pay. From here on init is blocking; a call that does
# not return is ended by the watch, a thread of its own, or by the parent.
THREAD_A_LAUNCH = 22300
_NEEDED = (
    "ncclGetVersion", "ncclCommInitRank", "ncclAllReduce", "ncclCommGetAsyncError", "ncclCommAbort", "ncclCommDestroy",
    "ncclGetErrorString",
)  # fmt: skip
_SIZE = 4  # bytes of FLOAT32
# What nccl.h calls them, and what follows the type of the data: the operation, or the root. The rest is of sends and
# receives in a group, as torch.distributed has it.
_COLLECTIVES = {
    ALL_REDUCE: ("ncclAllReduce", (SUM,)), ALL_GATHER: ("ncclAllGather", ()),
    REDUCE_SCATTER: ("ncclReduceScatter", (SUM,)), BROADCAST: ("ncclBroadcast", (0,)),
}  # fmt: skip
_MAGIC = 0xCAFEBEEF
_SPINS = 200  # looks at a launch in progress before sleeping between them
_SHORT, _LONG, _GROWTH = 0.001, 0.01, 1.1  # seconds between two later looks: another rank may take long to come


class UniqueId(ctypes.Structure):
    """The identifier by which the ranks meet; it is passed by value."""

    _fields_ = [("internal", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    """ncclConfig_t of 2.14: later versions set what they added themselves, by `version`."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("blocking", ctypes.c_int),
    ]  # fmt: skip


class Nccl:
    """The library, and one communicator of it."""

    def __init__(self, path: str) -> None:
        self.path, self.comm, self.abortable = path, ctypes.c_void_p(), False
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise RankError("cannot open {}: {}".format("librccl" if is_rccl(path) else "libnccl", error)) from error
        lacks = [name for name in _NEEDED if not hasattr(self.library, name)]
        if lacks:
            raise RankError("{} lacks {}: it is no NCCL that can be driven".format(path, ", ".join(lacks)))
        self.library.ncclGetErrorString.restype = ctypes.c_char_p
        number = ctypes.c_int()
        self.check(self.library.ncclGetVersion(ctypes.byref(number)))
        self.number = number.value

    def version(self) -> str:
        """Return "2.21.5"; before 2.9 NCCL counted with four digits, 2804."""
        base = 10000 if self.number >= 10000 else 1000
        return "{}.{}.{}".format(self.number // base, self.number % base // 100, self.number % 100)

    def real_path(self) -> str:
        """Return the file that was loaded, by the process's own map."""
        try:
            with open("/proc/self/maps") as maps:
                paths = [line.split(None, 5)[-1].strip() for line in maps if "libnccl" in line or "librccl" in line]
        except OSError:
            paths = []
        return paths[0] if paths else self.path

    def unique_id(self) -> "UniqueId":
        """Return a new id: for a rank alone, or for ranks that NCCL_COMM_ID brings together."""
        name = UniqueId()
        self.check(self.library.ncclGetUniqueId(ctypes.byref(name)))
        return name

    def init(self, world: int, name: "UniqueId", rank: int) -> None:
        """Join the communicator: without blocking if that costs the collectives nothing."""
        own = ctypes.c_int(rank), ctypes.c_int(world), ctypes.byref(self.comm)
        config = getattr(self.library, "ncclCommInitRankConfig", None)
        if config is None or not CONFIG_SINCE <= self.number < THREAD_A_LAUNCH:
            self.library.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
            self.check(self.library.ncclCommInitRank(own[2], own[1], name, own[0]))
        else:
            how = Config(ctypes.sizeof(Config), _MAGIC, CONFIG_SINCE, 0)
            config.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int, ctypes.c_void_p]
            code = config(own[2], own[1], name, own[0], ctypes.byref(how))
            self.abortable = True
            self.check(code)
        self.abortable = True

    def check(self, code: int) -> None:
        """Wait for what is in progress. Raises RankError with NCCL's message if it failed."""
        looks, pause = 0, _SHORT
        while code == IN_PROGRESS:
            looks += 1
            if looks > _SPINS:
                time.sleep(pause)
                pause = min(_LONG, pause * _GROWTH)
            code = self.asynchronous()
        if code:
            raise RankError(self.words(code), code)

    def asynchronous(self) -> int:
        """Return the communicator's own state: an error may appear without a call."""
        state = ctypes.c_int()
        code = self.library.ncclCommGetAsyncError(self.comm, ctypes.byref(state))
        return code or state.value

    def raise_failure(self) -> None:
        """Raise RankError if the communicator has failed meanwhile."""
        code = self.asynchronous()
        if code not in (0, IN_PROGRESS):
            raise RankError(self.words(code), code)

    def words(self, code: int) -> str:
        """Return NCCL's message for a result, and its last error."""
        text = (self.library.ncclGetErrorString(ctypes.c_int(code)) or b"").decode("utf-8", "replace")
        last = getattr(self.library, "ncclGetLastError", None)  # since 2.13.4
        if last is None:
            return "{} (result {})".format(text, code)
        last.restype, last.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
        more = (last(None) or b"").decode("utf-8", "replace").strip()
        return "{} (result {})".format(text, code) + (": " + more if more else "")

    def largest(self, buffer: int, count: int, stream: "Pointer") -> "Launch":
        """Return a function that launches an all-reduce in place, to the largest of each number."""
        return self._launch(self._call("ncclAllReduce", (buffer, buffer), count, (MAX,), stream))

    def operation(self, layout: "Layout", send: int, receive: int, stream: "Pointer") -> "Launch":
        """Return a function that launches an operation on these buffers."""
        count = layout.part // _SIZE
        if layout.op in _COLLECTIVES:
            name, more = _COLLECTIVES[layout.op]
            return self._launch(self._call(name, (send, receive), count, more, stream))
        rank, world, part = layout.rank, layout.world, layout.part
        to, source, peers = [(rank + 1) % world], [(rank - 1) % world], range(world)
        if layout.op == ALL_TO_ALL:
            to = source = list(peers)
        return self._exchange([
            self._call(name, (buffer + place * part,), count, (peer,), stream)
            for name, buffer, others in (("ncclSend", send, to), ("ncclRecv", receive, source))
            for place, peer in enumerate(others)
        ])  # fmt: skip

    def _call(
        self, name: str, buffers: "Sequence[int]", count: int, more: "Sequence[int]", stream: "Pointer"
    ) -> "Call":
        """Return a function and its arguments, made once: small sizes wait for their launches."""
        function = getattr(self.library, name, None)
        if function is None:
            raise RankError("{} lacks {}: NCCL {} is too old".format(self.path, name, self.version()))
        return function, (
            *map(ctypes.c_void_p, buffers), ctypes.c_size_t(count), ctypes.c_int(FLOAT32), *map(ctypes.c_int, more),
            self.comm, stream,
        )  # fmt: skip

    def _launch(self, call: "Call") -> "Launch":
        (function, arguments), check = call, self.check

        def launch(times: int) -> None:
            for _ in range(times):
                code = function(*arguments)
                if code:
                    check(code)

        return launch

    def _exchange(self, calls: "Sequence[Call]") -> "Launch":
        """Return a function that launches all these sends and receives at once: inside of a group nothing waits."""
        start, end, check = self.library.ncclGroupStart, self.library.ncclGroupEnd, self.check

        def launch(times: int) -> None:
            for _ in range(times):
                start()
                for function, arguments in calls:
                    code = function(*arguments)
                    if code and code != IN_PROGRESS:
                        check(code)
                code = end()
                if code:
                    check(code)

        return launch

    def abort(self) -> None:
        """Make a call that hangs return. During a plain init a communicator cannot be aborted: the exit ends it."""
        if self.abortable and self.comm.value:
            self.library.ncclCommAbort(self.comm)

    def end(self) -> None:
        """Release the communicator in order: data that a peer has not received is sent before."""
        finalize = getattr(self.library, "ncclCommFinalize", None)
        if finalize is not None and CONFIG_SINCE <= self.number:
            self.check(finalize(self.comm))
        self.library.ncclCommDestroy(self.comm)
